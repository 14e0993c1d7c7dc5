"""The memory of runs that sleep: many runs of a workflow begin, sleep for a day of virtual time, and finish.

    make bench-sleeping        or        python bench/sleeping.py [--brief | --quick] [--runs 10000 100000]

A run that sleeps is a row with a due time and nothing else, so ten times as many of them should need no more memory. Five
hundred begin in every virtual second, and the first wakes long after the last has fallen asleep. Each number of runs has a
process of its own, whose peak is read at its end. The store is a SQLite file; nothing waits for the disk, since it is not
time that is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import penstock as ps
from bench.place import Place, in_file
from bench.plot import Line, Panel, draw
from bench.report import ROOT, Bar, Report, Row, size_of, table
from bench.workflows_penstock import ENDED
from penstock.cli.output import Output, progress
from penstock.cli.worker import GARBAGE_THRESHOLD
from penstock.config import Config
from penstock.contracts.faults import NoFaults
from penstock.testing import run
from penstock.testing.surroundings import VirtualHost

RUNS = (10_000, 100_000)
QUICK = (1_000, 10_000)
STARTED_A_SECOND = 500
# That the most runs may need beyond what the fewest do: meanwhile the page caches fill, of the database (16 MB) and of the
# history (8 MB). Nothing else grows.
MORE_MB_MAX = 40.0
HEAD = ("runs that sleep", "MB before", "MB at most", "MB of them", "database MB", "s to begin", "s to finish")


@dataclass(frozen=True, slots=True)
class Slept:
    """`before_mb` is what the process had when the app was open; seconds are real ones."""

    runs: int
    before_mb: float
    peak_mb: float
    database_mb: float
    begin_seconds: float
    finish_seconds: float

    @property
    def own_mb(self) -> float:
        return self.peak_mb - self.before_mb


def peak_mb() -> float:
    """The most that this process ever had. Linux counts in units of 1,024 bytes, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1_024) / 1e6


# -- in a process of its own ----------------------------------------------------------------------------------------


async def slept(place: Place, runs: int, moved: Callable[[int], None]) -> Slept:
    """Runs that each do a step, sleep for a day and do another. `moved` is told how many steps are done."""
    config = Config(synchronous="off")
    app = ps.App("bench", database=place.database, migrations=place.folder / "none", config=config)
    done = 0

    async def counted(number: int) -> int:
        nonlocal done
        done += 1
        if done % STARTED_A_SECOND == 0:
            moved(done)
        return number

    @app.workflow
    async def sleeper(run: ps.Run, number: int) -> int:
        await run.step("before", counted, number)
        await run.sleep(days=1)
        return await run.step("after", counted, number)

    host = VirtualHost()
    process = host.process("worker")
    engine = await process.start(app._open(host.surroundings(process, NoFaults())))
    process.owns(engine)
    running = process.start(app.run())
    await host.loop.settle()
    gc.collect()
    before, began = peak_mb(), time.perf_counter()
    for start in range(0, runs, STARTED_A_SECOND):
        async with app.unit():
            for number in range(start, min(start + STARTED_A_SECOND, runs)):
                sleeper.start(number)
        await asyncio.sleep(1)
    between = time.perf_counter()
    await asyncio.sleep(2 * 86_400)
    await host.loop.settle()
    ended = time.perf_counter()
    app.stop()
    await running
    host.dispose()
    return Slept(runs, before, peak_mb(), 0.0, between - began, ended - between)


def child(runs: int, folder: Path) -> None:
    gc.set_threshold(GARBAGE_THRESHOLD)  # as a worker process of `penstock run` sets itself up
    place = in_file(folder / "sleeping.db")
    with progress(Output(), f"{runs:,} runs that sleep", 2 * runs) as moved:
        found = run(lambda: slept(place, runs, moved))
    (complete,) = place.row(ENDED)
    assert complete == runs, f"{complete} of {runs} runs have finished"
    found = replace(found, database_mb=Path(place.database).stat().st_size / 1e6)
    print(json.dumps(asdict(found)), flush=True)


# -- the comparing side ---------------------------------------------------------------------------------------------


def measured(runs: int, out: Path) -> Slept:
    with tempfile.TemporaryDirectory(dir=out) as folder:
        command = [sys.executable, "-m", "bench.sleeping", "--child", str(runs), "--out", folder]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        sys.exit(f"the process with {runs:,} runs failed: see above")
    return Slept(**json.loads(ended.stdout))


def fill(report: Report, found: list[Slept]) -> None:
    least, most = found[0], found[-1]
    for each in found:
        ratio = each.peak_mb / least.peak_mb
        name = f"peak memory, {each.runs:,} runs that sleep"
        report.rows.append(Row("penstock", name, each.peak_mb, "MB", least.peak_mb, ratio, durability="off"))
    if most is not least:
        more = most.peak_mb - least.peak_mb
        name = f"peak memory of {most.runs:,} runs that sleep, beyond {least.runs:,}"
        report.rows.append(Row("penstock", name, more, "MB", durability="off"))
        report.bars.append(Bar(name, more, MORE_MB_MAX, at_most=True, unit="MB"))


def lines(found: list[Slept]) -> list[tuple[str, ...]]:
    return [
        (
            f"{each.runs:,}",
            f"{each.before_mb:.1f}",
            f"{each.peak_mb:.1f}",
            f"{each.own_mb:.1f}",
            f"{each.database_mb:.0f}",
            f"{each.begin_seconds:.1f}",
            f"{each.finish_seconds:.1f}",
        )
        for each in found
    ]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The memory of runs that sleep.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="as much as the page of all benchmarks has time for")
    size.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--runs", nargs="+", type=int, metavar="N", help="how many sleep at the same time")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where results and databases go")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    options = parsed()
    if options.child:
        return child(options.child, options.out)
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    sizes = sorted(options.runs or (QUICK if options.quick or options.brief else RUNS))
    report = Report("sleeping", seed=0, size=size_of(options))
    if report.size != "full":
        for left_out in sorted(set(RUNS) - set(sizes)):
            report.skip(f"{left_out:,} runs that sleep", f"--{report.size}")
    say(f"sleeping: {', '.join(f'{size:,}' for size in sizes)} runs, each asleep for a day of virtual time")
    found = []
    for size in sizes:
        found.append(measured(size, options.out))
        say(f"  {size:,} runs: {found[-1].peak_mb:.1f} MB at most")
    fill(report, found)
    say("\n" + table(HEAD, lines(found)) + "\n")
    for bar in report.bars:
        say(str(bar))
    drawn = [Line(f"{each.runs:,} runs", each.peak_mb, f"{each.peak_mb:.1f}") for each in found]
    panel = Panel("Peak memory of the process, MB", "shorter is better", drawn)
    plot = draw("Runs that sleep", "one process, SQLite, virtual time", [panel], options.out / "sleeping.svg")
    say(f"\n{report.write(options.out)}\n{plot}")
    return None


if __name__ == "__main__":
    main()
