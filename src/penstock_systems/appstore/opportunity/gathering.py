"""Gathers what is known of a market out of the tables that the other stages filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock_systems.appstore.app import db, settings
from penstock_systems.appstore.keywords import words
from penstock_systems.appstore.moments import after
from penstock_systems.appstore.opportunity.facts import VISIBLE, AppFacts, KeywordFacts, MarketFacts
from penstock_systems.appstore.sentiment import NEGATIONS, UNHAPPY

APPS, KEYWORDS, NEIGHBOURS, COMPLAINTS = 25, 20, 5, 3  # that are named
APPS_COUNTED = 5_000  # of a market, for who holds how much of it; what comes after has no share to speak of
REVIEWS_READ = 40  # of an app, the newest
UNHAPPY_STARS = 2  # where nobody has judged its tone
HEARD_LEAST = 2  # unhappy reviews that have to share a word
EXCESS_LEAST = 0.1  # by how much its share of them has to be larger than that of the happy ones
LETTERS_LEAST = 4  # shorter words are said about everything
MONTH_DAYS = 30

MARKET = """
select id, lineage_id, name, opportunity_score, demand, competitiveness, fragmentation, apps, keywords
from market_clusters
where id = :id
and ended_at is null
"""
MEMBERS = """
select app_registry.track_id, track_name, seller_name, weight, rating_count, average_rating, competitiveness_score,
  rating_velocity_7d, price, languages, primary_genre
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :id
order by weight desc, app_registry.track_id
limit :most
"""
WORDS = """
select cluster_keywords.keyword, demand
from cluster_keywords
left join crawl_keywords on crawl_keywords.keyword = cluster_keywords.keyword
where cluster_id = :id
order by weight desc, cluster_keywords.keyword
limit :most
"""
RATINGS = """
select rating_count
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :id
order by rating_count desc
limit :most
"""
REVIEWS = """
select rating, title, body, sentiment
from app_reviews
where track_id = :id
order by reviewed_at desc, review_id
limit :most
"""
EARLIER = db.hot(
    """
select opportunity_score
from cluster_snapshots
where cluster_id = :id
and snapshot_at >= :since
order by snapshot_at
limit 1
"""
)
# Two looks, each along its own key.
NEIGHBOURS_AFTER = """
select market_clusters.name, weight, market_clusters.id
from cluster_relations
join market_clusters on market_clusters.id = cluster_relations.b
where a = :id
and kind = 'neighbour'
and ended_at is null
order by weight desc, market_clusters.id
limit :most
"""
NEIGHBOURS_BEFORE = """
select market_clusters.name, weight, market_clusters.id
from cluster_relations
join market_clusters on market_clusters.id = cluster_relations.a
where b = :id
and kind = 'neighbour'
and ended_at is null
order by weight desc, market_clusters.id
limit :most
"""
CONCEPT = """
select title
from design_concepts
where cluster_id = :id
order by created_at desc, id
limit 1
"""


async def gathered(cluster_id: int, now: str) -> MarketFacts | None:
    """None if the market has ended, or has no score yet."""
    market = await db.first(MARKET, id=cluster_id)
    if market is None or None in (
        market.opportunity_score,
        market.demand,
        market.competitiveness,
        market.fragmentation,
    ):
        return None
    members = await db.rows(MEMBERS, id=cluster_id, most=APPS)
    told = {row.track_id: await db.rows(REVIEWS, id=row.track_id, most=REVIEWS_READ) for row in members[:VISIBLE]}
    keywords = await db.rows(WORDS, id=cluster_id, most=KEYWORDS)
    ratings = await db.column(RATINGS, id=cluster_id, most=APPS_COUNTED)
    earlier = await db.value(EARLIER, id=cluster_id, since=after(now, days=-MONTH_DAYS))
    own = {word for row in keywords for word in row.keyword.split()}
    return MarketFacts(
        cluster_id=market.id,
        lineage_id=market.lineage_id,
        name=market.name,
        score=market.opportunity_score,
        demand=market.demand,
        competitiveness=market.competitiveness,
        fragmentation=market.fragmentation,
        apps_count=market.apps,
        keywords_count=market.keywords,
        apps=[_app(row, told.get(row.track_id, ())) for row in members],
        keywords=[KeywordFacts(row.keyword, row.demand) for row in keywords],
        ratings_total=sum(ratings),
        ratings_first=sum(ratings[:1]),
        ratings_three=sum(ratings[:3]),
        complaints=complaints([row for rows in told.values() for row in rows], without=own),
        change=None if earlier is None else round(market.opportunity_score - earlier, 2),
        neighbours=await _neighbours(cluster_id),
        concept=await db.value(CONCEPT, id=cluster_id),
    )


def _app(row: Any, reviews: Sequence[Any]) -> AppFacts:
    return AppFacts(
        track_id=row.track_id,
        name=row.track_name,
        seller=row.seller_name,
        weight=row.weight,
        ratings=row.rating_count,
        stars=row.average_rating if row.rating_count else None,
        strength=row.competitiveness_score,
        velocity=row.rating_velocity_7d,
        price=row.price,
        languages=_counted(row.languages),
        genre=row.primary_genre,
        reviews=len(reviews),
        unhappy=sum(map(is_unhappy, reviews)),
    )


def is_unhappy(review: Any) -> bool:
    if review.sentiment is None:
        return bool(review.rating <= UNHAPPY_STARS)
    return bool(review.sentiment <= UNHAPPY)


def complaints(reviews: Sequence[Any], *, without: set[str]) -> list[str]:
    """The words that unhappy reviews share and happy ones do not, apart from those that the market is about."""
    unhappy, happy = Counter[str](), Counter[str]()
    for review in reviews:
        said = words(review.title or "", settings.letters) + words(review.body or "", settings.letters)
        (unhappy if is_unhappy(review) else happy).update(set(said) - without - NEGATIONS)
    many, few = (max(1, sum(is_unhappy(review) is which for review in reviews)) for which in (True, False))
    excess = {
        word: count / many - happy[word] / few
        for word, count in unhappy.items()
        if count >= HEARD_LEAST and len(word) >= LETTERS_LEAST
    }
    telling = [word for word, more in excess.items() if more >= EXCESS_LEAST]
    return sorted(telling, key=lambda word: (-excess[word], word))[:COMPLAINTS]


async def _neighbours(cluster_id: int) -> list[str]:
    found = await db.rows(NEIGHBOURS_AFTER, id=cluster_id, most=NEIGHBOURS)
    found += await db.rows(NEIGHBOURS_BEFORE, id=cluster_id, most=NEIGHBOURS)
    return [name for name, _, _ in sorted(found, key=lambda row: (-row[1], row[2]))[:NEIGHBOURS]]


def _counted(listed: str | None) -> int | None:
    """How many there are in a list that was stored as JSON."""
    try:
        found = msgspec.json.decode(listed or "null", type=list[str] | None)
    except msgspec.MsgspecError:
        return None
    return len(found) if found else None
