"""`penstock why`: why a message is not running, and when it will."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import click

from penstock.cli import target as targets
from penstock.cli.history_reading import OnlyRead
from penstock.cli.one_queue import facts
from penstock.cli.output import NotFound, Output, age_shown, fill, plain
from penstock.contracts import running
from penstock.data import runs, tracing
from penstock.data.ended import ended
from penstock.data.why import NOT_BEGUN, Answer, ended_run, waiting
from penstock.model.ids import as_text
from penstock.model.run import ENDED
from penstock.model.times import text_of_micros

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

PRIORITIES = ("high", "normal", "low")
OVER = ("done", "dead", "gone", *ENDED)
COLOURS = {
    "running": "green",
    "done": "green",
    "complete": "green",
    "errored": "red",
    "ready": "green",
    "dead": "red",
    "unserved": "yellow",
    "paused": "yellow",
}


@click.command()
@click.argument("id", metavar="ID")
@targets.target_argument
@targets.database_option
@click.pass_obj
def why(output: Output, id: str, target: str | None, database: str | None) -> None:
    """Why is this message, or this run of a workflow, not running, and when will it?

    ID is the id of a message, which `queue.send` returns and logs have, or that of a run. Changes nothing. What became of
    everything it led to shows `penstock trace ID`.

    \b
    Example:
      penstock why 019a8c3e-7f00-7abc-8def-0123456789ab
      penstock why 019a8c3e7f007abc8def0123456789ab market.db --json
    """
    found = targets.find(target, database)
    answers, now = asyncio.run(look(found, id))
    if not answers:
        raise NotFound(
            f"Nothing is known of {as_text(tracing.parsed(id))} in {found.database}.",
            hint="It was never sent, or purged, or it expired; it settled in the last second, or longer ago than the "
            f"history is kept, {age_shown(found.config.limits.history_seconds)}.",
        )
    first, *others = answers
    told = first.told() | {"others": [other.told() for other in others]}
    output.show(told, lambda console: _draw(console, answers, now))


async def look(found: targets.Target, text: str) -> tuple[list[Answer], int]:
    with targets.reading(found) as reading, closing(found.store().open_history(read_only=True)) as history:
        now = reading.now()
        run = next(iter(await runs.find(reading, text, now=now)), None)
        id = tracing.parsed(text) if run is None else bytes(run.key)

        def began(worker: int, row: int) -> int | None:
            return _began(reading.lookout.cells(worker), row, now)

        still = await waiting(reading, id, now=now, is_alive=reading.is_alive, began=began)
        # Where it waits, its past in that queue is told by its row; a dead letter of another handler is not.
        there = {answer.queue for answer in still}
        past = await ended(reading, OnlyRead(history), id)
        if run is not None and run.state in ENDED:
            return [ended_run(run), *(answer for answer in past if answer.finding.state == "dead")], now
        others = [answer for answer in past if answer.finding.state == "dead" or answer.queue not in there]
        return still + others, now


def _began(cells: memoryview | None, row: int, now: int) -> int | None:
    """When a worker on this machine began a row: its list of running handlers says."""
    if cells is None or cells[0] != running.MARK:
        return None
    steady = time.monotonic_ns() // 1_000
    for handler in running.running(cells):
        if row in running.rows_of(cells, handler):
            return now - max(0, steady - handler.started_micros)
    return NOT_BEGUN


# -- drawing ----------------------------------------------------------------------------------------------


def _draw(console: Console, answers: list[Answer], now: int) -> None:
    for place, answer in enumerate(answers):
        if place:
            console.print()
        handler = answer.facts.get("handler")
        where = f"queue {answer.queue}" + (f", handler {handler}" if handler else "")
        console.print(f"[bold]{plain(answer.type)}[/] {as_text(answer.id)} in {plain(where)}\n")
        colour = COLOURS.get(answer.finding.state, "cyan")
        console.print(f"[{colour}]{plain(answer.finding.state.replace('_', ' '))}[/]: {plain(answer.finding.reason)}")
        for finding in answer.besides:
            console.print(f"besides, {plain(finding.state.replace('_', ' '))}: {plain(finding.reason)}")
        console.print()
        console.print(fill(facts(), _facts(answer, now)))


def _facts(answer: Answer, now: int) -> list[tuple[str, str]]:
    told = answer.facts
    shown = []
    if answer.finding.when is not None:
        shown.append(("at" if answer.finding.state in OVER else "when", _moment(answer.finding.when, now)))
    elif answer.finding.state not in OVER and answer.finding.state != "running":
        shown.append(("when", "nobody can tell"))
    if told.get("since"):
        shown.append(("since", told["since"]))
    if told.get("attempt"):
        most = f" of {told['attempts_max']}" if told.get("attempts_max") else ""
        shown.append(("attempt", f"{told['attempt']}{most}"))
    if told.get("priority") is not None:
        shown.append(("priority", PRIORITIES[told["priority"]]))
    return shown + [(name.removesuffix("_at"), told[name]) for name in ("sent_at", "expires_at") if told.get(name)]


def _moment(at: int, now: int) -> str:
    away = age_shown(abs(at - now) / 1_000_000)
    return f"{text_of_micros(at)} UTC, " + (f"in {away}" if at > now else "now" if at == now else f"{away} ago")
