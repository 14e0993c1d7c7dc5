"""Runs a simulation from many seeds, and tells the first history that breaks an invariant: as small as it gets, and again."""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock.testing.loop import run
from penstock.testing.simulation import Simulation

LINES_SHOWN = 40
NOT_OWN = (str(Path(__file__).parents[1]) + os.sep, str(Path(asyncio.__file__).parent) + os.sep)  # files of Penstock
SPARED_MAX = 50  # where one thing is left out another may happen instead, but not for ever
PATIENCE_SECONDS = 20.0  # real ones without a leap: something spins


@dataclass(frozen=True, slots=True)
class History:
    """What became of one seed. `broken` is the error that ended it, `where` the line it came from; both are empty if every
    invariant held."""

    simulation: str
    seed: int
    broken: str
    where: str
    befallen: list[str]
    story: list[str]

    def text(self, lines: int = LINES_SHOWN) -> str:
        """The disturbances of a history, and the last lines of its story."""
        before = len(self.story) - lines
        return "\n".join(
            [
                f"{self.simulation}, seed {self.seed}: {self.broken or 'every invariant held'}",
                *([f"  {self.where}"] if self.where else []),
                "Injected faults, all of them necessary:" if self.broken else "Injected faults:",
                *(f"  {what}" for what in self.befallen or ["nothing"]),
                f"Events, by virtual seconds{f', after {before} lines that are left out' if before > 0 else ''}:",
                *self.story[-lines:],
            ]
        )


class Report(NamedTuple):
    """How many histories were run, and how often each kind of disturbance happened."""

    histories: int
    befallen: Counter[str]


class InvariantBroken(AssertionError):
    """A history did not keep what its simulation promises. The message tells it."""

    def __init__(self, history: History) -> None:
        self.history = history
        super().__init__(f"{history.text()}\nPENSTOCK_SEED={history.seed} repeats it.")


def simulate(simulation: type[Simulation], *, seeds: Iterable[int] = range(200)) -> Report:
    """Runs a history from each seed and raises `InvariantBroken` at the first that breaks one. Where the environment's
    `PENSTOCK_SEED` is set, only that one is run."""
    given = os.environ.get("PENSTOCK_SEED")
    return search(simulation, [int(given)] if given else seeds)


def search(simulation: type[Simulation], seeds: Iterable[int]) -> Report:
    count, befallen = 0, Counter[str]()
    for seed in seeds:
        history = history_of(simulation, seed)
        if history.broken:
            raise InvariantBroken(smaller(simulation, history))
        count += 1
        befallen.update(what.partition(":")[0] for what in history.befallen)
    return Report(count, befallen)


def history_of(simulation: type[Simulation], seed: int, *, spared: Collection[str] = ()) -> History:
    """One history, the same each time. What is `spared` does not befall it."""
    worlds: list[Simulation] = []

    async def main() -> None:
        worlds.append(simulation(seed, spared=spared))
        await worlds[0].live()

    broken = where = ""
    with _unwarned():
        try:
            run(main, seed=seed, patience=PATIENCE_SECONDS, horizon=simulation.longest)
        except Exception as error:
            broken, where = f"{type(error).__name__}: {error}".removesuffix(": "), _place(error)
    befallen, story = (worlds[0].befallen, worlds[0].story) if worlds else ([], [])
    return History(simulation.__name__, seed, broken, where, befallen, story)


def smaller(simulation: type[Simulation], history: History) -> History:
    """Reduce the disturbances that break an assertion: leave out one after another while it still breaks."""
    spared: set[str] = set()
    tried: list[str] = []  # since the last that could be left out
    while (left := [what for what in history.befallen if what not in tried]) and len(spared) < SPARED_MAX:
        without = history_of(simulation, history.seed, spared={*spared, left[0]})
        tried.append(left[0])
        if without.broken and without.where == history.where:
            history = without
            spared.add(left[0])
            tried.clear()
    return history


def _place(error: BaseException) -> str:
    """The last line of the user's own on the way to an error."""
    own = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(NOT_OWN)]
    return f"{own[-1].filename}:{own[-1].lineno} in {own[-1].name}: {own[-1].line}" if own else ""


@contextmanager
def _unwarned() -> Iterator[None]:
    """Silence the warnings about deaths and jumping clocks, which are intended here."""
    log = logging.getLogger("penstock")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
