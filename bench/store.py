"""How fast the stores send, claim and settle, beside what SQLite, PostgreSQL and the disk allow in the same minutes.

    make bench-store        or        python bench/store.py [--brief | --quick | --smoke] [--n N] [--only PART ...]

Raw loop and engine take turns, three times, each on an empty database with full durability. What counts is the ratio within
a round: absolute figures belong to one disk and one minute. A round on a slow or changing disk is taken again, a few
times at most: there the engine looks better than it is, since it commits more messages at a time than the raw loop.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench import engine_loop, raw_postgres, raw_sqlite
from bench.backlog import claim_costs
from bench.disk import fdatasync_seconds
from bench.idle import idle_cost
from bench.load import Load
from bench.neighbours import Neighbours
from bench.old_snapshot import PER_SECOND, Aged, claims_under_an_old_snapshot
from bench.place import Place, full_server, in_file
from bench.plot import draw
from bench.report import PACE_CHANGE_MAX, ROOT, Bar, Pair, Report, Row, percentile, size_of
from bench.store_shown import claim_at, panels, say, show_aged, show_backlogs, show_idle, show_rounds
from penstock.cli.worker import GARBAGE_THRESHOLD

T = TypeVar("T")

RAW = "raw loop"
ENQUEUE = "enqueue, units of 100"
NOOP = "claim-run-settle, no-op"
WORK = "claim-run-settle, one write and one send"
STEADY = "producers and consumer together"
LATENCY = "idle send to handler, p50"
LATENCY_P99 = "idle send to handler, p99"
ON_POSTGRES = ", PostgreSQL"  # behind the name of a measure
AGED = "claim under an old snapshot, p50" + ON_POSTGRES
PARTS = ("loops", "latency", "backlog", "idle", "postgres", "snapshot")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    messages: int
    latencies: int
    sizes: tuple[int, ...]
    claims: int
    idle_seconds: float
    settling_seconds: float  # before that, until an app that has started is at rest
    snapshot_seconds: tuple[float, float]  # without the old snapshot, and with it
    again_max: int  # how often a round is taken again; then it is kept whatever the disk did
    rounds: int = 3


FULL = Plan(100_000, 200, (1_000, 1_000_000, 5_000_000), 300, 60.0, 12.0, (10.0, 60.0), 2)
BRIEF = Plan(50_000, 40, (1_000, 500_000), 100, 20.0, 12.0, (3.0, 10.0), 1, rounds=2)
QUICK = Plan(50_000, 20, (1_000, 200_000), 100, 10.0, 12.0, (2.0, 6.0), 1)
SMOKE = Plan(300, 3, (1_000, 2_000), 5, 0.2, 0.2, (0.2, 0.5), 0, rounds=1)
PLANS = {"full": FULL, "brief": BRIEF, "quick": QUICK, "smoke": SMOKE}


@dataclass(frozen=True, slots=True)
class Contest:
    """The same work done by the raw loop and by the engine: seconds for each measure."""

    measures: tuple[str, ...]
    raw: Callable[[Place, Load], tuple[float, ...]]
    engine: Callable[[Place, Load], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of both sides, and the slowest pace of the disk around them."""

    raw: tuple[float, ...]
    engine: tuple[float, ...]
    fdatasync_ms: float


CONTESTS = (
    Contest((ENQUEUE, NOOP), raw_sqlite.send_then_drain, engine_loop.send_then_drain),
    Contest((WORK,), raw_sqlite.send_then_work, engine_loop.send_then_work),
    Contest((STEADY,), raw_sqlite.send_while_draining, engine_loop.send_while_draining),
)
CONTESTS_ON_POSTGRES = (
    Contest((ENQUEUE, NOOP), raw_postgres.send_then_drain, engine_loop.send_then_drain),
    Contest((WORK,), raw_postgres.send_then_work, engine_loop.send_then_work),
    Contest((STEADY,), raw_postgres.send_while_draining, engine_loop.send_while_draining),
)
# Of the raw loop. With work in the handler a bar is set on SQLite alone.
BARS = {NOOP: 0.6, WORK: 0.4, NOOP + ON_POSTGRES: 0.5}

Fresh = Callable[[Callable[[Place], Any]], Any]  # does something in an empty database


