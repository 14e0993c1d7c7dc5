"""`penstock simulate`: an app under crashes, stalls, clock jumps and failing services, from many seeds or from one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli.command import CliCommand, this_output
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Verbatim, progress
from penstock.cli.reference import load_module
from penstock.model.errors import BadApp

if TYPE_CHECKING:
    from penstock.testing import History, Report, Simulation

SEEDS_MAX = 10_000_000
LINES_MAX = 1_000_000  # of a history that is shown whole
EXAMPLES = "Write `checkout.py`, `checkout.py:Checkout` or `package.simulations:Checkout`."
HINT = "`penstock simulate --help` explains what a simulation is."


@click.command(cls=CliCommand)
@click.argument("simulation", metavar="SIMULATION")
@click.option("--seeds", type=click.IntRange(1, SEEDS_MAX), default=200, show_default=True, help="Histories to run.")
@click.option("--first", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--seed", type=int, help="Repeat this one, and show all of it.")
def simulate(simulation: str, seeds: int, first: int, seed: int | None) -> Answer:
    """Search for a history that breaks an invariant of an app.

    SIMULATION is a class derived from penstock.testing.Simulation: a file or a module, and its name if there are several. It
    says how the app is made, what happens to it, and what must hold. Each seed is another history: the worker is killed at
    other moments, stalls and stops, the clock jumps, messages arrive in another order, services are slow and fail. The first
    history that breaks an invariant is shown, without what was not needed to break it.

    It runs in virtual time, on temporary databases. Exit code 1 if an invariant was broken.

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
            with progress(this_output(), "histories", len(asked)) as done:
                report = search(found, _counted(asked, done))
            history = history_of(found, seed) if seed is not None else None
        except InvariantBroken as error:
            history = error.history
    broken = history is not None and bool(history.broken)
    if history is None:
        text = _kept(report)
    elif seed is None:
        again = f"penstock simulate {simulation} --seed {history.seed}"
        text = f"{history.text()}\nShow all of it with: {again}"
    else:
        text = history.text(LINES_MAX)
    facts = {"passed": not broken, "history": None if history is None else asdict(history), **report._asdict()}
    return Answer(facts, Verbatim(text), code=BAD_ANSWER if broken else FINE)


def _counted(seeds: range, done: Callable[[int], None]) -> Iterator[int]:
    for number, seed in enumerate(seeds):
        done(number)
        yield seed


def _kept(report: Report) -> str:
    kinds = "".join(f"\n  {count:>6,}  {kind}" for kind, count in report.befallen.most_common())
    return f"Every invariant held in {report.histories:,} histories. Injected faults:{kinds or ' none'}"


def _load(simulation: str) -> type[Simulation]:
    from penstock.testing import Simulation

    place, _, name = simulation.partition(":")
    if not place:
        raise BadApp(f"{simulation!r} is not a simulation. {EXAMPLES}", reference=simulation, hint=HINT)
    own = {
        known: value
        for known, value in vars(load_module(place)).items()
        if isinstance(value, type) and issubclass(value, Simulation) and value is not Simulation
    }
    if not name and len(own) == 1:
        return next(iter(own.values()))
    if name not in own:
        there = f"It has: {', '.join(own)}." if own else "It has none: derive a class from penstock.testing.Simulation."
        what = f"has no simulation {name!r}" if name else "has no one simulation to choose"
        raise BadApp(f"{place} {what}. {there} {EXAMPLES}", reference=simulation, hint=HINT)
    return own[name]
