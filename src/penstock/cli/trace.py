"""`penstock trace`: what became of a chain of messages, drawn as a tree."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby, islice
from typing import TYPE_CHECKING, TypeVar

import click

from penstock.cli import target as targets
from penstock.cli.history_reading import OnlyRead
from penstock.cli.one_run import COLOURS as STATE_COLOURS
from penstock.cli.one_run import took_shown
from penstock.cli.output import NotFound, Output, age_shown, plain, printable
from penstock.data import runs, tracing
from penstock.data.traced import RUN, Trace, Traced
from penstock.model.errors import BadParameter
from penstock.model.ids import as_text
from penstock.model.times import text_of_micros

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

T = TypeVar("T")

MESSAGES_DRAWN = 500
LEVELS_DRAWN = 20  # a longer chain goes on at this level, with its depth as a number
ERROR_DRAWN = 160  # characters, in one line
WAITS = ("delayed", "waiting", "retrying")
COLOURS = STATE_COLOURS | {
    "acked": "green",
    "dead": "red",
    "retried": "yellow",
    "leased": "cyan",
    "ready": "cyan",
    "delayed": "cyan",
}
MAY_LACK = "What was settled in the last second, or in the second before a crash, may be missing."


@click.command()
@click.argument("id", metavar="ID")
@targets.target_argument
@targets.database_option
@click.pass_obj
def trace(output: Output, id: str, target: str | None, database: str | None) -> None:
    """The way of a chain of messages: each delivery, what waits, what died.

    Runs of workflows are told with each of their steps. ID is a correlation id, the text that was sent as one, or the id of
    any message or run of the chain. Reads only. APP is like market.py or package.module:app.

    \b
    Example:
      penstock trace 019a8c3e-7f00-7abc-8def-0123456789ab market.py
      penstock trace 019a8c3e7f007abc8def0123456789ab --database market.db --json
      penstock trace brand-cycle-acme-2026-11-15 market.py
    """
    wanted = tracing.parsed(id, names_a_chain=True)
    found = targets.find(target, database)
    traced, now = asyncio.run(_look(found, id, wanted))
    if traced is None:
        try:
            tracing.parsed(id)
        except BadParameter as error:
            neither = "No chain has that name as its `correlation=` either, nor has a run of a workflow."
            raise BadParameter(f"{error} {neither}", value=id) from None
        raise NotFound(
            f"Nothing is known of {as_text(wanted)} in {found.database}.",
            hint="It was never sent, it settled in the last second, or it is older than the history, which is kept for "
            f"{age_shown(found.config.limits.history_seconds)}.",
        )
    output.show(traced.told(), lambda console: draw(traced, console, now))


async def _look(found: targets.Target, text: str, id: bytes) -> tuple[Trace | None, int]:
    with targets.reading(found) as reading, closing(found.store().open_history(read_only=True)) as history:
        now = reading.now()
        traced = await tracing.trace(reading, OnlyRead(history), id, now=now)
        if traced is None:
            for run in await runs.find(reading, text, now=now):
                return await tracing.trace_of_run(reading, OnlyRead(history), run, now=now), now
        return traced, now


# -- drawing ----------------------------------------------------------------------------------------------


def draw(traced: Trace, console: Console, now: int) -> None:
    from rich.tree import Tree

    messages = [list(deliveries) for _, deliveries in groupby(traced.events, key=lambda event: event.id)]
    root = Tree(f"[bold]chain {as_text(traced.correlation_id)}[/]  {_counted(messages)}", guide_style="dim")
    above: list[Tree] = [root]
    for deliveries in islice(messages, MESSAGES_DRAWN):
        level = min(deliveries[0].depth, LEVELS_DRAWN)
        del above[level + 1 :]
        above.append(above[level].add(_message(deliveries, traced.events[0].at, now)))
    console.print(root)
    if len(messages) > MESSAGES_DRAWN:
        console.print(f"... and {len(messages) - MESSAGES_DRAWN:,} more messages; `--json` has all of them.")
    for note in traced.notes:
        console.print(f"[yellow]{plain(note)}[/]")
    console.print(f"[dim]{MAY_LACK}[/]")


def _counted(messages: list[list[Traced]]) -> str:
    states = [([each for each in deliveries if each.is_message] or deliveries)[-1].status for deliveries in messages]
    return f"{len(messages):,} message{'' if len(messages) == 1 else 's'}: " + ", ".join(
        f"{states.count(state):,} {state}" for state in dict.fromkeys(states)
    )


def _message(deliveries: list[Traced], began: int, now: int) -> Text:
    from rich.text import Text

    first = deliveries[0]
    name = next((each.name for each in deliveries if each.is_message), runs.TYPE)
    drawn = Text.assemble((printable(name), "bold"), (f"  {as_text(first.id)}", "dim"), f"  {printable(first.queue)}")
    if first.depth >= LEVELS_DRAWN:
        drawn.append(f"  depth {first.depth:,}", "dim")
    if first.replay_of is not None:
        drawn.append(f"  replay of {as_text(first.replay_of)}", "dim")
    if first.depth == 0 and first.causation_id is not None:
        drawn.append(f"  led to by {as_text(first.causation_id)}, of another chain or no longer known", "dim")
    for delivery in deliveries:
        drawn.append("\n")
        drawn.append_text(_delivery(delivery, began, now))
    return drawn


def _delivery(event: Traced, began: int, now: int) -> Text:
    from rich.text import Text

    parts = [
        (f"{_clock(event.at, began)}  {_what(event)}  ", ""),
        (event.status.replace("_", " "), COLOURS.get(event.status, "")),
    ]
    parts += [(f"  {said}", "") for said in _more(event, now)]
    if event.error is not None:
        parts.append((f"  {_one_line(event.error)}", "red" if event.status == "dead" else "yellow"))
    return Text.assemble(*parts)


def _what(event: Traced) -> str:
    if event.is_message:
        return f"{printable(event.service or '-')}  attempt {event.attempt}"
    if event.kind == RUN:
        return f"run {printable(event.run or '')} of {printable(event.name)}"
    tries = f", attempt {event.attempt}" if event.attempt > 1 else ""
    return f"  {event.kind} {printable(event.name)}{tries}"


def _more(event: Traced, now: int) -> Iterator[str]:
    if event.micros is not None:
        yield took_shown(event.micros) if event.run else f"{event.micros / 1_000:,.1f} ms"
    if event.status in WAITS and event.due_known is not None:
        yield f"due in {age_shown((event.due_known - now) / 1_000_000)}"
    if event.reason is not None:
        yield f"({printable(event.reason)})"
    if event.resolution is not None:
        yield f"then {printable(event.resolution)}"


def _clock(at: int, began: int) -> str:
    """The day is told where it is another than that of the chain's first event, which stands with its day."""
    text = text_of_micros(at)
    clock = f"{text[11:]}.{at // 1_000 % 1_000:03}"
    return clock if text[:10] == text_of_micros(began)[:10] and at != began else f"{text[:10]} {clock}"


def _one_line(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= ERROR_DRAWN else line[:ERROR_DRAWN] + "..."
