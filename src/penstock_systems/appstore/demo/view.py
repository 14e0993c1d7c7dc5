"""What a person sees while the demonstration runs, and the list at its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from penstock.commands import plain
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.demo.course import START, Course
from penstock_systems.appstore.reading.facts import PacePoint, Report

ROWS, COLUMNS = 7, 72
WORDS = 4  # the last ticks of the controller, in its own words
COUNTS = {
    "enriched": "select count(*) from app_registry where enriched_at is not null",
    "searched": "select count(*) from crawl_keywords where last_searched_at is not null",
    "scored": "select count(*) from app_registry where competitiveness_score is not null",
    "markets": "select count(*) from market_clusters where ended_at is null",
    "judged": "select count(*) from opportunity_evaluations",
}


async def counted() -> dict[str, int]:
    counts = {name: int(await db.value(sql)) for name, sql in COUNTS.items()}
    return counts | {"found": await db.count("app_registry"), "keywords": await db.count("crawl_keywords")}


class View:
    def __init__(self, console: Console, apps: int, seconds: float) -> None:
        self._apps = apps
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), console=console
        )
        self._work = self._bar.add_task("virtual time", total=seconds)

    async def drawn(self, now: datetime, course: Course) -> RenderableType:
        counts, status = await counted(), await app.controllers.status("enrichment")
        self._bar.update(self._work, completed=(course.until - START).total_seconds())
        table = Table.grid(padding=(0, 3))
        table.add_row("1 crawl", f"[bold]{counts['found']:,}[/] apps found, {counts['searched']:,} searches done")
        table.add_row("2 enrich", f"[bold]{counts['enriched']:,}[/] of {self._apps:,} in the store")
        table.add_row("3 evaluate", f"[bold]{counts['scored']:,}[/] apps scored")
        table.add_row("4 cluster", f"[bold]{counts['markets']:,}[/] markets")
        table.add_row("5 opportunity", f"[bold]{counts['judged']:,}[/] evaluations")
        asked = course.answered + course.refused
        share = f", {100 * course.refused / asked:.1f} %" if course.refused else ""
        table.add_row("pushed back", f"{course.refused:,} refusals of {asked:,} requests{share}")
        words = [f"{tick['at'][11:16]}  {tick['text']}" for tick in status["ticks"][-WORDS:]]
        head = Text(f"Penstock reads a store, {now:%H:%M} of {now:%d %B %Y} in virtual time", style="bold")
        return Group(
            head,
            "",
            table,
            "",
            *(Text(word, style="dim", no_wrap=True, overflow="ellipsis") for word in words),
            "",
            sketch(course.points),
            "",
            self._bar,
        )


def sketch(points: Sequence[PacePoint]) -> Text:
    """In characters: # is the pace, - the hidden limit."""
    drawn = Text()
    if not points:
        return drawn
    most = max(1.0, *(max(point.pace, point.limit or 0.0) for point in points)) * 1.1
    columns = [
        points[at : max(at + 1, len(points) * (column + 1) // COLUMNS)]
        for column in range(COLUMNS)
        for at in [len(points) * column // COLUMNS]
    ]
    for row in range(ROWS, 0, -1):
        drawn.append(f"{most * row / ROWS:5.0f} ", style="dim")
        for part in columns:
            pace = sum(point.pace for point in part) / len(part)
            at_limit = round((part[-1].limit or 0.0) / most * ROWS) == row
            filled = pace / most * ROWS >= row - 0.5
            drawn.append("#" if filled else "-" if at_limit else " ", style="cyan" if filled else "red")
        drawn.append("\n")
    drawn.append("      pages a minute: # answered, - the hidden limit of the store", style="dim")
    return drawn


def listed(report: Report, console: Console) -> None:
    """The ranked opportunities, each with its reason."""
    table = Table(title=f"{len(report.opportunities)} market opportunities", title_justify="left", box=None)
    table.add_column("", justify="right", style="dim")
    table.add_column("score", justify="right")
    table.add_column("verdict")
    table.add_column("market", style="bold", ratio=1)
    table.add_column("why", ratio=3)
    for each in report.opportunities:
        table.add_row(str(each.rank), f"{each.score:.1f}", plain(each.verdict), plain(each.name), plain(each.reason))
    console.print(table)
