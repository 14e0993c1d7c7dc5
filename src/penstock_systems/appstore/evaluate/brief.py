"""What a designer has to know about one market before an idea for it is worth anything."""

from __future__ import annotations

from collections import Counter

import msgspec

from penstock_systems.appstore.app import db
from penstock_systems.appstore.evaluate import beliefs, competitiveness, demand
from penstock_systems.appstore.evaluate.memory import recall_most, strength
from penstock_systems.appstore.keywords import of_several
from penstock_systems.appstore.sentiment import UNHAPPY

KEYWORDS, APPS, COMPLAINTS = 8, 5, 3  # that are named
KEYWORDS_READ, APPS_READ = 60, 25  # by which a keyword of one developer is told from others
REVIEWS_READ = 40  # of each of the named apps, the newest

MARKET = """
select id, name, demand, competitiveness, fragmentation
from market_clusters
where id = :cluster_id
and ended_at is null
"""
WORDS = """
select cluster_keywords.keyword, typed
from cluster_keywords
left join crawl_keywords on crawl_keywords.keyword = cluster_keywords.keyword
where cluster_id = :cluster_id
order by weight desc, cluster_keywords.keyword
limit :most
"""
LEADERS = """
select app_registry.track_id, track_name, seller_name, average_rating
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :cluster_id
order by rating_count desc, app_registry.track_id
limit :most
"""
REVIEWS = """
select title, sentiment
from app_reviews
where track_id = :track_id
order by reviewed_at desc, review_id
limit :most
"""


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers are rounded, so that a market which has hardly moved is not designed for again."""

    cluster_id: int
    name: str
    demand: int
    competitiveness: int
    fragmentation: float
    demand_of_strongest: int | None  # per cent of the strongest keyword that was ever seen
    ratings_decide: float | None  # how strongly ratings are believed to make a chart rank
    keywords: tuple[str, ...]
    apps: tuple[str, ...]
    stars: float | None  # the mean of those apps
    complaints: tuple[str, ...]


async def brief_of(cluster_id: int) -> Brief | None:
    """None where the market is not there any more, or nobody knows yet how dispersed it is."""
    market = await db.first(MARKET, cluster_id=cluster_id)
    if market is None or market.fragmentation is None:
        return None
    words = await db.rows(WORDS, cluster_id=cluster_id, most=KEYWORDS_READ)
    known = await db.rows(LEADERS, cluster_id=cluster_id, most=APPS_READ)
    leaders = known[:APPS]
    strongest = await recall_most(demand.AGENT, demand.STRONGEST)
    decide = await strength(competitiveness.AGENT, beliefs.RATINGS_EXPLAIN_RANK)
    stars = [row.average_rating for row in leaders if row.average_rating is not None]
    wanted = market.demand or 0.0
    return Brief(
        cluster_id=cluster_id,
        name=market.name,
        demand=round(wanted),
        competitiveness=round(market.competitiveness or 0.0),
        fragmentation=round(market.fragmentation),
        demand_of_strongest=round(100 * wanted / strongest.amount) if strongest and strongest.amount else None,
        ratings_decide=None if decide is None else round(decide, 1),
        keywords=tuple(row.keyword for row in of_several(words, known)[:KEYWORDS]),
        apps=tuple(row.track_name for row in leaders),
        stars=round(sum(stars) / len(stars), 1) if stars else None,
        complaints=await _complaints([row.track_id for row in leaders]),
    )


async def _complaints(track_ids: list[int]) -> tuple[str, ...]:
    """The titles that unhappy reviewers of these apps chose most often."""
    heard: Counter[str] = Counter()
    for track_id in track_ids:
        for title, tone in await db.rows(REVIEWS, track_id=track_id, most=REVIEWS_READ):
            if title and tone is not None and tone <= UNHAPPY:
                heard[title] += 1
    return tuple(sorted(heard, key=lambda title: (-heard[title], title))[:COMPLAINTS])
