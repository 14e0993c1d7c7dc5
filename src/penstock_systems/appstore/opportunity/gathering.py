"""Gathers what is known of a market out of the tables that the other stages filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from penstock_systems.appstore import founder
from penstock_systems.appstore.app import db
from penstock_systems.appstore.keywords import of_several
from penstock_systems.appstore.moments import after, days_between
from penstock_systems.appstore.opportunity.complaints import Said, complaints
from penstock_systems.appstore.opportunity.facts import VISIBLE, AppFacts, KeywordFacts, MarketFacts

APPS, KEYWORDS, NEIGHBOURS, STRONGEST = 25, 20, 5, 10  # that are named
KEYWORDS_READ = 60  # of which those are named that are no names of one developer
APPS_COUNTED = 5_000  # of a market, for who holds how much of it; what comes after has no share to speak of
REVIEWS_READ = 40  # of an app, the newest
MONTH_DAYS = 30

MARKET = """
select id, lineage_id, name, opportunity_score, demand, competitiveness, fragmentation, dissatisfaction, room, coverage,
  franchise, apps, keywords
from market_clusters
where id = :id
and ended_at is null
"""
MEMBERS = """
select app_registry.track_id, track_name, seller_name, weight, rating_count, average_rating, competitiveness_score,
  rating_velocity_7d, price, formatted_price, in_app_purchases, languages, primary_genre, release_date,
  version_released_at, track_view_url
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :id
order by weight desc, app_registry.track_id
limit :most
"""
STRONGEST_APPS = MEMBERS.replace("order by weight desc", "order by rating_count desc")
WORDS = """
select cluster_keywords.keyword, demand, typed
from cluster_keywords
left join crawl_keywords on crawl_keywords.keyword = cluster_keywords.keyword
where cluster_id = :id
order by weight desc, cluster_keywords.keyword
limit :most
"""
RIVALS = """
select app_registry.track_id, rating_count, average_rating, rating_velocity_7d, release_date, version_released_at,
  reviews_read, reviews_unhappy
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :id
order by rating_count desc
limit :most
"""
REVIEWS = """
select review_id, rating, title, body, sentiment, reviewed_at
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
NEIGHBOUR_LEAST = 0.01  # of all that ties either market
NEIGHBOURS_AFTER = """
select market_clusters.name, weight, market_clusters.id
from cluster_relations
join market_clusters on market_clusters.id = cluster_relations.b
where a = :id
and kind = 'neighbour'
and weight >= :least
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
and weight >= :least
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
    strongest = await db.rows(STRONGEST_APPS, id=cluster_id, most=STRONGEST)
    said = {row.track_id: await _said(row) for row in (*members[:VISIBLE], *strongest)}
    keywords = await db.rows(WORDS, id=cluster_id, most=KEYWORDS_READ)
    rivals = [_rival(row, now) for row in await db.rows(RIVALS, id=cluster_id, most=APPS_COUNTED)]
    ratings = [rival.ratings for rival in rivals]
    earlier = await db.value(EARLIER, id=cluster_id, since=after(now, days=-MONTH_DAYS))
    own = {word for row in keywords[:KEYWORDS] for word in row.keyword.split()}
    named = of_several(keywords, members)[:KEYWORDS]
    return MarketFacts(
        cluster_id=market.id,
        lineage_id=market.lineage_id,
        name=market.name,
        score=market.opportunity_score,
        demand=market.demand,
        competitiveness=market.competitiveness,
        fragmentation=market.fragmentation,
        dissatisfaction=market.dissatisfaction,
        room=market.room,
        coverage=market.coverage,
        franchise=market.franchise,
        figures=founder.figured(rivals, [(row.keyword, row.typed) for row in named if row.typed is not None]),
        apps_count=market.apps,
        keywords_count=market.keywords,
        apps=[_app(row, said.get(row.track_id, ()), now) for row in members],
        strongest=[_app(row, said[row.track_id], now) for row in strongest],
        keywords=[KeywordFacts(row.keyword, row.demand, row.typed) for row in named],
        ratings_total=sum(ratings),
        ratings_first=sum(ratings[:1]),
        complaints=complaints([each for reviews in said.values() for each in reviews], without=own),
        change=None if earlier is None else round(market.opportunity_score - earlier, 2),
        neighbours=await _neighbours(cluster_id),
        concept=await db.value(CONCEPT, id=cluster_id),
    )


async def _said(app: Any) -> list[Said]:
    rows = await db.rows(REVIEWS, id=app.track_id, most=REVIEWS_READ)
    return [
        Said(
            row.review_id, app.track_id, app.track_name, row.rating, row.title, row.body, row.sentiment, row.reviewed_at
        )
        for row in rows
    ]


def _rival(row: Any, now: str) -> founder.Rival:
    return founder.Rival(
        row.track_id,
        row.rating_count,
        row.average_rating if row.rating_count else None,
        row.rating_velocity_7d,
        _days_since(row.release_date, now),
        _days_since(row.version_released_at, now),
        row.reviews_read or 0,
        row.reviews_unhappy or 0,
    )


def _app(row: Any, reviews: Sequence[Said], now: str) -> AppFacts:
    bought = _bought(row.in_app_purchases)
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
        shown_price=row.formatted_price,
        purchases=[each.amount for each in bought],
        shown_purchases=[each.price for each in bought],
        languages=_counted(row.languages),
        genre=row.primary_genre,
        age_days=_days_since(row.release_date, now),
        idle_days=_days_since(row.version_released_at, now),
        url=row.track_view_url,
        reviews=len(reviews),
        unhappy=sum(each.is_unhappy for each in reviews),
    )


def _days_since(moment: str | None, now: str) -> int | None:
    try:
        return int(days_between(moment[:10], now[:10])) if moment else None
    except ValueError:
        return None


async def _neighbours(cluster_id: int) -> list[str]:
    found = await db.rows(NEIGHBOURS_AFTER, id=cluster_id, least=NEIGHBOUR_LEAST, most=NEIGHBOURS)
    found += await db.rows(NEIGHBOURS_BEFORE, id=cluster_id, least=NEIGHBOUR_LEAST, most=NEIGHBOURS)
    return [name for name, _, _ in sorted(found, key=lambda row: (-row[1], row[2]))[:NEIGHBOURS]]


class _Purchase(msgspec.Struct, frozen=True):
    amount: float | None = None
    price: str = ""


class _Bought(NamedTuple):
    amount: float
    price: str


def _bought(listed: str | None) -> list[_Bought]:
    """What each purchase of a list costs that was stored as JSON, as a number and as the store shows it."""
    try:
        found = msgspec.json.decode(listed or "[]", type=list[_Purchase])
    except msgspec.MsgspecError:
        return []
    return [_Bought(each.amount, each.price) for each in found if each.amount]


def _counted(listed: str | None) -> int | None:
    """How many there are in a list that was stored as JSON."""
    try:
        found = msgspec.json.decode(listed or "null", type=list[str] | None)
    except msgspec.MsgspecError:
        return None
    return len(found) if found else None
