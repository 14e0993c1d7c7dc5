"""Runs many histories in several processes, and says in words what one of them broke."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from tests.simulation.simulator import LINES_SHOWN, History, Simulator

SEEDS_A_TURN = 50


def histories(seeds: range, jobs: int, world: str = "messages") -> Iterator[History]:
    """In order of the seeds, so that the first failure is the same however many processes there are."""
    turns = [seeds[start : start + SEEDS_A_TURN] for start in range(0, len(seeds), SEEDS_A_TURN)]
    if jobs == 1:
        for turn in turns:
            yield from a_turn(turn, world)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = iter(turns)
        pending = [pool.submit(a_turn, turn, world) for turn in islice(waiting, jobs * 2)]
        try:
            while pending:
                yield from pending.pop(0).result()
                pending += [pool.submit(a_turn, turn, world) for turn in islice(waiting, 1)]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def a_turn(seeds: range, world: str) -> list[History]:
    quiet()
    with Simulator(world) as simulator:
        return [_light(simulator.history(seed)) for seed in seeds]


def _light(history: History) -> History:
    """The lines of a history without fault need not travel between processes."""
    return history if history.broken else replace(history, lines=[])


def quiet() -> None:
    """Clocks that jump are what this is about: nobody needs to be warned."""
    logging.getLogger("penstock").setLevel(logging.CRITICAL)


def report(history: History) -> str:
    last = "\n".join(history.lines[-LINES_SHOWN:])
    replay = f"replay: python -m tests.simulation --world {history.world} --seed {history.seed}"
    return f"{last}\n{named(history.seed)} broke the law: {history.broken}\n{replay}"


def named(seed: int) -> str:
    command = ["git", "-c", "safe.directory=*", "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return f"seed {seed}@{commit.strip()}"
