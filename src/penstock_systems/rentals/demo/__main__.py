"""`make demo-rentals`: five virtual days over a generated city, and a page with figures and truth.

FLATS=, SEED= and DAYS= in the environment change the run. It keeps its data in the folder OUT= (build/demo-rentals). With
SEED=201-205 each city is run in a process of its own, and a table compares them.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock.testing import TestApp, run
from penstock_systems.rentals import report
from penstock_systems.rentals.demo.course import START, Course, begin, operate, prepare
from penstock_systems.rentals.demo.judging import Judged, judge
from penstock_systems.rentals.system import app as _whole

BUILD = Path(os.environ.get("OUT") or "build/demo-rentals")
STEP = timedelta(hours=1)
GARBAGE_THRESHOLD = 200_000
LIMITS = (  # figure, bound, whether the figure is at least the bound
    ("flats_found_share", 0.98, True),
    ("joins_right_share", 0.95, True),
    ("price_notices_wrong_share", 0.02, False),
    ("runs_to_report_the_changed_portal", 3, False),
    ("bans", 0, False),
)
COMPARED = (
    *(
        "flats_found_share",
        "joins",
        "joins_right_share",
        "joins_missed",
        "notices_cheaper",
        "price_notices_wrong_share",
    ),
    *("notices", "notices_wrong", "runs_to_report_the_changed_portal", "requests_refused", "bans", "seconds"),
)


async def demonstrate(console: Console, *, seed: int, flats: int, days: float) -> tuple[Judged, Course, str]:
    running = TestApp(_whole, seed=seed, start=START, folder=BUILD)
    course = prepare(seed, flats, days, lambda: running.now.timestamp())
    os.environ["RENTCAST_KEY"] = "fake"
    async with running:
        await begin(running)
        ends = START + timedelta(days=days)
        while running.now < ends:
            await running.advance(STEP)
            operate(course, os.environ)  # type: ignore[arg-type]
            if running.now.hour == START.hour:
                asked = sum(course.portals.requests.values())
                told = f"{asked:,} requests, {len(course.inbox.messages)} messages, {len(course.alerts)} alerts"
                console.print(f"day {course.portals.hour / 24:.0f}: {told}")
        judged = await judge(course, days * 24)
        page = await report.render(judged.figures | {"virtual_days": days}, judged.truth, course.alerts)
    return judged, course, page


def judge_seeds(seeds: range) -> int:
    """Run the demo for each seed, and print what each city came to; 1 if one of them missed a limit."""
    columns, failed = dict[str, list[str]](), 0
    for seed in seeds:
        folder = BUILD / str(seed)
        environment = {**os.environ, "SEED": str(seed), "OUT": str(folder)}
        done = subprocess.run(
            [sys.executable, "-m", __package__], env=environment, stdout=subprocess.DEVNULL, check=False
        )
        figures = json.loads((folder / "report.json").read_text())["figures"]
        missed = [name for name, bound, at_least in LIMITS if is_missed(figures[name], bound, at_least=at_least)]
        failed |= bool(missed) or bool(done.returncode)
        columns[str(seed)] = [*(str(figures[name]) for name in COMPARED), ", ".join(missed) or "met"]
    shown = Table("seed", *columns)  # a figure a line, so that it fits a terminal
    for name, values in zip([*COMPARED, "limits"], zip(*columns.values(), strict=True), strict=True):
        shown.add_row(name.replace("_", " "), *values)
    Console().print(shown)
    return failed


def is_missed(value: float | None, bound: float, *, at_least: bool) -> bool:
    return value is None or (value < bound if at_least else value > bound)


def main() -> int:
    first, _, last = os.environ.get("SEED", "").partition("-")
    if last:
        return judge_seeds(range(int(first), int(last) + 1))
    logging.disable(logging.WARNING)
    gc.set_threshold(GARBAGE_THRESHOLD)
    console = Console()
    seed, flats = int(first or 1), int(os.environ.get("FLATS") or 3_000)
    days = float(os.environ.get("DAYS") or 5)
    began = time.perf_counter()
    BUILD.mkdir(parents=True, exist_ok=True)
    for old in BUILD.glob("rentals.db*"):
        old.unlink()

    async def main() -> tuple[Judged, Course, str]:
        return await demonstrate(console, seed=seed, flats=flats, days=days)

    judged, _, page = run(main)
    judged.figures |= {"seed": seed, "seconds": round(time.perf_counter() - began, 1)}
    shown = {"figures": judged.figures, "truth": judged.truth, "examples_of_wrong_notices": judged.wrong}
    (BUILD / "report.json").write_text(json.dumps(shown, indent=1))
    (BUILD / "report.html").write_text(page, encoding="utf-8")
    failed = []
    for name, value in judged.figures.items():
        console.print(f"{name:38} {value}")
    for name, bound, at_least in LIMITS:
        if is_missed(judged.figures[name], bound, at_least=at_least):
            failed.append(
                f"{name} is {judged.figures[name]}; it should be at {'least' if at_least else 'most'} {bound}"
            )
    for line in failed:
        console.print(line, style="red")
    console.print(f"The report: {BUILD / 'report.html'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
