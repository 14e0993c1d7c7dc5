"""`penstock simulate`: an app under crashes, stalls, clocks that jump and services that fail, from many seeds or from one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli.operating import progress
from penstock.cli.output import BAD_ANSWER, FINE, Output, printable
from penstock.cli.reference import load_module
from penstock.model.errors import BadApp

if TYPE_CHECKING:
    from penstock.testing import History, Report, Simulation

SEEDS_MAX = 10_000_000
LINES_MAX = 1_000_000  # of a story that is asked for
EXAMPLES = "Write `checkout.py`, `checkout.py:Checkout` or `package.simulations:Checkout`."
HINT = "`penstock simulate --help` tells what a simulation is."


@click.command()
@click.argument("simulation", metavar="SIMULATION")
@click.option("--seeds", type=click.IntRange(1, SEEDS_MAX), default=200, show_default=True, help="Histories to run.")
@click.option("--first", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--seed", type=int, help="Repeat this one, and tell all of it.")
@click.pass_obj
def simulate(output: Output, simulation: str, seeds: int, first: int, seed: int | None) -> int:
    """Look for a history that breaks what an app promises.

    SIMULATION is a class derived from penstock.testing.Simulation: a file or a module, and its name if there are several.
    It says how the app is made, what happens to it, and what must hold. Each seed is another history: the worker is killed
    at other moments, stalls and stops, the clock jumps, messages come in another order, services are slow and fail. The
    first history that breaks an invariant is told, without all that was not needed to break it.

    It takes virtual time only, on databases that are thrown away. Exit code 1 if an invariant was broken.

    \b
    Example:
      penstock simulate checkout.py
      penstock simulate package.simulations:Checkout --seeds 5000
      penstock simulate checkout.py --seed 17
    """
    from penstock.testing.simulating import InvariantBroken, Report, history_of, search

    found = _load(simulation)
    asked = range(first, first + seeds) if seed is None else range(seed, seed + 1)
    history: History | None = None
    report = Report(0, Counter())
    with redirect_stdout(sys.stderr):  # what the app prints
        try:
            with progress(output, "histories", len(asked)) as done:
                report = search(found, _counted(asked, done))
            history = history_of(found, seed) if seed is not None else None
        except InvariantBroken as error:
            history = error.history
    broken = history is not None and bool(history.broken)
    if history is None:
        text = _kept(report)
    elif seed is None:
        again = f"penstock simulate {simulation} --seed {history.seed}"
        text = f"{history.told()}\nAll of it, and again: {again}"
    else:
        text = history.told(LINES_MAX)
    told = {"passed": not broken, "history": None if history is None else asdict(history), **report._asdict()}
    output.show(told, lambda console: console.print(printable(text), markup=False, soft_wrap=True))
    return BAD_ANSWER if broken else FINE


def _counted(seeds: range, done: Callable[[int], None]) -> Iterator[int]:
    for number, seed in enumerate(seeds):
        done(number)
        yield seed


def _kept(report: Report) -> str:
    kinds = "".join(f"\n  {count:>6,}  {kind}" for kind, count in report.befallen.most_common())
    return f"{report.histories:,} histories kept every invariant. What befell them:{kinds or ' nothing'}"


def _load(simulation: str) -> type[Simulation]:
    from penstock.testing import Simulation

    place, _, name = simulation.partition(":")
    if not place:
        raise BadApp(f"{simulation!r} names no simulation. {EXAMPLES}", reference=simulation, hint=HINT)
    own = {
        known: value
        for known, value in vars(load_module(place)).items()
        if isinstance(value, type) and issubclass(value, Simulation) and value is not Simulation
    }
    if not name and len(own) == 1:
        return next(iter(own.values()))
    if name not in own:
        there = f"It has: {', '.join(own)}." if own else "It has none: derive a class from penstock.testing.Simulation."
        what = f"has no simulation called {name!r}" if name else "has to be told which simulation"
        raise BadApp(f"{place} {what}. {there} {EXAMPLES}", reference=simulation, hint=HINT)
    return own[name]
