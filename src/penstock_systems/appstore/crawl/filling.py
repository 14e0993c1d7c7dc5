"""Ranking fill: apps that rank for nothing yet are searched for by their own words, the best known first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.crawl import keyword_list
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.crawl.convergence import DEPTH_MAX
from penstock_systems.appstore.crawl.rankings import Keyword, Results
from penstock_systems.appstore.crawl.searching import PARALLEL, PAUSE_SECONDS, Searches
from penstock_systems.appstore.crawl.stats import Stats
from penstock_systems.appstore.keywords import of_app

APPS_A_CYCLE = 10
KEYWORDS_AN_APP = 5

UNRANKED = """
select track_id, track_name, subtitle
from app_registry
where enrichment_source = 'scraper'
and ranked_at is null
order by rating_count desc, track_id
limit :most
"""
TRIED_ALREADY = """
select keyword
from crawl_keywords
where keyword in (:k0, :k1, :k2, :k3, :k4, :k5, :k6, :k7, :k8, :k9)
and status <> 'pending'
"""
TRIED = "update app_registry set ranked_at = :now where track_id = :track_id and ranked_at is null"
RANKS = "select 1 from crawl_rankings where track_id = :track_id limit 1"


async def fill_rankings(stats: Stats, searches: Searches, results: Results, budget: Budget) -> None:
    """Each app gains a rank or is marked as tried. One whose searches the store refused keeps its place."""
    for number, found in enumerate(await db.rows(UNRANKED, most=APPS_A_CYCLE)):
        if number and not await budget.pause(PAUSE_SECONDS):
            break
        if not searches.is_open:
            break
        keywords = await _offer(found)
        await results.save(await searches.group(list(keywords)), keywords)
        if searches.closed is not None:
            break
        stats.apps_ranked += await db.exists(RANKS, track_id=found.track_id)
        now = await db.now()
        async with app.unit():
            db.write(TRIED, track_id=found.track_id, now=now)


async def _offer(found: Any) -> dict[str, Keyword]:
    """Puts the app's keywords on the list, and gives the best few of those that nobody has searched for."""
    made = of_app(found.track_name, found.subtitle, settings.alphabet)
    tried = await _tried_already(made[:PARALLEL])
    now = await db.now()
    async with app.unit():
        # They tell where this app stands, and lead no further: else the depth of a crawl would have no end.
        keyword_list.add(made, source="ranking_fill", depth=DEPTH_MAX, now=now)
    best = [keyword for keyword in made[:PARALLEL] if keyword not in tried][:KEYWORDS_AN_APP]
    return {keyword: Keyword(depth=DEPTH_MAX) for keyword in best}


async def _tried_already(keywords: Sequence[str]) -> set[str]:
    if not keywords:
        return set()
    padded = [*keywords, *[keywords[-1]] * (PARALLEL - len(keywords))]
    return set(await db.column(TRIED_ALREADY, {f"k{place}": keyword for place, keyword in enumerate(padded)}))
