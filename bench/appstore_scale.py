"""The pipeline on the whole store: what an idle cycle reads, how its queries go, and what the clustering takes.

    python -m bench.appstore_scale FOLDER '{"do": "idle", "apps": 22000, "seed": 1, "database": "market.db"}'

Each look is a process of its own on the same filled database: a file, or a database of a PostgreSQL server that the
measurement starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.appstore_fill import FILE
from bench.appstore_pipeline import pipeline
from bench.appstore_process import given, peak_mb, resident_mb, tell, told
from bench.appstore_rows import Size
from bench.report import Bar, Report, Row, number
from penstock.testing import run
from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.cluster.crawled import crawled
from penstock_systems.appstore.cluster.standing import standing

IDLE_MINUTES = 31
CRAWL = "cron.crawl:crawl"
SERVER_SETTINGS = ("shared_buffers=512MB", "max_wal_size=8GB")
FOLLOWING_MINUTES = 30  # in which everything has happened that a clustering leads to
CLUSTER_SECONDS_MAX, CLUSTER_MB_MAX = 60.0, 2_000.0
Answer = dict[str, Any]


# -- in a process of its own ----------------------------------------------------------------------------------------


async def idle(database: str, size: Size, seed: int) -> Answer:
    """Half an hour in which nothing is due. The first cycle also looks at its own plans; the others do not."""
    async with pipeline(database, size.catalogue(seed), seed=seed) as it:
        before = await _spent()
        await it.running.advance(minutes=IDLE_MINUTES)
        after = await _spent()
        ticks = await db.rows("select status, rows_read from penstock_ticks where schedule = 'crawl' order by due")
        assert {tick.status for tick in ticks} == {"idle"}, f"a cycle was not idle: {ticks}"
        assert it.requests == 0, f"an idle pipeline made {it.requests} requests"
        probes = [
            each.statement
            for each in (await db.usage()).statements
            if each.task == CRAWL and not each.statement.startswith("explain")
        ]
        rest = {task: rows - before.get(task, (0, 0))[0] for task, (rows, _) in after.items() if task != CRAWL}
        return {
            "cycles": len(ticks),
            "probes": len(probes),
            "rows_read": max(tick.rows_read for tick in ticks),
            "elsewhere": sum(rest.values()) / len(ticks),
        }


async def compute(database: str, size: Size, seed: int) -> Answer:
    """The clustering alone: what was crawled is read, and markets are computed of it."""
    from penstock_systems.appstore.cluster.markets import computed

    async with pipeline(database, size.catalogue(seed), seed=seed):
        before, began = resident_mb(), time.perf_counter()
        found = await crawled()
        await standing()
        read = time.perf_counter()
        made = computed(found, finer=settings.cluster_resolution)
        ended = time.perf_counter()
        return {
            "before_mb": before,
            "peak_mb": peak_mb(),
            "read_seconds": read - began,
            "compute_seconds": ended - read,
            "markets": len(made.markets),
        }


async def whole_run(database: str, size: Size, seed: int) -> Answer:
    """The task as the cron runs it, with all that it saves; then what its message leads to."""
    async with pipeline(database, size.catalogue(seed), seed=seed) as it:
        for name in ("crawl", "daily"):
            await app.crons.pause(name)
        before = await _spent()
        await app.crons.trigger("cluster")
        began = time.perf_counter()
        await it.running.advance(seconds=1)
        ran, peak = time.perf_counter() - began, peak_mb()
        status = await db.value("select status from pipelines where name = 'cluster' order by started_at desc limit 1")
        assert status == "done", f"the clustering is {status}"
        between = await _spent()
        await it.running.advance(minutes=FOLLOWING_MINUTES)
        after = await _spent()
        return {
            "run_seconds": ran,
            "run_peak_mb": peak,
            "run": _more(before, between),
            "followed": _more(between, after),
        }


async def _spent() -> dict[str, tuple[int, int]]:
    return {each.task: (each.rows_read, each.rows_written) for each in (await db.usage()).tasks}


def _more(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Rows read and written meanwhile by anything but this look itself."""
    tasks = [task for task in after if task]
    nothing = (0, 0)
    read, written = (sum(after[task][at] - before.get(task, nothing)[at] for task in tasks) for at in (0, 1))
    return read, written


LOOKS: dict[str, Callable[[str, Size, int], Any]] = {"idle": idle, "compute": compute, "run": whole_run}


def main() -> None:
    options = given()
    look = LOOKS[options["do"]]
    size, seed = Size(options["apps"]), options["seed"]
    tell(run(lambda: look(options["database"], size, seed), seed=seed, patience=3_600.0))


# -- the reporting side ---------------------------------------------------------------------------------------------


def measure(report: Report, folder: Path, *, apps: int, seed: int, say: Callable[[str], None]) -> None:
    _fill(report, folder, "scale", FILE, apps, seed, say)
    _plans(report, folder, apps, say)
    _look(report, folder, "scale", FILE, apps, seed, say)


