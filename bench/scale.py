"""How far one PostgreSQL goes: throughput and latency against the number of worker processes.

    make bench-scale        or        python bench/scale.py [--brief | --quick | --smoke] [--workers 1 2 4 8]

Once with handlers that wait, as those do that fetch pages, and once with handlers that do nothing. The queue is filled while
it is paused, and the clock runs from when it is resumed until the last message is settled on the disk. Then, with nothing
else to do, messages are sent one by one. Server, workers and sender share this machine: what grows with more processes is
what waits, not what computes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from bench.disk import fdatasync_seconds
from bench.engine_loop import PAUSE_SECONDS
from bench.load import QUEUE
from bench.neighbours import Neighbours
from bench.place import SENT_AND_ACKED, Place, full_server
from bench.plot import Line, Panel, draw
from bench.queues_processes import Process
from bench.report import ROOT, Bar, Report, Row, number, percentile, size_of, table
from bench.scale_worker import Job, scale_app
from tests.postgres_server import PostgresServer

WAIT_SECONDS = 0.005
# Handlers that wait at the same time in a process: 400 a second at most, so that eight processes on two cores are held up by
# waiting, not by the processor. Where that ends is what the no-op handlers show.
PARALLEL = 2
NOOP_PARALLEL = 100
BATCH = 500
POLL_SECONDS = 0.02
DRAIN_SECONDS_MAX = 120.0
LINEAR = 0.8  # of so many times what one process reaches, with handlers that wait
WAITING, NOOP = "handlers wait 5 ms", "no-op"
THROUGHPUT, P50, P99 = "throughput", "send to handler, p50", "send to handler, p99"
HEAD = ("", "workers", "messages/s", "x one", "p50 ms", "p99 ms")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. With handlers that wait each worker gets so many seconds' worth."""

    wait_seconds: float
    noop_messages: int
    latencies: int


FULL = Plan(5.0, 60_000, 200)
BRIEF = Plan(2.0, 20_000, 40)
QUICK = Plan(0.25, 2_000, 20)
SMOKE = Plan(0.05, 100, 2)
PLANS = {"full": FULL, "brief": BRIEF, "quick": QUICK, "smoke": SMOKE}


@dataclass(frozen=True, slots=True)
class Point:
    kind: str
    workers: int
    per_second: float
    p50_ms: float
    p99_ms: float


def measure(server: PostgresServer, kind: str, workers: int, plan: Plan, folder: Path, random: Random) -> Point:
    place = Place(server.new_database(), folder)
    wait, parallel = (WAIT_SECONDS, PARALLEL) if kind == WAITING else (0.0, NOOP_PARALLEL)
    count = int(plan.wait_seconds * PARALLEL / WAIT_SECONDS * workers) if kind == WAITING else plan.noop_messages
    asyncio.run(_fill(place, count))
    command = [sys.executable, "-m", "bench.scale_worker", place.database, str(parallel), str(wait)]
    with ExitStack() as running:
        processes = [
            running.enter_context(Process(command, folder / f"worker-{workers}-{each}.log")) for each in range(workers)
        ]
        for process in processes:
            process.ask("ready")
        began = asyncio.run(_resume(place))
        seconds = _until_settled(place, count, began)
        for process in processes:
            process.ask("forget")
        asyncio.run(_send_slowly(place, plan.latencies, random))
        _until_settled(place, count + plan.latencies, time.perf_counter())
        late = [1000 * each for process in processes for each in process.ask("latencies")["seconds"]]
    assert len(late) == plan.latencies, f"{len(late)} of {plan.latencies} messages were handled"
    return Point(kind, workers, count / seconds, percentile(late, 0.5), percentile(late, 0.99))


async def _fill(place: Place, count: int) -> None:
    app, queue = scale_app(place, parallel=None)
    await (await app.desk()).pause(QUEUE)
    for start in range(0, count, BATCH):
        async with app.unit():
            for each in range(start, min(start + BATCH, count)):
                queue.send(Job(number=each, sent_at=0.0))
    await app.close()


async def _resume(place: Place) -> float:
    """When it was."""
    app, _ = scale_app(place, parallel=None)
    desk = await app.desk()
    began = time.perf_counter()
    await desk.resume(QUEUE)
    await app.close()
    return began


async def _send_slowly(place: Place, count: int, random: Random) -> None:
    app, queue = scale_app(place, parallel=None)
    await app._opened()
    for each in range(count):
        await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
        async with app.unit():
            queue.send(Job(number=each, sent_at=time.perf_counter()))
    await app.close()


