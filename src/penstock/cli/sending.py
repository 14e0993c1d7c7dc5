"""`penstock queues send`: one message by hand, checked as one that comes over HTTP is."""

from __future__ import annotations

import asyncio
import os
import sys

import click

from penstock.cli import target as targets
from penstock.cli.one_queue import look
from penstock.cli.operating import operating, refuse
from penstock.cli.output import Output, plain
from penstock.model.errors import BadConfig, BadMessage, BadParameter, TooLarge
from penstock.model.strict_json import BadJson, parse
from penstock.model.times import parse_span
from penstock.queues.parcel import Parcel, Pushed

PRIORITIES = {"high": 0, "normal": 1, "low": 2}
PLAIN_TYPES = ("text", "bytes")  # bodies that are no JSON


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("body", metavar="[BODY]", required=False)
@targets.target_argument
@targets.database_option
@click.option("--type", "type_", metavar="TYPE", help="Which message it is, where the queue accepts several types.")
@click.option("--delay", metavar="SPAN", help="Not before then: 90 (seconds), 5m, 2h30m.")
@click.option("--priority", type=click.Choice(list(PRIORITIES)), default="normal", show_default=True)
@click.option("--unique", metavar="KEY", help="Sent once: the same key again adds nothing.")
@click.pass_obj
def send(
    output: Output,
    name: str,
    body: str | None,
    target: str | None,
    database: str | None,
    type_: str | None,
    delay: str | None,
    priority: str,
    unique: str | None,
) -> None:
    """Send one message to a queue.

    BODY is JSON; `-`, or nothing, reads it from stdin. It is the payload, or a whole envelope with `type` and `payload`.
    Name the app (market.py) to have the payload checked against its class; with the database alone only its type is.

    \b
    Example:
      penstock queues send found '{"url": "https://shop.example/"}' market.py
      penstock queues send found - market.py --delay 5m < page.json
      penstock queues send notes 'call back' --type text --unique monday
    """
    found = targets.find(target, database)
    seconds = None if delay is None else _seconds(delay)
    given = _given(body, found.config.limits.body_bytes_max)
    accepted, declared = asyncio.run(_accepted(found, name))
    parcel = _parcel(name, given, type_, accepted, delay_seconds=seconds, priority=PRIORITIES[priority], unique=unique)
    pushed = asyncio.run(_push(found, name, parcel))
    checked = declared or parcel.content_type in PLAIN_TYPES
    told = {"id": pushed.ids[0], "queue": name, "duplicate": bool(pushed.duplicates), "checked": checked}
    why = "no app was named" if found.app is None else "the app declares no types for this queue"
    output.show(told, lambda console: console.print(_sentence(name, pushed, "" if checked else why)))


def _sentence(name: str, pushed: Pushed, unchecked_because: str) -> str:
    if pushed.duplicates:
        return f"{pushed.ids[0]} had been sent to {plain(name)} before; nothing was added."
    unchecked = f"\nIts payload was not checked, because {unchecked_because}." if unchecked_because else ""
    return f"{pushed.ids[0]} was sent to {plain(name)}.{unchecked}"


def _seconds(text: str) -> float:
    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else parse_span(text)
    except BadConfig as error:
        raise refuse(str(error)) from error


def _given(body: str | None, bytes_max: int) -> bytes:
    if body not in (None, "-"):
        return os.fsencode(body or "")
    if body is None and sys.stdin.isatty():
        raise refuse("What is to be sent? Give a body, or `-` to type it and end with Ctrl-D.")
    given = sys.stdin.buffer.read(2 * bytes_max + 1)
    if len(given) > 2 * bytes_max:
        raise BadParameter(
            f"What came from stdin is larger than a message may be: {bytes_max:,} bytes.", code="too_large"
        )
    return given


async def _accepted(found: targets.Target, name: str) -> tuple[list[str] | None, bool]:
    """The types that the queue takes, None for any; and whether their classes are known."""
    if found.app is not None and name in found.app.queues:
        accepts = found.app.queues[name].accepts
        return (None if accepts is None else list(accepts)), accepts is not None
    row = (await look(found, name)).row
    return row.accepted(), row.accepts is None


def _parcel(
    name: str,
    given: bytes,
    type_: str | None,
    accepted: list[str] | None,
    *,
    delay_seconds: float | None,
    priority: int,
    unique: str | None,
) -> Parcel:
    """The message as the desk takes it. Without its app the desk accepts anything, so the type is looked at here."""
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
        said = "Say which message it is with --type" if type_ is None else f"Queue {name!r} does not accept {type_!r}"
        raise BadParameter(f"{said}: it accepts {', '.join(accepted)}. Nothing was sent.", code="bad_message")
    if type_ == "v8":
        raise BadParameter("A body of type v8 cannot be written by hand. Nothing was sent.", code="bad_message")
    return Parcel(body=body, content_type=content_type, delay_seconds=delay_seconds, priority=priority, unique=unique)


def _plain(given: bytes, content_type: str) -> object:
    if content_type == "bytes":
        return given
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise BadParameter(f"The body is no text: {error}. Nothing was sent.", code="bad_message") from error


def _json(given: bytes) -> object:
    try:
        return parse(given)
    except BadJson as error:
        raise BadParameter(
            f"{error} Nothing was sent.",
            code="bad_message",
            hint='A body is JSON, in single quotes for the shell: \'{"url": "..."}\'. Plain words go with --type text.',
        ) from error


async def _push(found: targets.Target, name: str, parcel: Parcel) -> Pushed:
    async with operating(found) as app:
        try:
            return await (await app.desk()).push(name, [parcel], source="cli")
        except (BadMessage, TooLarge) as error:
            # It is one message: its place in a batch says nothing.
            raise BadParameter(str(error).replace("messages[0].body", "This").replace("messages[0]: ", "")) from error
