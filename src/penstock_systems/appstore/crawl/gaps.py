"""What is due: six gaps, each an existence probe through the index that holds nothing else. The look before a cycle and
the cycle itself ask the same texts."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec

from penstock_systems.appstore.app import db

Phase = Literal["category_scan", "keyword_mapping", "ranking_fill"]
PURCHASES_MANY = 500  # beyond so many apps the backfill takes more of them at once

CHART_DUE = """
select 1
from category_scans
where priority in ('high', 'active', 'medium', 'low')
and next_scan_at <= :now
limit 1
"""
APP_UNRANKED = """
select 1
from app_registry
where enrichment_source = 'scraper'
and ranked_at is null
limit 1
"""
KEYWORD_PENDING = "select 1 from crawl_keywords where status = 'pending' limit 1"
KEYWORD_DUE = "select 1 from crawl_keywords where next_search_at <= :now limit 1"
SEED_UNPLANTED = "select 1 from crawl_seeds where planted_at is null limit 1"
UNANNOUNCED = "select 1 from crawl_state where name = 'unannounced' limit 1"
APP_WITHOUT_PURCHASES = """
select 1
from app_registry
where enrichment_source = 'scraper'
and iap_scraped_at is null
limit 1
"""
APPS_WITHOUT_PURCHASES = """
select 1
from app_registry
where enrichment_source = 'scraper'
and iap_scraped_at is null
"""
KEYWORD_UNTYPED = "select 1 from crawl_keywords where typed_due <= :now limit 1"
APP_UNENRICHED = """
select 1
from app_registry
where enriched_at is null
and next_enrich_at is null
limit 1
"""


class Gaps(msgspec.Struct, frozen=True, kw_only=True):
    """What is missing. Enriching is the controller's work: that gap is told, and no cycle begins because of it."""

    charts: bool = False
    unranked: bool = False
    keywords: bool = False
    purchases: bool = False
    completions: bool = False
    unenriched: bool = False

    @property
    def any_of_ours(self) -> bool:
        return self.charts or self.unranked or self.keywords or self.purchases or self.completions


async def assess() -> Gaps:
    """All six at once, one row each at most."""
    now = await db.now()
    charts, unranked, keywords, purchases, completions, unenriched = await asyncio.gather(
        db.exists(CHART_DUE, now=now),
        db.exists(APP_UNRANKED),
        _keyword_due(now),
        db.exists(APP_WITHOUT_PURCHASES),
        db.exists(KEYWORD_UNTYPED, now=now),
        db.exists(APP_UNENRICHED),
    )
    return Gaps(
        charts=charts,
        unranked=unranked,
        keywords=keywords,
        purchases=purchases,
        completions=completions,
        unenriched=unenriched,
    )


async def something_to_crawl() -> bool:
    """Return whether a cycle has to begin: some of its work is due, or something it found is not announced yet."""
    gaps, untold = await asyncio.gather(assess(), db.exists(UNANNOUNCED))
    return gaps.any_of_ours or untold


async def many_without_purchases() -> bool:
    return await db.more_than(PURCHASES_MANY, APPS_WITHOUT_PURCHASES)


async def _keyword_due(now: str) -> bool:
    """A keyword waits, or its time has come again, or somebody has named one."""
    return await db.exists(KEYWORD_PENDING) or await db.exists(KEYWORD_DUE, now=now) or await db.exists(SEED_UNPLANTED)


def primary(gaps: Gaps) -> Phase | None:
    """The one task that counts most for what is found next."""
    if gaps.charts:
        return "category_scan"
    if gaps.keywords:
        return "keyword_mapping"
    return "ranking_fill" if gaps.unranked else None


def beside(gaps: Gaps) -> list[Phase]:
    """What is needed as well and is not the primary task. A chart is read as primary task or not at all: it comes first."""
    needed: list[Phase] = []
    if gaps.keywords:
        needed.append("keyword_mapping")
    if gaps.unranked:
        needed.append("ranking_fill")
    return [phase for phase in needed if phase != primary(gaps)]
