"""`make demo`: the crawler of market.py against a stand-in of the App Store, six hours in a minute of virtual time.

APPS=, HOURS= and SEED= in the environment change the catalogue, the span and the chance. It keeps its data in build/demo, or
in the empty PostgreSQL database that PENSTOCK_DATABASE names.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from examples.market import market
from examples.market.pace_plot import Point, draw, sketch
from penstock.testing import TestApp, run
from penstock_systems.standins.appstore import Catalogue, Fault, Limit, Manners, make_store, store_of

APPS, HOURS, SEED = (
    int(os.environ.get(name) or default) for name, default in (("APPS", 3000), ("HOURS", 6), ("SEED", 1))
)
BUILD = Path("build/demo")
DATABASE = os.environ.get("PENSTOCK_DATABASE") or str(BUILD / "market.db")
START = datetime(2026, 1, 1, 4, tzinfo=UTC)
STEP_SECONDS = 60
OUTAGE = (START.timestamp() + 3 * 3_600 + 1_800, START.timestamp() + 3 * 3_600 + 2_400)  # ten minutes at 07:30
# The store does not say what it takes: 20 searches a minute; 10 pages a minute at night and 5 from seven in the morning.
MANNERS = Manners(
    limits={"search": Limit(20), "chart": Limit(120), "page": Limit(10, burst=10, hours=((0, 10), (7, 5), (22, 10)))},
    faults=(Fault("error", share=0.002), Fault("error", endpoint="page", seconds=OUTAGE)),
)


COUNTS = {
    "found": "select count(*) from apps",
    "enriched": "select count(*) from apps where enriched_at is not null",
    "keywords": "select count(*) from keywords",
    "searched": "select count(*) from keywords where searched_at is not null",
    "gone": "select count(*) from penstock_items where state = 'gone'",
}


class Watch:
    """What a person sees while it runs."""

    def __init__(self, truth: Any) -> None:
        self.truth = truth
        self.points: list[Point] = []
        self.words: list[str] = []
        self._answered = self._refused = 0

    def note(self, now: datetime, status: dict[str, Any]) -> None:
        book = self.truth.books["page"]
        answered, refused = book.answered - self._answered, book.refused - self._refused
        self._answered, self._refused = book.answered, book.refused
        limit = self.truth.limit("page", now.timestamp()) * 60
        out = OUTAGE[0] <= now.timestamp() < OUTAGE[1]
        self.points.append(
            Point(now, answered * 60 / STEP_SECONDS, 0.0 if out else limit, refused, status["rate_per_second"] * 60)
        )
        self.words = [f"{tick['at'][11:16]}  {tick['text']}" for tick in status["ticks"][-6:]]

    def drawn(self, now: datetime, counts: dict[str, int], bar: Progress) -> Group:
        last, book = self.points[-1], self.truth.books
        table = Table.grid(padding=(0, 3))
        table.add_row("apps discovered", f"[bold]{counts['found']:,}[/] of {APPS:,} in the store")
        table.add_row("pages enriched", f"[bold]{counts['enriched']:,}[/]  [dim]({counts['gone']} were gone)[/]")
        table.add_row("searches done", f"{counts['searched']:,} of {counts['keywords']:,} keywords")
        table.add_row("pace of pages", f"[bold]{last.pace:.1f}[/] a minute  [dim]hidden limit {last.limit:.0f}[/]")
        table.add_row(
            "refused so far",
            f"{book['page'].refused} pages, {book['search'].refused} searches, {book['page'].failed} faults",
        )
        head = Text(f"Penstock crawls a store, {now:%H:%M} of {START:%d %B %Y} in virtual time", style="bold")
        return Group(
            head, "", table, "", *(Text(word, style="dim") for word in self.words), "", sketch(self.points), "", bar
        )


async def counted() -> dict[str, int]:
    return {name: await market.db.value(sql) for name, sql in COUNTS.items()}


async def main(console: Console) -> Watch:
    async with TestApp(market.app, seed=SEED, start=START, database=DATABASE) as running:
        store = make_store(Catalogue(apps=APPS, markets=20, seed=SEED), lambda: running.now.timestamp(), MANNERS)
        market.web.mount("https://itunes.apple.com", store)
        market.web.mount("https://apps.apple.com", store)
        watch = Watch(store_of(store).truth())
        await market.app.crons.trigger("wilt")
        bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), console=console
        )
        work = bar.add_task(f"{HOURS} hours", total=HOURS * 3_600)
        with Live(console=console, refresh_per_second=8, transient=True) as live:
            for _ in range(HOURS * 3_600 // STEP_SECONDS):
                await running.advance(seconds=STEP_SECONDS)
                watch.note(running.now, await market.app.controllers.status("enrichment"))
                bar.advance(work, STEP_SECONDS)
                live.update(watch.drawn(running.now, await counted(), bar))
        console.print(watch.drawn(running.now, await counted(), bar))
        best = await market.db.rows(
            "select title, rating, ratings from apps where ratings > 1000 order by rating desc, ratings desc limit 5"
        )
        console.print("\n[bold]Rated best[/]")
        for row in best:
            console.print(f"  {row.rating:.1f}  {row.ratings:>9,} ratings  {row.title}", markup=False, highlight=False)
    return watch


if __name__ == "__main__":
    screen = Console()
    watched: list[Watch] = []

    async def demo() -> None:
        watched.append(await main(screen))

    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    run(demo, seed=SEED)
    draw(watched[0].points, BUILD / "pace.svg")
    kept = "on the server" if "://" in DATABASE else DATABASE
    screen.print(f"\nThe pace against the hidden limit: {BUILD / 'pace.svg'}. The database: {kept}.")
