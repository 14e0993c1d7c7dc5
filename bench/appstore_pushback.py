"""Six days against a store that pushes back: what share of the requests succeeds, and whether anything good is lost.

    python -m bench.appstore_pushback FOLDER '{"apps": 3000, "seed": 1, "days": 6}'

In virtual time, from an empty database. The store refuses as Apple is reported to: with 403 and without a word about how
long, at a limit that changes with the hour, and for a quarter of an hour to whoever goes on regardless. Some answers fail.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.appstore_fill import FILE
from bench.appstore_pipeline import Pipeline, pipeline
from bench.appstore_process import given, tell, told
from bench.appstore_rows import Size
from bench.report import Bar, Report, Row, table
from penstock.cli.output import Output, progress
from penstock.testing import run
from penstock_systems.appstore.app import app, db
from penstock_systems.standins.appstore import FIRST_DAY, Manners

DAYS = 6
SUCCEEDED_MIN = 0.97
HEAD = ("endpoint", "requests", "answered", "refused", "failed", "% succeeded")

FAILED_APPS = "select track_id from app_registry where enrichment_source = 'failed' order by track_id limit 10000"
FAILED_KEYWORDS = "select keyword from crawl_keywords where status = 'failed' order by keyword limit 10000"
ENRICHED = "select count(*) from (select 1 from app_registry where enrichment_source = 'scraper') as enriched"


# -- in a process of its own ----------------------------------------------------------------------------------------


async def pushed(size: Size, seed: int, days: int) -> dict[str, Any]:
    catalogue = size.catalogue(seed)
    async with pipeline(FILE, catalogue, manners=Manners.apple(whole_pages=False), seed=seed) as it:
        with progress(Output(), f"{days} days, {size.apps:,} apps", days * 24) as moved:
            for hour in range(1, days * 24 + 1):
                await it.running.advance(hours=1)
                moved(hour)
        books = it.store.truth().books
        return {
            "books": {
                name: [book.requests, book.answered, book.refused, book.failed]
                for name, book in books.items()
                if book.requests
            },
            "lost": await lost(it),
            "known": await db.count("app_registry"),
            "enriched": await db.value(ENRICHED),
            "keywords": await db.count("crawl_keywords"),
        }


async def lost(it: Pipeline) -> dict[str, list[str]]:
    """What is good and was given up: apps that were sold all the time, keywords, and messages."""
    catalogue, today = it.store.catalogue, (it.running.now - FIRST_DAY).days
    failed = [(track_id, catalogue.index(track_id)) for track_id in await db.column(FAILED_APPS)]
    sold = [
        str(track_id)
        for track_id, index in failed
        if index is not None and all(catalogue.sold(index, day, "us") for day in range(today + 1))
    ]
    dead = [f"{name}: {letter.reason}" for name, queue in app.queues.items() for letter in await it.running.dead(queue)]
    return {"apps": sold, "keywords": await db.column(FAILED_KEYWORDS), "messages": dead}


def main() -> None:
    options = given()
    size, seed = Size(options["apps"]), options["seed"]
    tell(run(lambda: pushed(size, seed, options["days"]), seed=seed, patience=3_600.0))


# -- the reporting side ---------------------------------------------------------------------------------------------


def measure(
    report: Report, folder: Path, *, apps: int, seed: int, say: Callable[[str], None], days: int = DAYS
) -> None:
    found = told("appstore_pushback", folder, apps=apps, seed=seed, days=days)
    books: dict[str, list[int]] = found["books"]
    totals = [sum(book[at] for book in books.values()) for at in range(4)]
    say(f"  {found['known']:,} apps known, {found['enriched']:,} enriched, {found['keywords']:,} keywords\n")
    say(table(HEAD, [_line(name, book) for name, book in sorted(books.items())] + [_line("all", totals)]))
    say("")
    for kind, those in found["lost"].items():
        if those:
            say(f"  lost {kind}: {len(those)}: {', '.join(those[:5])}")
    fill(report, books, sum(map(len, found["lost"].values())), days)


def fill(report: Report, books: dict[str, list[int]], lost: int, days: int) -> None:
    requests, answered = (sum(book[at] for book in books.values()) for at in (0, 1))
    share = answered / requests
    name, nothing = f"pushback, {days} days: requests that succeeded", f"pushback, {days} days: good items lost"
    report.rows += [
        Row("penstock", name, 100 * share, "%", durability="off"),
        Row("penstock", nothing, lost, "items", durability="off"),
    ]
    for endpoint, (asked, got, _, _) in sorted(books.items()):
        report.rows.append(Row("penstock", f"{name}, {endpoint}", 100 * got / asked, "%", durability="off"))
    report.bars += [
        Bar(name, 100 * share, 100 * SUCCEEDED_MIN, at_most=False, unit="%"),
        Bar(nothing, lost, 0, at_most=True, unit="items"),
    ]


def _line(name: str, book: list[int]) -> tuple[str, ...]:
    return (name, *(f"{each:,}" for each in book), f"{100 * book[1] / book[0]:.2f}" if book[0] else "-")


if __name__ == "__main__":
    main()
