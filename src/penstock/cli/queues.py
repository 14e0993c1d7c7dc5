"""`penstock queues`: what is in each queue, and what an operator does: pause, resume, purge, tune, send."""

from __future__ import annotations

import asyncio
import os
import sys

import click

from penstock.app import App
from penstock.cli.command import (
    Noun,
    all_option,
    beside,
    confirm,
    looking,
    looking_at_one,
    name_argument,
    operating,
    operating_one,
    refuse,
    this_output,
    yes_option,
)
from penstock.cli.output import Answer, Facts, Title, listed, progress
from penstock.model.errors import BadConfig, BadMessage, BadParameter, TooLarge
from penstock.model.strict_json import BadJson, parse
from penstock.model.times import parse_span
from penstock.queues.admin import parallel_of, rate_of
from penstock.queues.external import PushRequest
from penstock.views import queues as view
from penstock.views.observer import Observer
from penstock.views.view import counted

LOOK_SECONDS = 0.2  # between two looks at how far a purge is
PRIORITIES = {"high": 0, "normal": 1, "low": 2}
PLAIN_TYPES = ("text", "bytes")  # bodies that are not JSON


@click.group(cls=Noun)
def queues() -> None:
    """List queues, and pause, resume, purge, tune or send to one.

    Name the app (market.py) or its database (market.db) after the queue. The default is the database that
    PENSTOCK_DATABASE or penstock.toml names, or the only one in this folder.

    Example:
      penstock queues list
      penstock queues show found
      penstock queues pause found market.py
      penstock queues send found '{"url": "https://shop.example/"}' market.py
    """


@queues.command("list")
@looking
@all_option
async def list_queues(observer: Observer, internals: bool) -> Answer:
    """List queues: what is ready, leased, delayed and dead.

    Changes nothing. `oldest` is how long the first ready message has been due.

    Example:
      penstock queues list
      penstock queues list market.db --json
    """
    return listed(view.QUEUES, await view.QUEUES.read(observer), internals=internals)


@queues.command()
@looking_at_one
async def show(observer: Observer, name: str) -> Answer:
    """Show one queue: its depth, its settings and the workers that serve it.

    Example:
      penstock queues show found
      penstock queues show found market.py --json
    """
    row = await view.one(observer, name)
    next_steps = []
    if row["dead"]:
        next_steps.append(f"Why messages died: penstock dead groups --queue {name}")
    if row["paused"]:
        next_steps.append(f"Resume with: penstock queues resume {name}")
    elif row["ready"] and not row["served_by"]:
        next_steps.append("No process serves this queue. Start one with: penstock run APP")
    return Answer(row, Title(name, "paused" if row["paused"] else ""), "", Facts(view.ONE, row), *next_steps)


@queues.command()
@operating_one
async def pause(app: App, name: str) -> Answer:
    """Stop delivering a queue until it is resumed.

    Messages can still be sent to it. Handlers that run are finished. The pause survives restarts.

    Example:
      penstock queues pause found
    """
    await (await app.desk()).pause(name)
    return Answer({"queue": name, "paused": True}, f"Paused queue {name}. Resume with: penstock queues resume {name}")


@queues.command()
@operating_one
async def resume(app: App, name: str) -> Answer:
    """Deliver a paused queue again, at once.

    Example:
      penstock queues resume found
    """
    await (await app.desk()).resume(name)
    return Answer({"queue": name, "paused": False}, f"Resumed queue {name}. See it with: penstock queues show {name}")


@queues.command()
@operating_one
@yes_option
async def purge(app: App, name: str, yes: bool) -> Answer:
    """Delete every waiting message of a queue.

    Handlers that run are finished, and dead letters stay (see `penstock dead`). Pause the queue first if messages are still
    sent to it.

    Example:
      penstock queues purge found
      penstock queues purge found --yes --json
    """
    desk, output = await app.desk(), this_output()
    waiting = (await desk.backlog(name)).count
    confirm(output, f"purge {counted(waiting, 'message')} of queue {name}", yes=yes)
    purging = asyncio.ensure_future(desk.purge(name))
    with progress(output, f"purging {name}", waiting) as moved:
        while not (await asyncio.wait({purging}, timeout=LOOK_SECONDS))[0]:
            moved(waiting - (await desk.backlog(name)).count)
    purged = await purging
    return Answer({"queue": name, "purged": purged}, f"Purged {counted(purged, 'message')} of queue {name}.")


@queues.command()
@operating_one
@click.option("--parallel", metavar="N|auto", help="Handlers at once in each process; auto: as the app declares.")
@click.option("--rate", metavar="R|none|auto", help="Starts a second; none: no limit; auto: as the app declares.")
async def tune(app: App, name: str, parallel: str | None, rate: str | None) -> Answer:
    """Set how many handlers run at once and how many start a second.

    It takes effect in all processes at once and survives restarts. What is left out stays as it is; `auto` goes back to what
    the app declares.

    Example:
      penstock queues tune found --parallel 4
      penstock queues tune found --rate 2.5
      penstock queues tune found --parallel auto --rate auto
    """
    if parallel is None and rate is None:
        raise refuse("Nothing to tune. Give --parallel, --rate or both.")
    desk = await app.desk()
    with beside(app) as observer:
        row = await view.queue_row(observer, name)
    most = row.parallel_tuned if row and parallel is None else parallel_of(parallel)
    starts = row.rate_tuned if row and rate is None else rate_of(rate)
    await desk.tune(name, parallel=most, rate=starts)
    undo = f" Undo with: penstock queues tune {name} --parallel auto --rate auto"
    back = "" if most is None and starts is None else undo
    return Answer({"queue": name, "parallel": most, "rate": starts}, view.tuned(name, most, starts) + back)


