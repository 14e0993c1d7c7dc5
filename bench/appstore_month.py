"""What a month of the pipeline would cost at a platform's prices: thirty virtual days, all crons on, nothing free.

    python -m bench.appstore_month FOLDER '{"apps": 3000, "seed": 1, "days": 30}'

The store is known before the month begins. Two in a hundred apps come due each day and have changed; charts, searches,
clusterings and daily runs go on as they do. The stand-in has the limits that Apple is reported to have.

How often the controller looks for an app that is due depends on how dense they come. So they come in rushes, as dense as on
the whole store and for the part of the time that this store is of the whole one. What the enrichment uses in a rush is what
is counted for it. Between rushes it looks for work now and then and finds none: on the whole store that would not happen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from bench.appstore_fill import FILE
from bench.appstore_pipeline import pipeline
from bench.appstore_price import (
    CHANGED_A_DAY,
    CLOCK,
    CLUSTERED,
    DAYS,
    ENRICHED,
    SEARCHES,
    SNAPSHOTS,
    TOLD,
    Part,
    dollars,
    driver_of,
    parts,
    times,
    total,
)
from bench.appstore_process import given, tell, told
from bench.appstore_rows import Calendar, Size
from bench.report import Bar, Report, Row, number, table
from penstock.cli.output import Output, progress
from penstock.model.prices import GROSS, Usage, cost
from penstock.testing import run
from penstock_systems.appstore.app import db, html_cache
from penstock_systems.appstore.cluster.task import TOP
from penstock_systems.standins.appstore import Manners
from penstock_systems.standins.appstore.scale import APPS

DAY_SECONDS = 86_400
RUSH_SECONDS_MIN = 1_200
LATE_SECONDS = 120  # that an app is enriched after it was due
USD_MAX = 1.0
BILLED_BEFORE, BILLED_AFTER = 19.63, 0.50  # rows read before it was mended, and everything after
REAL_PAGE_BYTES = 500_000  # of a product page of the real store; the stand-in's are smaller here
FREED_DAYS = 30  # that a page is kept

USED = """
select task, statement, executions, rows_read, rows_written, micros
from penstock_usage
where month = :month
"""
STEPS = """
select pipelines.name as run, pipeline_steps.counts
from pipeline_steps
join pipelines on pipelines.id = pipeline_steps.pipeline_id
where pipeline_steps.name = :step
and pipelines.status = 'done'
"""
HEAD = ("driven by", "measured", "on the whole store", "read each", "written each", "measured $", "extrapolated $")


# -- in a process of its own ----------------------------------------------------------------------------------------


async def month(size: Size, seed: int, days: int, calendar: Calendar) -> dict[str, Any]:
    manners = Manners.apple(whole_pages=False)
    dense: dict[str, Usage] = {}
    async with pipeline(FILE, size.catalogue(seed), manners=manners, seed=seed) as it:
        began = await db.now()

        async def until(at: float) -> None:
            passed = (it.running.now - calendar.start).total_seconds()
            await it.running.advance(seconds=max(0.0, at * DAY_SECONDS - passed))

        with progress(Output(), f"{days} days, {size.apps:,} apps", days) as moved:
            for rush in range(days // calendar.every):
                opens = calendar.opens(rush)
                await until(opens)
                before = await _used(began[:7])
                await until(opens + calendar.rush_days + LATE_SECONDS / DAY_SECONDS)
                for name, until_now in (await _used(began[:7])).items():
                    if driver_of(name) == ENRICHED:
                        more = until_now + times(before.get(name, Usage()), -1)
                        dense[name] = dense.get(name, Usage()) + more
                for day in range(rush * calendar.every, (rush + 1) * calendar.every):
                    await until(day + 1)
                    moved(day + 1)
        usage = await db.usage(began[:7])
        used = {name: each for name, each in (await _used(began[:7])).items() if driver_of(name) != ENRICHED}
        counts = await _counts(began, days) | {SEARCHES: it.store.truth().books["search"].answered}
        books = {name: [book.requests, book.answered] for name, book in it.store.truth().books.items()}
    pages = _kept_pages()
    return {
        "total": asdict(usage.total),
        "used": {name: asdict(each) for name, each in (used | dense).items()},
        "counts": counts,
        "books": books,
        "pages": len(pages),
        "page_bytes": sum(pages),
    }


def _kept_pages() -> list[int]:
    """The bytes of each page in the cache."""
    return [path.stat().st_size for path in Path(html_cache.path).rglob("*.html")]


async def _used(month: str) -> dict[str, Usage]:
    """By task, queue and class of objects: what it read and wrote, what was sent, what was called and took how long."""
    used: dict[str, Usage] = {}
    await db.usage(month)  # what is still in memory is saved
    for row in await db.rows(USED, month=month):
        match row.statement:
            case "penstock:queue_operations":
                found = {row.task: Usage(queue_operations=row.executions)}
            case "penstock:object_requests":
                calls, seconds = Usage(object_requests=row.executions), Usage(object_seconds=row.micros / 1e6)
                found = {f"calls:{row.task}": calls, row.task: seconds}
            case _:
                found = {row.task: Usage(rows_read=row.rows_read, rows_written=row.rows_written)}
        for name, more in found.items():
            used[name] = used.get(name, Usage()) + more
    return used


async def _counts(began: str, days: int) -> dict[str, float]:
    read = [msgspec.json.decode(row.counts) for row in await db.rows(STEPS, step="read")]
    taken = [msgspec.json.decode(row.counts) for row in await db.rows(STEPS, step="snapshots")]
    enriched = await db.value(
        "select count(*) from (select 1 from app_registry where enriched_at >= :began) as done", began=began
    )
    markets = await db.value("select count(*) from (select 1 from market_clusters where ended_at is null) as standing")
    return {
        ENRICHED: enriched,
        CLOCK: days,
        CLUSTERED: sum(each["rankings"] + each["apps"] for each in read),
        TOLD: len(read) * min(TOP, markets),
        SNAPSHOTS: sum(each["apps"] for each in taken),
        "clusterings": len(read),
        "busy cycles": await db.value("select count(*) from (select 1 from crawl_log) as cycles"),
    }


def main() -> None:
    options = given()
    size, seed, calendar = Size(options["apps"]), options["seed"], Calendar(**options["calendar"])
    tell(run(lambda: month(size, seed, options["days"], calendar), seed=seed, patience=3_600.0))


# -- the reporting side ---------------------------------------------------------------------------------------------


def measure(
    report: Report, folder: Path, *, apps: int, seed: int, say: Callable[[str], None], days: int = DAYS
) -> None:
    dense = apps / APPS
    every = min(divisor for divisor in (1, 2, 3, 5, 6, 10, 15, 30, days) if _long_enough(divisor, dense, days))
    calendar = {"quiet": 0.0, "enrich": 1 / CHANGED_A_DAY, "every": every, "dense": dense}
    told("appstore_fill", folder, apps=apps, seed=seed, calendar=calendar, mentions=True)
    found = told("appstore_month", folder, apps=apps, seed=seed, days=days, calendar=calendar)
    used = {name: Usage(**each) for name, each in found["used"].items()}
    divided = parts(used, found["counts"])
    _say(found, divided, apps, days, say)
    _fill(report, found, divided, apps, days)


def _say(found: dict[str, Any], divided: list[Part], apps: int, days: int, say: Callable[[str], None]) -> None:
    counts, books = found["counts"], found["books"]
    requests = sum(book[0] for book in books.values())
    say(
        f"  {days} days: {counts[ENRICHED]:,} apps enriched again, {books['search'][0]:,} searches, "
        f"{counts['busy cycles']:,} busy cycles of {days * 288:,}, {counts['clusterings']} clusterings, {requests:,} requests"
    )
    lines = [
        (
            part.driver,
            number(part.measured),
            number(part.whole),
            f"{part.each('rows_read'):.2f}",
            f"{part.each('rows_written'):.2f}",
            f"{dollars(part.used):.4f}",
            f"{dollars(part.extrapolated):.4f}",
        )
        for part in divided
    ]
    say("")
    say(table(HEAD, lines))
    say("")
    measured, whole = (total(divided, extrapolated=each) for each in (False, True))
    for name in ("rows_read", "rows_written", "queue_operations", "object_requests", "object_seconds"):
        mine, theirs = (cost(each, GROSS, days=DAYS).line(name) for each in (measured, whole))
        say(
            f"  {name}: {mine.used:,.0f} measured ({mine.usd:.4f} $), {theirs.used:,.0f} extrapolated ({theirs.usd:.4f} $)"
        )
    kept = APPS * CHANGED_A_DAY * FREED_DAYS
    mean = found["page_bytes"] / max(1, found["pages"])
    say(
        f"  not metered: pages kept. {found['pages']:,} of {mean / 1e3:.0f} KB here. On the whole store {kept:,.0f}: "
        f"{_storage(kept * mean):.2f} $ a month at this size, {_storage(kept * REAL_PAGE_BYTES):.2f} $ at half a megabyte"
    )


def _long_enough(every: int, dense: float, days: int) -> bool:
    """Whether a rush of so many days lasts long enough for its end not to count, if there is time for it."""
    return days % every == 0 and (every * dense * DAY_SECONDS >= RUSH_SECONDS_MIN or every == days)


def _storage(size: float) -> float:
    return cost(Usage(blob_bytes=round(size)), GROSS, days=DAYS).usd


def _fill(report: Report, found: dict[str, Any], divided: list[Part], apps: int, days: int) -> None:
    whole = dollars(total(divided, extrapolated=True))
    # The bill is that of everything metered, whatever part it was put into.
    measured = dollars(Usage(**found["total"]))
    name, on_all = f"month, {apps:,} apps: price", f"month, extrapolated to {APPS:,} apps: price"
    report.rows += [
        Row("penstock", name, measured, "USD", BILLED_BEFORE, measured / BILLED_BEFORE, durability="off"),
        Row("penstock", on_all, whole, "USD", BILLED_BEFORE, whole / BILLED_BEFORE, durability="off"),
        Row("the articles", "month, 1,100,000 apps: rows read, before the fix", BILLED_BEFORE, "USD"),
        Row("the articles", "month, 1,100,000 apps: price afterwards", BILLED_AFTER, "USD"),
    ]
    for part in divided:
        label = f"month, extrapolated to {APPS:,} apps: {part.driver}"
        report.rows.append(Row("penstock", label, dollars(part.extrapolated), "USD", durability="off"))
    if days == DAYS:
        report.bars += [
            Bar(name, measured, USD_MAX, at_most=True, unit="USD"),
            Bar(on_all, whole, USD_MAX, at_most=True, unit="USD"),
        ]
    else:
        report.skip("month: the bars", f"{days} days are no month")


if __name__ == "__main__":
    main()
