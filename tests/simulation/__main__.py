"""`python -m tests.simulation --seeds 10000`: runs many histories, each from its seed, and shows the first broken law."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.simulation.simulator import LINES_SHOWN, History, Simulator

SEEDS_A_TURN = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay this one and show all of it")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep-going", action="store_true", help="show every broken law, not only the first")
    asked = parser.parse_args()
    if asked.seed is not None:
        return replay(asked.seed)
    return many(range(asked.first, asked.first + asked.seeds), asked.jobs, asked.keep_going)


def quiet() -> None:
    """Clocks that jump are what this is about: nobody needs to be warned."""
    logging.getLogger("penstock").setLevel(logging.CRITICAL)


def replay(seed: int) -> int:
    quiet()
    with Simulator() as simulator:
        history = simulator.history(seed)
    print("\n".join(history.lines))
    print(f"seed {seed}: {history.rows} messages, {history.seconds:.1f} virtual seconds, trace {history.digest}")
    if history.broken:
        print(f"{named(seed)} broke the law: {history.broken}")
    return 1 if history.broken else 0


def many(seeds: range, jobs: int, keep_going: bool) -> int:
    began, failed, messages = time.perf_counter(), 0, 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("histories", total=len(seeds))
        for history in histories(seeds, jobs):
            progress.advance(bar)
            messages += history.rows
            if history.broken:
                failed += 1
                print(report(history), flush=True)
                if not keep_going:
                    break
    seconds = time.perf_counter() - began
    if not failed:
        rate = len(seeds) / seconds
        print(f"{len(seeds):,} histories, {messages:,} messages, no law broken, {rate:.0f} histories a second")
    return 1 if failed else 0


def histories(seeds: range, jobs: int) -> Iterator[History]:
    """In order of the seeds, so that the first failure is the same however many processes there are."""
    turns = [seeds[start : start + SEEDS_A_TURN] for start in range(0, len(seeds), SEEDS_A_TURN)]
    if jobs == 1:
        for turn in turns:
            yield from a_turn(turn)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = iter(turns)
        pending = [pool.submit(a_turn, turn) for turn in islice(waiting, jobs * 2)]
        try:
            while pending:
                yield from pending.pop(0).result()
                pending += [pool.submit(a_turn, turn) for turn in islice(waiting, 1)]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def a_turn(seeds: range) -> list[History]:
    quiet()
    with Simulator() as simulator:
        return [_light(simulator.history(seed)) for seed in seeds]


def _light(history: History) -> History:
    """The lines of a history without fault need not travel between processes."""
    return history if history.broken else History(history.seed, None, [], history.seconds, history.rows)


def report(history: History) -> str:
    last = "\n".join(history.lines[-LINES_SHOWN:])
    replay = f"replay: python -m tests.simulation --seed {history.seed}"
    return f"{last}\n{named(history.seed)} broke the law: {history.broken}\n{replay}"


def named(seed: int) -> str:
    command = ["git", "-c", "safe.directory=*", "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return f"seed {seed}@{commit.strip()}"


if __name__ == "__main__":
    sys.exit(main())
