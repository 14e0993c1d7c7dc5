"""`make demo`: the whole pipeline against a stand-in of the App Store, six virtual days in less than two minutes.

APPS=, SEED=, DAYS= and WITHOUT= (a planted market that is left out) in the environment change the run. It keeps its data in
the folder OUT= (build/demo), or in the empty PostgreSQL database that PENSTOCK_DATABASE names. Killed in the middle it
goes on where it was.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.live import Live

from penstock.testing import TestApp, run
from penstock_systems.appstore.app import app, db, web
from penstock_systems.appstore.demo.choice import catalogue_of, chosen
from penstock_systems.appstore.demo.course import START, Course, resumed, save
from penstock_systems.appstore.demo.view import View, listed
from penstock_systems.appstore.reading import page, report
from penstock_systems.appstore.reading.facts import PacePoint, Report
from penstock_systems.appstore.stages import app as _staged
from penstock_systems.standins.appstore import Fault, Limit, Manners, Truth, make_store, store_of

BUILD = Path(os.environ.get("OUT") or "build/demo")
HOSTS = ("https://itunes.apple.com", "https://search.itunes.apple.com", "https://apps.apple.com")
STEP = timedelta(hours=1)
GARBAGE_THRESHOLD = 200_000
# The store does not say what it takes: 20 searches and look-ups a minute; 30 pages an hour at night and 18 by day, so that
# its pages last for six days. On the second day it is out of order for three hours.
OUTAGE = (START + timedelta(days=1, hours=10), START + timedelta(days=1, hours=13))
MANNERS = Manners(
    limits={
        "search+lookup": Limit(20),
        "chart": Limit(120),
        "page": Limit(30, 3_600, burst=4, hours=((0, 30), (7, 18), (22, 30))),
        "ratings": Limit(240),
    },
    faults=(
        Fault("error", share=0.002),
        Fault("error", endpoint="page", seconds=(OUTAGE[0].timestamp(), OUTAGE[1].timestamp())),
    ),
)
STOOD_IN = (
    "The store was a fake server: its apps, markets and limits are generated from a seed, and no app here is real. "
    "Its limits are set low, so that the work lasts for the whole run; the pace says nothing about the real store."
)
UNENRICHED = "select 1 from app_registry where enriched_at is null limit 1"

assert _staged is app


async def demonstrate(console: Console, course: Course, *, live: bool) -> Report:
    settings = course.settings
    running = TestApp(app, seed=settings.seed, start=course.until, database=settings.database or "market.db")
    # Before the app is opened: a run that goes on has work at once.
    store = make_store(catalogue_of(settings), lambda: running.now.timestamp(), MANNERS)
    for host in HOSTS:
        web.mount(host, store)
    truth = store_of(store).truth()
    async with running:
        view = View(console, settings.apps, timedelta(days=settings.days).total_seconds())
        with Live(console=console, transient=True, auto_refresh=False) as screen:
            while course.until < course.ends:
                course.until = min(course.until + STEP, course.ends)
                save(Path("run.json"), course)
                before = _answered(truth), _answered(truth, "page"), _answered(truth, "search")
                await running.advance(seconds=(course.until - running.now).total_seconds())
                _note(course, truth, *before, busy=await db.value(UNENRICHED) is not None)
                if live:
                    screen.update(await view.drawn(running.now, course), refresh=True)
        console.print(await view.drawn(running.now, course))
        return await report.gather(db, pace=course.points, notes=[STOOD_IN], made_up=True)


def _answered(truth: Truth, *endpoints: str) -> tuple[int, int]:
    """Requests that were answered, and that were refused."""
    books = [truth.books[name] for name in endpoints or truth.books]
    return sum(book.answered for book in books), sum(book.refused for book in books)


def _note(
    course: Course,
    truth: Truth,
    before: tuple[int, int],
    pages_before: tuple[int, int],
    searches_before: tuple[int, int],
    *,
    busy: bool,
) -> None:
    answered, refused = _answered(truth)
    course.answered += answered - before[0]
    course.refused += refused - before[1]
    pages, refused_pages = _answered(truth, "page")
    at = course.until
    minutes = STEP.total_seconds() / 60
    course.points.append(
        PacePoint(
            at=f"{at:%Y-%m-%d %H:%M:%S}",
            pace=round((pages - pages_before[0]) / minutes, 3),
            limit=round(truth.limit("page", at.timestamp() - 1) * 60, 3),
            refused=refused_pages - pages_before[1],
            busy=busy,
            out=OUTAGE[0] < at <= OUTAGE[1],
            searches=round((_answered(truth, "search")[0] - searches_before[0]) / minutes, 2),
        )
    )


def main() -> None:
    console = Console()
    if sys.argv[1:]:
        console.out(__doc__, highlight=False)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    settings = chosen()
    course = resumed(BUILD / "run.json", settings)
    if course is None:
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir(parents=True)
        course = Course(settings=settings)
    else:
        console.print(f"[dim]continuing at {course.until:%d %B %H:%M} of an interrupted run[/]")
    place = BUILD.resolve()
    os.chdir(place)
    made: list[Report] = []
    # As a worker of `penstock run` does: thousands of small objects a second are made, and most go at once.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    logging.disable(logging.WARNING)  # a chart that cannot be read today is read tomorrow

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
