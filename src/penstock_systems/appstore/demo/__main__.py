"""`make demo`: the whole pipeline against a stand-in of the App Store, six days in about a minute of virtual time.

APPS=, SEED=, DAYS= and WITHOUT= (a planted market that is left out) in the environment change the run. It keeps its data in
build/demo, or in the empty PostgreSQL database that PENSTOCK_DATABASE names. Killed in the middle it goes on where it was.
"""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from penstock.testing import TestApp, run
from penstock_systems.appstore.app import app, db, web
from penstock_systems.appstore.demo.course import START, Course, Settings, resumed, save
from penstock_systems.appstore.demo.view import View, listed
from penstock_systems.appstore.reading import page, report
from penstock_systems.appstore.reading.facts import PacePoint, Report
from penstock_systems.appstore.stages import app as _staged
from penstock_systems.standins.appstore import Catalogue, Fault, Limit, Manners, make_store, store_of

BUILD = Path("build/demo")
HOSTS = ("https://itunes.apple.com", "https://search.itunes.apple.com", "https://apps.apple.com")
STEP = timedelta(minutes=20)
# The store does not say what it takes: 20 searches and look-ups a minute; 12 pages a minute at night and 6 by day. On the
# second day it is out of order for ten minutes.
OUTAGE = (START + timedelta(days=1, hours=3, minutes=30), START + timedelta(days=1, hours=3, minutes=40))
MANNERS = Manners(
    limits={
        "search": Limit(20),
        "chart": Limit(120),
        "page": Limit(12, burst=12, hours=((0, 12), (7, 6), (22, 12))),
        "ratings": Limit(240),
    },
    faults=(
        Fault("error", share=0.002),
        Fault("error", endpoint="page", seconds=(OUTAGE[0].timestamp(), OUTAGE[1].timestamp())),
    ),
)
STOOD_IN = "The store was a stand-in: its apps, its markets and its limits are made up from a seed."

assert _staged is app


def chosen() -> Settings:
    given = os.environ.get
    return Settings(
        apps=int(given("APPS") or 3_000),
        markets=20,
        seed=int(given("SEED") or 1),
        days=float(given("DAYS") or 6),
        without=tuple(filter(None, (given("WITHOUT") or "").split(","))),
        database=given("PENSTOCK_DATABASE") or "",
    )


async def demonstrate(console: Console, course: Course, *, live: bool) -> Report:
    settings = course.settings
    async with TestApp(
        app, seed=settings.seed, start=course.until, database=settings.database or "market.db"
    ) as running:
        catalogue = Catalogue(settings.apps, settings.markets, settings.seed, without=settings.without)
        store = make_store(catalogue, lambda: running.now.timestamp(), MANNERS)
        for host in HOSTS:
            web.mount(host, store)
        truth = store_of(store).truth()
        view = View(console, settings.apps, timedelta(days=settings.days).total_seconds())
        with Live(console=console, refresh_per_second=4, transient=True, auto_refresh=False) as screen:
            while course.until < course.ends:
                course.until = min(course.until + STEP, course.ends)
                save(Path("run.json"), course)
                before = truth.books["page"].answered, truth.books["page"].refused
                await running.advance(seconds=(course.until - running.now).total_seconds())
                course.points.append(_point(truth, course.until, before))
                if live:
                    done = (course.until - START).total_seconds()
                    screen.update(await view.drawn(running.now, done, course.points, truth.books), refresh=True)
        console.print(await view.drawn(running.now, (course.until - START).total_seconds(), course.points, truth.books))
        return await report.gather(db, pace=course.points, notes=[STOOD_IN])


def _point(truth: Any, at: datetime, before: tuple[int, int]) -> PacePoint:
    book, minutes = truth.books["page"], STEP.total_seconds() / 60
    out = OUTAGE[0] < at <= OUTAGE[1] + STEP
    return PacePoint(
        at=f"{at:%Y-%m-%d %H:%M:%S}",
        pace=round((book.answered - before[0]) / minutes, 3),
        limit=None if out else round(truth.limit("page", at.timestamp() - 1) * 60, 3),
        refused=book.refused - before[1],
    )


def main() -> None:
    console = Console()
    settings = chosen()
    course = resumed(BUILD / "run.json", settings)
    if course is None:
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir(parents=True)
        course = Course(settings=settings)
    else:
        console.print(f"[dim]going on from {course.until:%d %B %H:%M} of a run that was broken off[/]")
    place = BUILD.resolve()
    os.chdir(place)
    made: list[Report] = []

    async def demo() -> None:
        made.append(await demonstrate(console, course, live=console.is_terminal))

    run(demo, seed=settings.seed)
    Path("report.json").write_bytes(report.as_json(made[0]))
    Path("report.html").write_text(page.html(made[0]), encoding="utf-8")
    course.done = True
    save(Path("run.json"), course)
    console.print()
    listed(made[0], console)
    kept = "on the server" if "://" in settings.database else BUILD / "market.db"
    console.print(f"\nThe report with its plots: {BUILD / 'report.html'}. The database: {kept}.")


if __name__ == "__main__":
    main()
