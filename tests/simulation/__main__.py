"""`python -m tests.simulation --seeds 10000`: runs many histories, each from its seed, and shows the first broken law."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.long_runs import RECORDING, next_seed, record
from tests.simulation.many import histories, named, quiet, report
from tests.simulation.simulator import WORLDS, Simulator


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many histories")
    parser.add_argument(
        "--first", type=int, help="the first seed (default: 0, or the next one if the runs are recorded)"
    )
    parser.add_argument("--seed", type=int, help="replay this one and show all of it")
    parser.add_argument("--world", choices=(*WORLDS, "both"), default="both", help="messages, or runs of workflows")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep-going", action="store_true", help="show every broken law, not only the first")
    asked = parser.parse_args()
    worlds = [*WORLDS] if asked.world == "both" else [asked.world]
    if asked.seed is not None:
        return max(replay(world, asked.seed) for world in worlds)
    codes = 0
    for world in worlds:
        first = (next_seed(title(world)) if RECORDING else 0) if asked.first is None else asked.first
        seeds = range(first, first + asked.seeds)
        codes |= many(world, seeds, asked.jobs, asked.keep_going)
        if codes and not asked.keep_going:
            break
    return codes


def replay(world: str, seed: int) -> int:
    quiet()
    with Simulator(world) as simulator:
        history = simulator.history(seed)
    print("\n".join(history.lines))
    print(f"seed {seed}: {history.size} {world}, {history.seconds:.1f} virtual seconds, trace {history.digest}")
    if history.broken:
        print(f"{named(seed)} broke the law: {history.broken}")
    return 1 if history.broken else 0


def title(world: str) -> str:
    return f"simulated histories of {world}"


def many(world: str, seeds: range, jobs: int, keep_going: bool) -> int:
    began, failed, size = time.perf_counter(), 0, 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(f"histories of {world}", total=len(seeds))
        for history in histories(seeds, jobs, world):
            progress.advance(bar)
            size += history.size
            if history.broken:
                failed += 1
                print(report(history), flush=True)
                if not keep_going:
                    break
    seconds = time.perf_counter() - began
    if RECORDING:
        record(title(world), {"histories": len(seeds), world: size}, failed=bool(failed), first=seeds.start)
    if not failed:
        rate = len(seeds) / seconds
        print(f"{len(seeds):,} histories, {size:,} {world}, no law broken, {rate:.0f} histories a second")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