def measure_on_server(report: Report, folder: Path, *, apps: int, seed: int, say: Callable[[str], None]) -> None:
    """The same on PostgreSQL, without the plans, which are SQLite's."""
    from tests.postgres_server import FAST, running_server

    with running_server(settings=(*FAST, *SERVER_SETTINGS)) as server:
        database = server.new_database()
        _fill(report, folder, "postgres", database, apps, seed, say)
        _look(report, folder, "postgres", database, apps, seed, say)


def _fill(
    report: Report, folder: Path, part: str, database: str, apps: int, seed: int, say: Callable[[str], None]
) -> None:
    filled = told("appstore_fill", folder, apps=apps, seed=seed, database=database)
    tables = ", ".join(f"{rows:,} {name}" for name, rows in filled["tables"].items())
    rate = filled["rows"] / filled["seconds"]
    say(f"  filled: {tables}; {filled['megabytes']:,.0f} MB, {number(rate)} rows/s in {filled['seconds']:.0f} s")
    report.rows += [
        Row("penstock", f"{part}, {apps:,} apps: rows filled in", rate, "rows/s", durability="off"),
        Row("penstock", f"{part}, {apps:,} apps: database", filled["megabytes"], "MB", durability="off"),
    ]


def _look(
    report: Report, folder: Path, part: str, database: str, apps: int, seed: int, say: Callable[[str], None]
) -> None:
    given = {"apps": apps, "seed": seed, "database": database}
    _idle(report, part, told("appstore_scale", folder, do="idle", **given), apps, say)
    made = told("appstore_scale", folder, do="compute", **given)
    ran = told("appstore_scale", folder, do="run", **given)
    _clustering(report, part, made, ran, apps, say)


def _plans(report: Report, folder: Path, apps: int, say: Callable[[str], None]) -> None:
    plans = told("appstore_plans", folder)
    asked = plans["all_day"] + plans["afterwards"]
    say(
        f"  plans: {asked} statements, {plans['hot']} of them declared hot; {len(plans['wrong'])} read or sort too much"
    )
    for each in plans["wrong"]:
        say(f"    {each}")
    name = f"scale, {apps:,} apps: statements that read a table through or sort"
    report.rows.append(Row("penstock", name, len(plans["wrong"]), "statements", asked, durability="off"))
    report.bars.append(Bar(name, len(plans["wrong"]), 0, at_most=True, unit=f"of {asked} statements"))


def _idle(report: Report, part: str, idle: Answer, apps: int, say: Callable[[str], None]) -> None:
    say(
        f"  idle cycle: {idle['rows_read']} rows read by {idle['probes']} probes, in {idle['cycles']} cycles; "
        f"the engine read {idle['elsewhere']:.0f} rows beside it to know the task's ceiling and its own queues"
    )
    name = f"{part}, {apps:,} apps: rows read by an idle crawl cycle"
    report.rows += [
        Row("penstock", name, idle["rows_read"], "rows", idle["probes"], durability="off"),
        Row("penstock", f"{name}, and by the engine beside it", idle["elsewhere"], "rows", durability="off"),
    ]
    report.bars.append(Bar(name, idle["rows_read"], idle["probes"], at_most=True, unit="rows"))


def _clustering(report: Report, part: str, made: Answer, ran: Answer, apps: int, say: Callable[[str], None]) -> None:
    seconds = made["read_seconds"] + made["compute_seconds"]
    say(
        f"  clustering: {made['markets']} markets in {seconds:.1f} s ({made['read_seconds']:.1f} s to read, "
        f"{made['compute_seconds']:.1f} s to compute), {made['peak_mb']:,.0f} MB at most, {made['before_mb']:.0f} before"
    )
    say(
        f"  the whole task: {ran['run_seconds']:.1f} s, {ran['run_peak_mb']:,.0f} MB, {ran['run'][0]:,} rows read and "
        f"{ran['run'][1]:,} written; what follows from it: {ran['followed'][0]:,} read, {ran['followed'][1]:,} written"
    )
    clustered = ran["run"][0] / (apps + Size(apps).rankings)
    say(f"  for each app and ranking the whole task reads {clustered:.2f} rows")
    name = f"{part}, {apps:,} apps: clustering"
    report.rows += [
        Row("penstock", f"{name}, read and computed", seconds, "s", durability="off"),
        Row("penstock", f"{name}, peak memory", made["peak_mb"], "MB", durability="off"),
        Row("penstock", f"{name}, the whole task", ran["run_seconds"], "s", durability="off"),
        Row("penstock", f"{name}, the whole task, peak memory", ran["run_peak_mb"], "MB", durability="off"),
        Row("penstock", f"{name}, rows read by the whole task", ran["run"][0], "rows", durability="off"),
        Row("penstock", f"{name}, rows written by the whole task", ran["run"][1], "rows", durability="off"),
        Row("penstock", f"{name}, rows read by what follows", ran["followed"][0], "rows", durability="off"),
        Row("penstock", f"{name}, rows written by what follows", ran["followed"][1], "rows", durability="off"),
    ]
    report.bars += [
        Bar(f"{name}, read and computed", seconds, CLUSTER_SECONDS_MAX, at_most=True, unit="s"),
        Bar(f"{name}, peak memory", made["peak_mb"], CLUSTER_MB_MAX, at_most=True, unit="MB"),
    ]


if __name__ == "__main__":
    main()
