"""A crawl cycle: looks what is due, does what counts most with the rest beside it, each on its own, and tells of it once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from random import Random
from typing import Any

import msgspec

import penstock as ps
from penstock.data import cut
from penstock_systems.appstore.app import SERVICE, app, db
from penstock_systems.appstore.crawl import convergence, untold
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.crawl.charts import scan_charts
from penstock_systems.appstore.crawl.completions import ask_for_completions
from penstock_systems.appstore.crawl.filling import fill_rankings
from penstock_systems.appstore.crawl.gaps import Gaps, Phase, assess, beside, primary, something_to_crawl
from penstock_systems.appstore.crawl.mapping import KEYWORDS_A_CYCLE, KEYWORDS_BESIDE, map_keywords
from penstock_systems.appstore.crawl.purchases import backfill_purchases
from penstock_systems.appstore.crawl.rankings import Results
from penstock_systems.appstore.crawl.searching import RESULTS, Searches
from penstock_systems.appstore.crawl.stats import Stats
from penstock_systems.appstore.outside import store

READS_A_MONTH = 1_000_000_000  # a dollar's worth; a busy month reads a tenth of it
ERRORS_MAX = 20  # that are kept of one cycle
ERROR_CHARACTERS_MAX = 300

LOG = """
insert into crawl_log (id, phase, stats, started_at, finished_at, error)
values (:id, :phase, :stats, :started_at, :finished_at, :error)
on conflict (id) do update set
  phase = excluded.phase, stats = excluded.stats, finished_at = excluded.finished_at, error = excluded.error
"""

points = app.metrics("platform_metrics", service=SERVICE)
_log = logging.getLogger("penstock_systems.appstore")


@app.cron(
    "*/5 * * * *",
    name="crawl",
    reason="charts change within hours and the store allows about twenty searches a minute, which five minutes use",
    when=something_to_crawl,
    ceiling=ps.Ceiling(rows_read=READS_A_MONTH),
)
async def crawl(tick: ps.Tick) -> None:
    """All tasks of a cycle run side by side. What a cycle cannot finish in its time is there for the next one."""
    started_at = await db.now()
    scheduled_at = f"{tick.scheduled_at:%Y-%m-%d %H:%M:%S}"
    gaps = await assess()
    stats = Stats(keywords_with_new_rankings=await untold.left())
    stats.enrichment.waiting = gaps.unenriched
    chance = Random(int(tick.scheduled_at.timestamp()))
    await Cycle(gaps, stats, await convergence.load(), chance, scheduled_at).run()
    await _tell(stats, started_at=started_at, scheduled_at=scheduled_at)
    tick.phase = stats.phase


class Cycle:
    """The tasks that are needed, and what they share."""

    def __init__(self, gaps: Gaps, stats: Stats, window: convergence.Window, chance: Random, scheduled_at: str) -> None:
        self._gaps = gaps
        self._stats = stats
        self._chance = chance
        self._scheduled_at = scheduled_at
        self._budget = Budget()
        self._searches = Searches(lambda keyword: store.search(keyword, limit=RESULTS), self._budget)
        self._results = Results(stats, window)

    async def run(self) -> None:
        first = primary(self._gaps)
        self._stats.phase = first or self._stats.phase
        async with asyncio.TaskGroup() as tasks:
            if first is not None:
                tasks.create_task(self._guarded(first, self._task(first, KEYWORDS_A_CYCLE)))
            for phase in beside(self._gaps):
                tasks.create_task(self._guarded(phase, self._task(phase, KEYWORDS_BESIDE)))
            if self._gaps.completions:
                tasks.create_task(self._guarded("completions", self._complete()))
            if self._gaps.purchases:
                tasks.create_task(self._guarded("purchases", backfill_purchases(self._stats, self._budget)))
        if self._searches.is_down:
            self._stats.errors.append(f"search: {self._searches.closed}")
        elif self._searches.closed is not None:
            self._stats.held_back = cut(self._searches.closed.replace("\0", ""), ERROR_CHARACTERS_MAX)

    async def _complete(self) -> None:
        self._stats.keywords_completed += await ask_for_completions(self._budget)

    def _task(self, phase: Phase, keywords: int) -> Coroutine[Any, Any, None]:
        match phase:
            case "category_scan":
                return scan_charts(self._stats, self._budget, self._chance, self._scheduled_at)
            case "keyword_mapping":
                return map_keywords(self._searches, self._results, self._budget, most=keywords)
            case "ranking_fill":
                return fill_rankings(self._stats, self._searches, self._results, self._budget)

    async def _guarded(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """One task's failure is told and harms no other."""
        try:
            await work
        except Exception as error:
            _log.exception("The task %s of a crawl cycle failed.", name)
            self._stats.errors.append(f"{name}: {type(error).__name__}: {error}")


async def _tell(stats: Stats, *, started_at: str, scheduled_at: str) -> None:
    """The cycle's log, event, data point and summary. The first two are saved with the run itself."""
    finished_at = await db.now()
    stats.errors[:] = [cut(error.replace("\0", ""), ERROR_CHARACTERS_MAX) for error in stats.errors[:ERRORS_MAX]]
    db.write(
        LOG,
        id=f"crawl {scheduled_at}",
        phase=stats.phase,
        stats=db.json(stats),
        started_at=started_at,
        finished_at=finished_at,
        error="; ".join(stats.errors) or None,
    )
    messages = untold.tell(stats.keywords_with_new_rankings)
    points.write(blobs=(SERVICE, "cron", stats.phase), doubles=stats.doubles, index=SERVICE)
    facts = msgspec.to_builtins(stats) | {
        "keywords_with_new_rankings": len(stats.keywords_with_new_rankings),
        "messages": messages,
    }
    _log.info("crawl.finished", extra={"facts": facts})