class Bench:
    """Takes the measurements of a plan, one part after the other, into a report."""

    def __init__(self, plan: Plan, folder: Path, seed: int) -> None:
        self._plan = plan
        self._folder = folder
        self._random = Random(seed)
        self._best_pace = math.inf
        self.report = Report("store", seed)

    def on_a_fresh_file(self, work: Callable[[Place], T]) -> T:
        gc.collect()
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            return work(in_file(Path(folder) / "bench.db"))

    @contextmanager
    def _fresh_databases(self) -> Iterator[Fresh]:
        """On one server, which has the disk to itself."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder, full_server(Path(folder)) as server:

            def on_a_fresh_database(work: Callable[[Place], T]) -> T:
                gc.collect()
                with tempfile.TemporaryDirectory(dir=self._folder) as beside:
                    return work(Place(server.new_database(), Path(beside)))

            yield on_a_fresh_database

    # -- raw loop and engine --------------------------------------------------------------------------

    def loops(self) -> None:
        self._loops(CONTESTS, self.on_a_fresh_file)

    def postgres(self) -> None:
        with self._fresh_databases() as fresh:
            self._loops(CONTESTS_ON_POSTGRES, fresh, suffix=ON_POSTGRES, store="postgres")
            self._latency(fresh, suffix=ON_POSTGRES, store="postgres")

    def _loops(self, contests: Sequence[Contest], fresh: Fresh, *, suffix: str = "", store: str = "sqlite") -> None:
        load = Load(self._plan.messages)
        # As a worker process of `penstock run` sets itself up; the load is kept out of everybody's collections.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        names = [name for contest in contests for name in contest.measures]
        pairs = {name: Pair(name + suffix, "messages/s", store=store) for name in names}
        for _ in range(self._plan.rounds):
            for contest in contests:
                taken = self._round(contest, load, fresh)
                for name, ours, reference in zip(contest.measures, taken.engine, taken.raw, strict=True):
                    pairs[name].add(
                        ours=load.count / ours, reference=load.count / reference, fdatasync_ms=taken.fdatasync_ms
                    )
        gc.unfreeze()
        for pair in pairs.values():
            pair.best_ms = self._best_pace
        self._keep(pairs.values(), RAW)
        self.report.bars += [
            Bar(pair.measure, pair.ratio, BARS[pair.measure], at_most=False, unit="of the raw loop", sure=pair.sure)
            for pair in pairs.values()
            if pair.measure in BARS
        ]

    def _round(self, contest: Contest, load: Load, fresh: Fresh) -> Taken:
        again = 0
        while True:
            paces = [self._pace()]
            raw = fresh(lambda place: contest.raw(place, load))
            paces.append(self._pace())
            engine = fresh(lambda place: contest.engine(place, load))
            paces.append(self._pace())
            told = ", ".join(f"{pace:.2f}" for pace in paces)
            if max(paces) < PACE_CHANGE_MAX * self._best_pace or again >= self._plan.again_max:
                say(f"  {contest.measures[-1]}: done; fdatasync before, between and after: {told} ms")
                return Taken(raw, engine, max(paces))
            again += 1
            say(f"  {contest.measures[-1]}: the disk is slow or changing ({told} ms); once more")

    def _pace(self) -> float:
        """Milliseconds that a synced append takes now."""
        pace = 1000 * fdatasync_seconds(self._folder)
        self._best_pace = min(self._best_pace, pace)
        return pace

    def _keep(self, pairs: Iterable[Pair], reference: str) -> None:
        for pair in pairs:
            self.report.pairs.append(pair)
            self.report.rows += pair.rows(reference)

    # -- an idle app ------------------------------------------------------------------------------------

    def latency(self) -> None:
        half = self._latency(self.on_a_fresh_file)
        self.report.fdatasync_p50_ms = statistics.median(half.reference)
        self.report.bars.append(Bar(LATENCY, half.ratio, 5.0, at_most=True, unit="x fdatasync p50"))

    def _latency(self, fresh: Fresh, *, suffix: str = "", store: str = "sqlite") -> Pair:
        half, most = (Pair(name + suffix, "ms", store=store) for name in (LATENCY, LATENCY_P99))
        for _ in range(self._plan.rounds):
            latencies, syncs = fresh(lambda place: engine_loop.idle_latency(place, self._plan.latencies, self._random))
            pace = 1000 * percentile(syncs, 0.5)
            for pair, share in ((half, 0.5), (most, 0.99)):
                ours, reference = 1000 * percentile(latencies, share), 1000 * percentile(syncs, share)
                pair.add(ours=ours, reference=reference, fdatasync_ms=pace)
        self._keep((half, most), "fdatasync of 4 KB after the same pause")
        return half

    def idle(self) -> None:
        idle = self.on_a_fresh_file(
            lambda place: idle_cost(place, self._plan.idle_seconds, settling_seconds=self._plan.settling_seconds)
        )
        show_idle(idle)
        self.report.rows += [
            Row("penstock", "idle processor time", idle.cpu_percent, "% of one core"),
            Row("penstock", "idle pages with rows looked at", idle.pages_with_rows, "pages"),
        ]
        self.report.bars += [
            Bar("idle processor time", idle.cpu_percent, 0.1, at_most=True, unit="% of one core"),
            Bar("idle pages with rows looked at", idle.pages_with_rows, 0, at_most=True, unit="pages"),
        ]

    # -- a backlog --------------------------------------------------------------------------------------

    def backlog(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            backlogs = claim_costs(Path(folder), self._plan.sizes, self._plan.claims)
        show_backlogs(backlogs)
        least, most = backlogs[0], backlogs[-1]
        for each in backlogs:
            name = claim_at(each.rows)
            self.report.rows += [
                Row("penstock", f"{name}, p50", each.p50_ms, "ms", least.p50_ms, each.p50_ms / least.p50_ms),
                Row("penstock", f"{name}, p99", each.p99_ms, "ms", least.p99_ms, each.p99_ms / least.p99_ms),
                Row("penstock", f"{name}, processor", each.cpu_ms, "ms", least.cpu_ms, each.cpu_ms / least.cpu_ms),
            ]
        for size in sorted(set(FULL.sizes) - set(self._plan.sizes)):
            self.report.skip(claim_at(size), f"--{self.report.size}")
        # A slow disk would hide what a claim costs, so the processor's time has to keep within the bar too.
        ratio = max(most.p50_ms / least.p50_ms, most.cpu_ms / least.cpu_ms)
        unit = f"x the claim at {least.rows:,}"
        self.report.bars.append(Bar(f"{claim_at(most.rows)}, p50", ratio, 2.0, at_most=True, unit=unit))

    def snapshot(self) -> None:
        normal_seconds, seconds = self._plan.snapshot_seconds
        with self._fresh_databases() as fresh:
            aged: Aged = fresh(
                lambda place: claims_under_an_old_snapshot(place, normal_seconds=normal_seconds, seconds=seconds)
            )
        show_aged(aged, seconds)
        self.report.rows += [
            Row("penstock", AGED, aged.aged_ms, "ms", aged.normal_ms, aged.ratio, "postgres"),
            Row(
                "penstock",
                f"{AGED}, with its commit",
                aged.aged_commit_ms,
                "ms",
                aged.normal_commit_ms,
                None,
                "postgres",
            ),
            Row(
                "penstock",
                "messages/s under an old snapshot",
                aged.per_second,
                "messages/s",
                PER_SECOND,
                None,
                "postgres",
            ),
        ]
        self.report.bars.append(Bar(AGED, aged.ratio, 2.0, at_most=True, unit="x the claim before it"))

    def memory(self) -> None:
        self.report.rows.append(Row("penstock", "resident memory after the runs", resident_mb(), "MB"))


def resident_mb() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        # No /proc, as on macOS: the most it ever was, which that system gives in bytes.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How fast the store is, beside the raw loop on the same disk.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="fewer messages, a smaller backlog, a shorter rest")
    size.add_argument("--smoke", action="store_true", help="just enough to see that all of it runs")
    parser.add_argument("--n", type=int, metavar="N", help="messages in each loop")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=os.environ.get("PENSTOCK_SEED") or SystemRandom().getrandbits(32))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    plan = PLANS[size_of(options)]
    if options.n:
        plan = replace(plan, messages=options.n)
    options.out.mkdir(parents=True, exist_ok=True)
    say(f"store: {plan.messages:,} messages a loop, {plan.rounds} round(s), full durability, seed {options.seed}")
    neighbours = Neighbours()
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        bench = Bench(plan, Path(folder), options.seed)
        bench.report.size = size_of(options)
        bench.report.settings = {
            "messages in each loop": f"{plan.messages:,}",
            "rounds": str(plan.rounds),
            "idle for": f"{plan.idle_seconds:g} s",
        }
        for part in PARTS:
            if part in options.only:
                getattr(bench, part)()
            else:
                bench.report.skip(part, "--only")
        bench.memory()
        if not bench.report.fdatasync_p50_ms:
            bench.report.fdatasync_p50_ms = 1000 * fdatasync_seconds(Path(folder))
    report = bench.report
    report.neighbours_cores = neighbours.cores()
    show_rounds(report.pairs)
    say(f"\nresident memory after the runs: {resident_mb():.0f} MB")
    if report.neighbours_cores is not None:
        say(f"others, servers among them, kept {report.neighbours_cores:.1f} of {os.cpu_count()} cores busy meanwhile")
    say("")
    for bar in report.bars:
        say(str(bar))
    subtitle = f"full durability, {plan.messages:,} messages; fdatasync p50 {report.fdatasync_p50_ms:.2f} ms"
    plot = draw(
        "Penstock's stores beside raw SQLite and PostgreSQL", subtitle, panels(report), options.out / "store.svg"
    )
    say(f"\n{report.write(options.out)}\n{plot}")


if __name__ == "__main__":
    main()
