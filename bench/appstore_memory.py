"""The memory of the pipeline's process by how many apps the registry has: it should not matter.

    python -m bench.appstore_memory FOLDER '{"url": "http://127.0.0.1:8788", "enriched": 500, "cycles": 1}'

In real time, over HTTP, against a stand-in that is a process of its own. Everything in the registry is due: the controller
enriches, and a crawl cycle reads charts and searches. Clustering and the daily run stand still; what the clustering needs is
measured by itself.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.appstore_enrich import started
from bench.appstore_fill import FILE
from bench.appstore_process import given, peak_mb, resident_mb, tell, told
from bench.report import Bar, Report, Row, table
from penstock.cli.output import Output, progress
from penstock.cli.worker import GARBAGE_THRESHOLD
from penstock_systems.appstore.app import app, db, settings, web
from penstock_systems.appstore.stages import app as staged

assert staged is app

POLL_SECONDS = 0.5
SECONDS_MAX = 900.0
MORE_MAX = 1.25  # times the memory that the smallest registry needs
HEAD = ("apps in the registry", "MB before", "MB afterwards", "MB at most", "enriched", "searches", "s")

ENRICHED = "select count(*) from (select 1 from app_registry where enriched_at > :began limit 10000) as done"
CYCLES = "select count(*) from (select 1 from crawl_log where started_at >= :began limit 100) as cycles"
SEARCHED = (
    "select count(*) from (select 1 from crawl_keywords where last_searched_at >= :began limit 10000) as searched"
)


# -- in a process of its own ----------------------------------------------------------------------------------------


async def worked(url: str, enriched: int, cycles: int) -> dict[str, Any]:
    app.database = FILE
    for host in (settings.bases.itunes, settings.bases.search, settings.bases.apps):
        web.forward(host, url)
    await app._opened()
    for name in ("cluster", "daily"):
        await app.crons.pause(name)
    gc.collect()
    before, began, start = resident_mb(), await db.now(), time.perf_counter()
    running = asyncio.ensure_future(app.run())
    await app.crons.trigger("crawl")
    with progress(Output(), f"{await db.count('app_registry'):,} apps in the registry", enriched) as moved:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            done, crawled = await db.value(ENRICHED, began=began), await db.value(CYCLES, began=began)
            moved(min(done, enriched))
            if done >= enriched and crawled >= cycles:
                break
            assert not running.done(), "the app has ended"
            assert time.perf_counter() - start < SECONDS_MAX, f"only {done} apps were enriched, in {crawled} cycles"
    gc.collect()
    found = {
        "apps": await db.count("app_registry"),
        "before_mb": before,
        "resident_mb": resident_mb(),
        "peak_mb": peak_mb(),
        "enriched": done,
        "searches": await db.value(SEARCHED, began=began),
        "seconds": time.perf_counter() - start,
    }
    app.stop()
    await running
    return found


def main() -> None:
    options = given()
    gc.set_threshold(GARBAGE_THRESHOLD)  # as a worker process of `penstock run` sets itself up
    tell(asyncio.run(worked(options["url"], options["enriched"], options["cycles"])))


# -- the reporting side ---------------------------------------------------------------------------------------------


def measure(
    report: Report,
    folder: Path,
    *,
    sizes: Sequence[int],
    enriched: int,
    cycles: int,
    seed: int,
    say: Callable[[str], None],
) -> None:
    found = []
    for apps in sizes:
        place = folder / f"memory-{apps}"
        place.mkdir()
        told("appstore_fill", place, apps=apps, seed=seed)
        with started("appstore_standin", place, apps=apps, seed=seed, keeps=False) as store:
            found.append(told("appstore_memory", place, url=store.answer()["url"], enriched=enriched, cycles=cycles))
        say(f"  {apps:,} apps: {found[-1]['resident_mb']:.0f} MB")
    say("\n" + table(HEAD, [_line(each) for each in found]) + "\n")
    fill(report, found)


def fill(report: Report, found: list[dict[str, Any]]) -> None:
    least, most = found[0], found[-1]
    for each in found:
        ratio = each["resident_mb"] / least["resident_mb"]
        name = f"memory: {each['apps']:,} apps in the registry"
        report.rows.append(Row("penstock", name, each["resident_mb"], "MB", least["resident_mb"], ratio))
    if most is not least:
        ratio = most["resident_mb"] / least["resident_mb"]
        name = f"memory: {most['apps']:,} apps in the registry"
        report.bars.append(Bar(name, ratio, MORE_MAX, at_most=True, unit=f"x {least['apps']:,}"))


def _line(found: dict[str, Any]) -> tuple[str, ...]:
    sizes = (f"{found[name]:.1f}" for name in ("before_mb", "resident_mb", "peak_mb"))
    return (f"{found['apps']:,}", *sizes, f"{found['enriched']:,}", f"{found['searches']:,}", f"{found['seconds']:.0f}")


if __name__ == "__main__":
    main()