# -- send -------------------------------------------------------------------------------------------------


@queues.command()
@name_argument
@click.argument("body", metavar="[BODY]", required=False)
@operating
@click.option("--type", "type_", metavar="TYPE", help="The type of the message, where the queue accepts several.")
@click.option("--delay", metavar="SPAN", help="Deliver it no earlier: 90 (seconds), 5m, 2h30m.")
@click.option("--priority", type=click.Choice(list(PRIORITIES)), default="normal", show_default=True)
@click.option("--unique", metavar="KEY", help="Send it once: the same key again adds nothing.")
async def send(
    app: App, name: str, body: str | None, type_: str | None, delay: str | None, priority: str, unique: str | None
) -> Answer:
    """Send one message to a queue.

    BODY is JSON; `-`, or nothing, reads it from stdin. It is the payload, or an envelope with `type` and `payload`. Name the
    app (market.py) to check the payload against its class; with the database alone only the type is checked.

    Example:
      penstock queues send found '{"url": "https://shop.example/"}' market.py
      penstock queues send found - market.py --delay 5m < page.json
      penstock queues send notes 'call back' --type text --unique monday
    """
    seconds = None if delay is None else _seconds(delay)
    given = _given(body, app.limits.body_bytes_max)
    with beside(app) as observer:
        row = await view.queue_row(observer, name)
    declared = app.queues.get(name)
    accepted = list(declared.accepts) if declared and declared.accepts else row.accepted() if row else None
    content_type, payload = _payload(name, given, type_, accepted)
    parcel = PushRequest(
        body=payload, content_type=content_type, delay_seconds=seconds, priority=PRIORITIES[priority], unique=unique
    )
    try:
        pushed = await (await app.desk()).push(name, [parcel], source="cli")
    except (BadMessage, TooLarge) as error:
        # It is one message: its place in a batch says nothing.
        message = str(error).replace("messages[0].body", "The body").replace("messages[0]: ", "")
        raise BadParameter(message, code="bad_message") from error
    checked = bool(declared and declared.accepts) or content_type in PLAIN_TYPES
    facts = {"id": pushed.ids[0], "queue": name, "duplicate": bool(pushed.duplicates), "checked": checked}
    if pushed.duplicates:
        return Answer(facts, f"Message {pushed.ids[0]} was sent to queue {name} before; nothing was added.")
    why = "the app declares no types for this queue" if declared else "no app was named"
    unchecked = [] if checked else [f"Its payload was not checked, because {why}."]
    sent = f"Sent message {pushed.ids[0]} to queue {name}."
    return Answer(facts, sent, *unchecked, f"Follow it with: penstock why {pushed.ids[0]}")


def _seconds(text: str) -> float:
    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else parse_span(text)
    except BadConfig as error:
        raise refuse(str(error)) from error


def _given(body: str | None, bytes_max: int) -> bytes:
    if body not in (None, "-"):
        return os.fsencode(body or "")
    if body is None and sys.stdin.isatty():
        raise refuse("There is no body to send. Give one, or `-` to type it and end with Ctrl-D.")
    given = sys.stdin.buffer.read(2 * bytes_max + 1)
    if len(given) > 2 * bytes_max:
        raise BadParameter(f"The input is larger than a message may be: {bytes_max:,} bytes.", code="too_large")
    return given


def _payload(name: str, given: bytes, type_: str | None, accepted: list[str] | None) -> tuple[str, object]:
    """Return the content type and the body. Without its app the queue accepts anything, so the type is checked here."""
    named = type_ is not None
    if type_ is None and accepted is not None and len(accepted) == 1:
        (type_,) = accepted
    content_type = type_ if type_ in PLAIN_TYPES else "json"
    body = _json(given) if content_type == "json" else _plain(given, content_type)
    if not named and isinstance(body, dict) and "type" in body and "payload" in body:
        type_ = body["type"] if isinstance(body["type"], str) else None
    elif content_type == "json" and type_ is not None:
        body = {"type": type_, "payload": body}
    if accepted is not None and type_ not in accepted:
        wrong = (
            "Name the type of the message with --type" if type_ is None else f"Queue {name!r} does not accept {type_!r}"
        )
        raise BadParameter(f"{wrong}: it accepts {', '.join(accepted)}. Nothing was sent.", code="bad_message")
    if type_ == "v8":
        raise BadParameter("A body of type v8 cannot be written by hand. Nothing was sent.", code="bad_message")
    return content_type, body


def _plain(given: bytes, content_type: str) -> object:
    if content_type == "bytes":
        return given
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise BadParameter(f"The body is not text: {error}. Nothing was sent.", code="bad_message") from error


def _json(given: bytes) -> object:
    try:
        return parse(given)
    except BadJson as error:
        hint = 'A body is JSON, in single quotes for the shell: \'{"url": "..."}\'. Plain words need --type text.'
        raise BadParameter(f"{error} Nothing was sent.", code="bad_message", hint=hint) from error
