"""Durable workflows of no-op steps: Penstock beside DBOS and beside a raw bound, in one run on one machine.

    make bench-workflows      or      python bench/workflows.py [--brief | --quick | --smoke] [--rounds N] [--only penstock]

Whoever takes part makes each step's result durable before the next step of that run begins: SQLite with synchronous=full,
PostgreSQL with fsync and synchronous_commit on. So many runs are under way at once: as many clients each start a run, wait
for its end and start the next, until all have been started; the clock stops at the last one's end. Where there are no more
runs than clients, as for DBOS with a thousand at once, all are started at once and drained.

Before the rounds DBOS has a sweep over ways to call it, pools, threads and journals, and takes part with the best of them
for each store and number of runs at once. The raw bound is one writing thread with group commit, and makes the commits
alone: of a run of five steps seven. The three take turns in a new order in every round, each on an empty database, and what
counts is the ratio within a round: absolute figures belong to one disk and one minute.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random, SystemRandom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import queues_environment, queues_servers
from bench.neighbours import Neighbours
from bench.peers.dbos_workflows import PACKAGE, SETTINGS, Setting
from bench.plot import draw
from bench.queues_processes import PeerFailed
from bench.queues_servers import NoServer
from bench.report import PACE_CHANGE_MAX, ROOT, Report, number, size_of, table
from bench.workflows_report import HEAD, JUDGED_STEPS, Shown, Swept, Taken, best, build
from bench.workflows_shape import DBOS, PENSTOCK, RAW, STORES, Point, Shape
from bench.workflows_turns import PLACES, Turns

STEPS = (1, 5)
AT_ONCE = (1, 100, 1_000)
SWEPT_ALL_MAX = 100  # above so many at once, only what was best there is tried
SWEPT_BEST = 3
BRIEF_STEPS, BRIEF_AT_ONCE = (5,), (1, 100)  # a thousand at once take DBOS half a minute each time


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: for each contestant, runs with one at a time, and runs for each one under way at once if there
    are more. DBOS gets few, or a turn of its own would take minutes."""

    alone: dict[str, int]
    each: dict[str, float]
    rounds: int
    tries: int  # of each setting in the sweep
    again_max: int  # how often a round on a slow or changing disk is taken again; then it is kept as it is

    def shape(self, subject: str, point: Point) -> Shape:
        runs = self.alone[subject] if point.at_once == 1 else math.ceil(self.each[subject] * point.at_once)
        if point.at_once > SWEPT_ALL_MAX:
            runs = max(runs // 5, point.at_once)
        return Shape(point.steps, point.at_once, runs)


FULL = Plan({RAW: 300, PENSTOCK: 200, DBOS: 60}, {RAW: 100, PENSTOCK: 40, DBOS: 3}, rounds=3, tries=2, again_max=1)
QUICK = Plan({RAW: 60, PENSTOCK: 40, DBOS: 20}, {RAW: 50, PENSTOCK: 20, DBOS: 2}, rounds=1, tries=1, again_max=0)
BRIEF = QUICK
SMOKE = Plan({RAW: 3, PENSTOCK: 3, DBOS: 3}, {RAW: 1, PENSTOCK: 1, DBOS: 1}, rounds=1, tries=1, again_max=0)
PLANS = {"full": FULL, "brief": BRIEF, "quick": QUICK, "smoke": SMOKE}


class Bench:
    """Takes the rounds of one store after the other."""

    def __init__(self, plan: Plan, points: Sequence[Point], subjects: Sequence[str], random: Random) -> None:
        self._plan = plan
        self._points = points
        self.subjects = subjects
        self._random = random
        self.best_ms = math.inf
        self.taken: list[Taken] = []
        self.swept: list[Swept] = []
        self.failed: list[tuple[str, str]] = []

    def run(self, store: str, turns: Turns) -> None:
        points = [point for point in self._points if point.store == store]
        if DBOS in self.subjects:
            for at_once in dict.fromkeys(point.at_once for point in points):
                self._sweep(store, at_once, turns)
        for round_number in range(1, self._plan.rounds + 1):
            for point in self._random.sample(points, len(points)):
                say(f"round {round_number} of {self._plan.rounds}, {store}, {point}: ", end="")
                self.taken.append(self._round(point, turns))

    # -- the sweep --------------------------------------------------------------------------------------

    def _sweep(self, store: str, at_once: int, turns: Turns) -> None:
        point = Point(store, JUDGED_STEPS, at_once)
        shape = self._plan.shape(DBOS, point)
        shape = replace(shape, runs=max(shape.runs // 2, at_once))
        settings: Sequence[Setting] = SETTINGS[store]
        tries = self._plan.tries
        if at_once > SWEPT_ALL_MAX:
            known = best(self.swept, store, SWEPT_ALL_MAX)[:SWEPT_BEST]
            settings, tries = known or settings, 1
        for _ in range(tries):
            for setting in self._random.sample(settings, len(settings)):
                say(f"sweep of dbos, {store}, {at_once:,} at once, {setting}: ", end="")
                try:
                    rate = turns.dbos(shape, setting)
                except PeerFailed as failed:
                    say(f"failed: {failed}")
                    self.failed.append((f"{DBOS}, {store}, {setting}", str(failed)))
                    continue
                say(f"{number(rate)}/s")
                self.swept.append(Swept(store, at_once, setting, rate))

    def chosen(self, store: str, at_once: int) -> Setting | None:
        return next(iter(best(self.swept, store, at_once)), None)

    # -- the rounds -------------------------------------------------------------------------------------

    def _round(self, point: Point, turns: Turns) -> Taken:
        for again in reversed(range(self._plan.again_max + 1)):
            paces = [turns.pace()]
            rates: dict[str, float] = {}
            order = [RAW, *self.subjects]
            for subject in self._random.sample(order, len(order)):
                try:
                    rates[subject] = self._turn(subject, point, turns)
                except PeerFailed as failed:
                    say(f"{subject} failed: {failed}; ", end="")
                    self.failed.append((f"{subject}, {point.store}, {point}", str(failed)))
                paces.append(turns.pace())
            self.best_ms = min(self.best_ms, *paces)
            slowest = max(paces)
            if slowest < PACE_CHANGE_MAX * self.best_ms or not again:
                break
            say(f"the disk is slow or changing ({slowest:.2f} ms); once more ... ", end="")
        rated = ", ".join(f"{subject} {number(rates[subject])}/s" for subject in order if subject in rates)
        say(f"{rated}; fdatasync {slowest:.2f} ms")
        return Taken(point, rates, slowest)

    def _turn(self, subject: str, point: Point, turns: Turns) -> float:
        shape = self._plan.shape(subject, point)
        if subject == RAW:
            return turns.raw(shape)
        if subject == PENSTOCK:
            return turns.penstock(shape)
        setting = self.chosen(point.store, point.at_once)
        if setting is None:
            raise PeerFailed("no setting of the sweep worked")
        return turns.dbos(shape, setting)


def say(line: str, end: str = "\n") -> None:
    print(line, end=end, flush=True)


def parsed() -> argparse.Namespace:
    def names(known: Sequence[str], text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := sorted(set(chosen) - set(known)):
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there is {', '.join(known)}")
        return [name for name in known if name in chosen]

    contestants = (PENSTOCK, DBOS)
    parser = argparse.ArgumentParser(description="Durable workflows beside DBOS and a raw bound, in one run.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="fewer runs, one round")
    size.add_argument("--smoke", action="store_true", help="just enough to see that all of it runs")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each contestant has its turn")
    parser.add_argument("--steps", nargs="+", type=int, metavar="N", help="steps of a run")
    parser.add_argument("--at-once", nargs="+", type=int, metavar="N", help="runs under way at once")
    parser.add_argument("--stores", type=lambda text: names(STORES, text), default=STORES, help=",".join(STORES))
    parser.add_argument("--only", type=lambda text: names(contestants, text), default=contestants, metavar="NAMES")
    parser.add_argument("--seed", type=int, default=os.environ.get("PENSTOCK_SEED") or SystemRandom().getrandbits(32))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    options = parser.parse_args()
    options.steps = options.steps or (BRIEF_STEPS if options.brief else STEPS)
    options.at_once = options.at_once or (BRIEF_AT_ONCE if options.brief else AT_ONCE)
    return options


def peers_installed(report: Report) -> Path:
    try:
        python = queues_environment.python()
    except queues_environment.NoPeers as failed:
        sys.exit(f"the peers could not be installed:\n{failed}")
    report.peer_versions[DBOS] = queues_environment.versions(python)[PACKAGE]
    return python


def told(bench: Bench, points: Sequence[Point]) -> None:
    """What each contestant was set to."""
    say("each step's result is durable before the next step of its run begins, for all three")
    if PENSTOCK in bench.subjects:
        say("penstock: its defaults, history included; parallel= as many as are at once; one process")
    for store, at_once in dict.fromkeys((point.store, point.at_once) for point in points):
        setting = bench.chosen(store, at_once)
        if setting is not None:
            say(f"dbos, {store}, {at_once:,} at once: {setting}; one process")


def main() -> None:
    options = parsed()
    plan = PLANS[size_of(options)]
    if options.rounds:
        plan = replace(plan, rounds=options.rounds)
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report("workflows", options.seed, size=size_of(options))
    report.settings = {"rounds": str(plan.rounds)}
    if options.brief:
        for left_out in sorted(set(STEPS) - set(options.steps)):
            report.skip(f"runs of {left_out} step{'s' if left_out > 1 else ''}", "--brief")
        for left_out in sorted(set(AT_ONCE) - set(options.at_once)):
            report.skip(f"{left_out:,} at once", "--brief")
    say(f"workflows: {plan.rounds} round(s), seed {options.seed}")
    python = peers_installed(report) if DBOS in options.only else Path(sys.executable)
    if DBOS not in options.only:
        report.skip(DBOS, "--only")
    points = [
        Point(store, steps, at_once)
        for store in options.stores
        for steps in options.steps
        for at_once in options.at_once
    ]
    bench = Bench(plan, points, options.only, Random(options.seed))
    neighbours = Neighbours()
    with tempfile.TemporaryDirectory(dir=options.out, ignore_cleanup_errors=True) as made:
        # A server that does not run as root must be able to reach its own folder in here.
        Path(made).chmod(0o755)
        for store in STORES:
            if store not in options.stores:
                report.skip(store, "--stores")
                continue
            try:
                with PLACES[store](Path(made)) as fresh:
                    bench.run(store, Turns(fresh, Path(made), python))
            except NoServer as missing:
                say(f"skipped: {missing}")
                report.skip(store, str(missing))
    report.neighbours_cores = neighbours.cores()
    if not bench.taken:
        sys.exit("nothing ran")
    if version := queues_servers.version("postgres"):
        report.peer_versions["postgres-server"] = version
    for subject, reason in bench.failed:
        report.skip(subject, reason)
    build(report, bench.taken, bench.swept, best_ms=bench.best_ms)

    shown = Shown(report, points)
    say("\n" + table(HEAD, shown.lines()) + "\n")
    told(bench, points)
    for each in report.skipped:
        say(f"skipped  {each['subject']}: {each['reason']}")
    if report.neighbours_cores is not None:
        say(f"others, servers among them, kept {report.neighbours_cores:.1f} of {os.cpu_count()} cores busy meanwhile")
    say("")
    for bar in report.bars:
        say(str(bar))
    subtitle = f"full durability, {plan.rounds} round(s); fdatasync p50 {report.fdatasync_p50_ms:.2f} ms"
    plot = draw("Durable workflows of no-op steps", subtitle, shown.panels(), options.out / "workflows.svg")
    say(f"\n{report.write(options.out)}\n{plot}")
    if any(subject.startswith(PENSTOCK) for subject, _ in bench.failed):
        sys.exit("penstock failed: see above")


if __name__ == "__main__":
    main()
