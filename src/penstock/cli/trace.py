"""`penstock trace` and `penstock why`: what became of a chain of messages, and why a message is not running."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING

import click

from penstock.app import App
from penstock.cli.command import CliCommand, beside, looking
from penstock.cli.output import COLOURS, Answer, Facts, NotFound, Title
from penstock.model.errors import BadParameter
from penstock.model.ids import as_text
from penstock.model.run import ENDED, SIGNAL
from penstock.model.times import text_of_micros
from penstock.views import runs, sources
from penstock.views import trace as tracing
from penstock.views.answers import look
from penstock.views.chain import RUN, Trace, Traced
from penstock.views.observer import Observer, Target
from penstock.views.runs import PRIORITY_NAMES
from penstock.views.view import Column, Row, counted, printable, short, span_text, tone_of, took_text

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

MESSAGES_DRAWN = 500
LEVELS_DRAWN = 20  # a longer chain continues at this level, with its depth as a number
ERROR_SHOWN = 160  # characters
WAITS = ("delayed", "waiting", "retrying")
OVER = ("done", "dead", "gone", *ENDED)
MAY_LACK = "Deliveries that settled in the last second, or in the second before a crash, may be missing."

id_argument = click.argument("id", metavar="ID")


# -- trace --------------------------------------------------------------------------------------------------


@click.command(cls=CliCommand)
@id_argument
@looking
async def trace(observer: Observer, id: str) -> Answer:
    """Trace a chain of messages: each delivery, what waits, what died.

    ID is a correlation id, the text that was sent as one, or the id of any message or run of the chain. Runs of workflows are
    shown with their steps.

    Example:
      penstock trace 019a8c3e-7f00-7abc-8def-0123456789ab market.py
      penstock trace 019a8c3e7f007abc8def0123456789ab --database market.db --json
      penstock trace brand-cycle-acme-2026-11-15 market.py
    """
    wanted, now = tracing.parsed(id, names_a_chain=True), observer.now()
    found = await tracing.trace(observer, observer, wanted, now=now)
    if found is None:
        for run in await runs.find(observer, id, now=now):
            found = await tracing.trace_of_run(observer, observer, run, now=now)
    if found is None:
        try:
            tracing.parsed(id)
        except BadParameter as error:
            neither = "No chain has that name as its `correlation=`, and no run of a workflow has it as its id."
            raise BadParameter(f"{error} {neither}", value=id) from None
        raise _unknown(observer.target, wanted, "It was never sent")
    return Answer(found.facts(), *drawn(found, now))


def _unknown(target: Target, id: bytes, how: str) -> NotFound:
    kept = span_text(target.config.limits.history_seconds)
    hint = f"{how}, it settled in the last second, or it is older than the history, which is kept for {kept}."
    return NotFound(f"Nothing is known of {as_text(id)} in {target.database}.", hint=hint)


def drawn(traced: Trace, now: int) -> Iterator[object]:
    from rich.tree import Tree

    messages = [list(deliveries) for _, deliveries in groupby(traced.events, key=lambda event: event.id)]
    root = Tree(f"[bold]chain {as_text(traced.correlation_id)}[/]  {_states(messages)}", guide_style="dim")
    above: list[Tree] = [root]
    for deliveries in islice(messages, MESSAGES_DRAWN):
        level = min(deliveries[0].depth, LEVELS_DRAWN)
        del above[level + 1 :]
        above.append(above[level].add(_message(deliveries, traced.events[0].at, now)))
    yield root
    if len(messages) > MESSAGES_DRAWN:
        yield f"... and {len(messages) - MESSAGES_DRAWN:,} more messages; --json has all of them."
    yield from traced.notes
    yield MAY_LACK


def _states(messages: list[list[Traced]]) -> str:
    states = [([each for each in deliveries if each.is_message] or deliveries)[-1].status for deliveries in messages]
    each = ", ".join(f"{states.count(state):,} {state}" for state in dict.fromkeys(states))
    return f"{counted(len(messages), 'message')}: {each}"


def _message(deliveries: list[Traced], began: int, now: int) -> Text:
    from rich.text import Text

    first = deliveries[0]
    name = next((each.name for each in deliveries if each.is_message), runs.TYPE)
    made = Text.assemble((printable(name), "bold"), (f"  {as_text(first.id)}", "dim"), f"  {printable(first.queue)}")
    if first.depth >= LEVELS_DRAWN:
        made.append(f"  depth {first.depth:,}", "dim")
    if first.replay_of is not None:
        made.append(f"  replay of {as_text(first.replay_of)}", "dim")
    if first.depth == 0 and first.causation_id is not None:
        made.append(f"  caused by {as_text(first.causation_id)}, of another chain or no longer known", "dim")
    for delivery in deliveries:
        made.append("\n")
        made.append_text(_delivery(delivery, began, now))
    return made


def _delivery(event: Traced, began: int, now: int) -> Text:
    from rich.text import Text

    state = (event.status.replace("_", " "), COLOURS[tone_of(event.status)])
    parts = [
        (f"{_clock(event.at, began)}  {_what(event)}  ", ""),
        state,
        *((f"  {more}", "") for more in _more(event, now)),
    ]
    if event.error is not None:
        parts.append((f"  {short(event.error, ERROR_SHOWN)}", "red" if event.status == "dead" else "yellow"))
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
        yield took_text(event.micros / 1_000)
    if event.status in WAITS and event.due_known is not None:
        verb = "times out" if event.kind == SIGNAL else "due"
        yield f"{verb} in {span_text(max(0, event.due_known - now) / 1_000_000)}"
    if event.reason is not None:
        yield f"({printable(event.reason)})"
    if event.resolution is not None:
        yield f"then {printable(event.resolution)}"


def _clock(at: int, began: int) -> str:
    """The time of the day, with its date on the first event and where it is another than that of the first."""
    text = text_of_micros(at)
    clock = f"{text[11:]}.{at // 1_000 % 1_000:03}"
    return clock if text[:10] == text_of_micros(began)[:10] and at != began else f"{text[:10]} {clock}"


# -- why ----------------------------------------------------------------------------------------------------


def _end(name: str) -> Column:
    def when(row: Row) -> str | None:
        return row["when"] if (row["state"] in OVER) == (name == "ended") else None

    return Column("when", name, "exact_time", of=when)


def _unknown_when(row: Row) -> str | None:
    return "not known" if row["when"] is None and row["state"] not in (*OVER, "running") else None


def _attempt(row: Row) -> str | None:
    most = f" of {row['attempts_max']}" if row.get("attempts_max") else ""
    return f"{row['attempt']}{most}" if row.get("attempt") else None


def _priority(row: Row) -> str | None:
    return None if row.get("priority") is None else PRIORITY_NAMES[row["priority"]]


WHY = (
    _end("ended"),
    _end("until"),
    Column("", "until", of=_unknown_when),
    Column("since", "since", "exact_time"),
    Column("attempt", "attempt", of=_attempt),
    Column("priority", "priority", of=_priority),
    Column("sent_at", "sent", "exact_time"),
    Column("expires_at", "expires", "exact_time"),
)


@click.command(cls=CliCommand)
@id_argument
@looking
async def why(observer: Observer, id: str) -> Answer:
    """Explain why a message, a run or a source is not running, and when it will.

    ID is the id of a message, which `queue.send` returns and logs contain, that of a run, or the name of a source.
    `penstock trace ID` shows what became of everything that a message caused.

    Example:
      penstock why 019a8c3e-7f00-7abc-8def-0123456789ab
      penstock why 019a8c3e7f007abc8def0123456789ab market.db --json
    """
    try:
        answers = await look(observer, id)
    except BadParameter:
        source = next((row for row in await sources.rows(observer) if row["name"] == id), None)
        if source is None:
            raise
        return Answer(
            source, Title(f"source {id}", source["state"]), source["reason"], "", Facts(sources.SOURCE[:-1], source)
        )
    if not answers:
        raise _unknown(observer.target, tracing.parsed(id), "It was never sent, it was purged or it expired")
    rows = [answer.row() for answer in answers]
    parts: list[object] = []
    for row in rows:
        handler = f", handler {row['handler']}" if row.get("handler") else ""
        what = (
            f"run {id}" if row["type"] == runs.TYPE else f"{row['type']} {row['id']} in queue {row['queue']}{handler}"
        )
        parts += ["", Title(what, row["state"]), row["reason"]]
        parts += [f"Also {each['state'].replace('_', ' ')}: {each['reason']}" for each in row["besides"]]
        parts += ["", Facts(WHY, row)]
    return Answer(rows[0] | {"others": rows[1:]}, *parts[1:])


async def waits_for(app: App, id: str) -> str:
    """Return what a message waits for, as a sentence."""
    with beside(app) as observer:
        return (await look(observer, id))[0].finding.reason