def _until_settled(place: Place, count: int, since: float) -> float:
    """Seconds since then until so many are settled."""
    ends = max(since, time.perf_counter()) + DRAIN_SECONDS_MAX
    while True:
        _, acked = place.row(SENT_AND_ACKED, QUEUE)
        now = time.perf_counter()
        if acked >= count:
            return now - since
        assert now < ends, f"{acked} of {count} messages were settled in {DRAIN_SECONDS_MAX:.0f} s"
        time.sleep(POLL_SECONDS)


# -- what is shown --------------------------------------------------------------------------------------------------


def fill(report: Report, points: list[Point]) -> None:
    alone = {point.kind: point for point in points if point.workers == 1}
    for point in points:
        name = f"{point.kind}, {point.workers} workers"
        first = alone.get(point.kind)
        ratio = point.per_second / first.per_second if first else None
        reference = first.per_second if first else None
        report.rows += [
            Row("penstock", f"{name}, {THROUGHPUT}", point.per_second, "messages/s", reference, ratio, "postgres"),
            Row("penstock", f"{name}, {P50}", point.p50_ms, "ms", store="postgres"),
            Row("penstock", f"{name}, {P99}", point.p99_ms, "ms", store="postgres"),
        ]
        if point.kind == WAITING and ratio is not None and point.workers > 1:
            share = ratio / point.workers
            report.bars.append(Bar(name, share, LINEAR, at_most=False, unit=f"of {point.workers} times one worker"))


def lines(points: list[Point]) -> list[tuple[str, ...]]:
    alone = {point.kind: point.per_second for point in points if point.workers == 1}
    return [
        (
            point.kind,
            str(point.workers),
            number(point.per_second),
            f"{point.per_second / alone[point.kind]:.2f}" if point.kind in alone else "-",
            f"{point.p50_ms:.2f}",
            f"{point.p99_ms:.2f}",
        )
        for point in points
    ]


def panels(points: list[Point]) -> list[Panel]:
    return [
        Panel(
            f"Messages/s, {kind}",
            "longer is better; by worker processes",
            [
                Line(f"{point.workers} workers", point.per_second, number(point.per_second))
                for point in points
                if point.kind == kind
            ],
        )
        for kind in (WAITING, NOOP)
    ]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Throughput and latency against the number of worker processes.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="fewer messages")
    size.add_argument("--smoke", action="store_true", help="just enough to see that all of it runs")
    parser.add_argument("--workers", nargs="+", type=int, default=(1, 2, 4, 8), metavar="N", help="how many processes")
    parser.add_argument("--seed", type=int, default=os.environ.get("PENSTOCK_SEED") or SystemRandom().getrandbits(32))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    return parser.parse_args()


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    options = parsed()
    plan = PLANS[size_of(options)]
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report("scale", options.seed, size=size_of(options))
    report.settings = {
        "no-op messages": f"{plan.noop_messages:,}",
        "handlers that wait": f"{plan.wait_seconds:g} s worth for each worker",
    }
    say(f"scale: {', '.join(map(str, options.workers))} worker processes on one PostgreSQL, seed {options.seed}")
    neighbours = Neighbours()
    random = Random(options.seed)
    points: list[Point] = []
    with tempfile.TemporaryDirectory(dir=options.out) as made:
        folder = Path(made)
        report.fdatasync_p50_ms = 1000 * fdatasync_seconds(folder)
        with full_server(folder) as server:
            for kind in (WAITING, NOOP):
                for workers in options.workers:
                    points.append(measure(server, kind, workers, plan, folder, random))
                    say(f"  {kind}, {workers} workers: {number(points[-1].per_second)}/s")
    fill(report, points)
    report.neighbours_cores = neighbours.cores()
    say("\n" + table(HEAD, lines(points)) + "\n")
    if report.neighbours_cores is not None:
        say(
            f"others, the server among them, kept {report.neighbours_cores:.1f} of {os.cpu_count()} cores busy meanwhile"
        )
    for bar in report.bars:
        say(str(bar))
    subtitle = f"PostgreSQL with fsync on, {os.cpu_count()} cores; fdatasync p50 {report.fdatasync_p50_ms:.2f} ms"
    plot = draw("Worker processes on one PostgreSQL", subtitle, panels(points), options.out / "scale.svg")
    say(f"\n{report.write(options.out)}\n{plot}")


if __name__ == "__main__":
    main()
