"""Category scan: reads the charts that are due, and saves each whole: apps, places, history, keywords, outcome."""

from __future__ import annotations

import logging
from random import Random

import penstock as ps
from penstock.data import chunks, cut
from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.crawl import keyword_list, registry
from penstock_systems.appstore.crawl.budget import Budget
from penstock_systems.appstore.crawl.stats import Stats
from penstock_systems.appstore.crawl.tiers import Category, choose, next_scan
from penstock_systems.appstore.keywords import discovered
from penstock_systems.appstore.moments import after
from penstock_systems.appstore.outside import store
from penstock_systems.appstore.store.facts import Found

CATEGORIES_A_CYCLE = 3
APPS_A_CHART = 200
PLACES_A_BATCH = 50  # with as many rows of history beside them
DUE_MAX = 1_000  # charts that are looked at to choose from; the list has 93
PUSHED_BACK_SECONDS = 600.0  # a chart that the store refused waits at least so long
ERROR_MAX = 300  # characters

DUE = """
select id, collection, category, priority, sort_order, scanned_at, attempts
from category_scans
where priority in ('high', 'active', 'medium', 'low')
and next_scan_at <= :now
limit :most
"""
OUTCOME = """
update category_scans
set scanned_at = coalesce(cast(:scanned_at as text), scanned_at), apps_found = coalesce(cast(:found as bigint), apps_found),
  attempts = :attempts, last_error = :error, next_scan_at = :again
where id = :id
"""
LEFT_THE_CHART = """
delete from chart_positions
where collection = :collection
and category = :category
and snapshot_at < :now
"""

_log = logging.getLogger("penstock_systems.appstore")


async def scan_charts(stats: Stats, budget: Budget, chance: Random, scheduled_at: str) -> None:
    """The charts of one cycle, one after the other. One that fails does not hold up the next; a refusal ends it."""
    rows = await db.rows(DUE, now=await db.now(), most=DUE_MAX)
    due = [Category(**row.asdict()) for row in rows]
    for category in choose(due, chance, CATEGORIES_A_CYCLE):
        if not budget.is_open:
            break
        try:
            async with budget.cut():
                apps = await store.chart(category.collection, int(category.category), limit=APPS_A_CHART)
            stats.apps_discovered += await save_chart(category, apps, scan_id=f"{category.id}@{scheduled_at}")
            stats.categories_scanned += 1
        except TimeoutError:
            break  # the cycle's time is over; the chart stays due
        except ps.Throttled as error:
            await _push_back(category, error)
            stats.errors.append(f"{_shown(category)}: {error}")
            break
        except Exception as error:
            await _failed(category, error)
            stats.errors.append(f"{_shown(category)}: {type(error).__name__}: {error}")


async def save_chart(category: Category, apps: list[Found], *, scan_id: str) -> int:
    """All of one chart in one unit, and how many of its apps nobody knew. A scan that is saved twice is saved once."""
    now = await db.now()
    fresh = {app.track_id for app in apps} - await registry.known(app.track_id for app in apps)
    async with app.unit():
        if apps:
            registry.write_found(apps, source="chart", now=now)
            _write_places(category, apps, scan_id=scan_id, now=now)
            made = (keyword for each in apps for keyword in discovered(each.title or "", settings.alphabet))
            keyword_list.add(made, source="category_scan", now=now)
        _note(
            category,
            scanned_at=now,
            found=len(apps),
            attempts=0,
            error=None if apps else "The chart was empty.",
            again=next_scan(category, now, empty=not apps),
        )
    return len(fresh)


def _write_places(category: Category, apps: list[Found], *, scan_id: str, now: str) -> None:
    places: list[dict[str, object]] = [
        {
            "track_id": each.track_id,
            "collection": category.collection,
            "category": category.category,
            "rank": each.rank or place,
            "snapshot_at": now,
        }
        for place, each in enumerate(apps, 1)
    ]
    for batch in chunks(places, PLACES_A_BATCH):
        db.upsert("chart_positions", batch, key=("track_id", "collection", "category"))
        db.insert_many("chart_position_history", [{"scan_id": scan_id, **place} for place in batch])
    db.write(LEFT_THE_CHART, collection=category.collection, category=category.category, now=now)


async def _failed(category: Category, error: Exception) -> None:
    now = await db.now()
    _log.warning("%s could not be scanned: %s", _shown(category), error)
    async with app.unit():
        _note(
            category,
            attempts=category.attempts + 1,
            error=f"{type(error).__name__}: {error}",
            again=next_scan(category, now, failed=True),
        )


async def _push_back(category: Category, error: ps.Throttled) -> None:
    """The store has had enough of us, not of this chart: it waits without being charged."""
    again = after(await db.now(), seconds=max(PUSHED_BACK_SECONDS, error.retry_after or 0.0))
    async with app.unit():
        _note(category, attempts=category.attempts, error=str(error), again=again)


def _note(
    category: Category,
    *,
    attempts: int,
    again: str,
    error: str | None,
    scanned_at: str | None = None,
    found: int | None = None,
) -> None:
    db.write(
        OUTCOME,
        id=category.id,
        scanned_at=scanned_at,
        found=found,
        attempts=attempts,
        error=None if error is None else cut(error.replace("\0", ""), ERROR_MAX),
        again=again,
    )


def _shown(category: Category) -> str:
    return f"{category.collection}/{category.category}"
