"""One dead letter as it is told to programs and drawn for people."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.cli.one_queue import facts
from penstock.cli.output import age_shown, fill, plain, printable
from penstock.model.redaction import redacted
from penstock.model.strict_json import BadJson, parse
from penstock.model.times import iso_z, to_micros, to_text
from penstock.queues.letters import DeadLetter

if TYPE_CHECKING:
    from rich.console import Console

PAYLOAD_DRAWN = 4_000  # characters; `--json` has all of it


def told(letter: DeadLetter) -> dict[str, Any]:
    """The columns that were agreed on for dead messages, and a few more."""
    return {
        "id": letter.id,
        "event_id": letter.event_id,
        "queue": letter.queue,
        "dlq": letter.dlq,
        "type": letter.type,
        "source": letter.source,
        "payload": payload(letter.body),
        "attempts": letter.attempts,
        "failed_at": _iso(letter.failed_at),
        "replayed_at": _iso(letter.replayed_at),
        "resolution": letter.resolution,
        "correlation_id": letter.correlation_id,
        "causation_id": letter.causation_id,
        "envelope": _envelope(letter),
        "error_class": letter.error_class,
        "error_message": None if letter.error_message is None else redacted(letter.error_message),
        "first_failed_at": _iso(letter.first_failed_at),
        "replay_count": letter.replay_count,
        "reason": letter.reason,
        "handler": letter.handler,
        "crashes": letter.crashes,
        "sent_at": _iso(letter.sent_at),
        "replay_of": letter.replay_of,
        "edited_at": _iso(letter.edited_at),
        "resolved_at": _iso(letter.resolved_at),
        "note": letter.note,
        "traceback": letter.traceback,
    }


def _envelope(letter: DeadLetter) -> dict[str, Any]:
    return {
        "event_id": letter.event_id,
        "type": letter.type,
        "source": letter.source,
        "timestamp": _iso(letter.sent_at),
        "correlation_id": letter.correlation_id,
        "causation_id": letter.causation_id,
        "hops": letter.hops,
        "depth": letter.depth,
        "replay_of": letter.replay_of,
    }


def payload(body: bytes) -> str:
    """The body as text. What is no text is written as SQL writes bytes."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return f"X'{body.hex().upper()}'"


def indented(body: bytes) -> str:
    """JSON on several lines; whatever else it is, as it is."""
    try:
        return json.dumps(parse(body), indent=2, ensure_ascii=False)
    except BadJson:
        return payload(body)


def error_shown(error_class: str | None, message: str | None, most: int | None = None) -> str:
    """An error in one line."""
    if error_class is None:
        return ""
    line = printable(" ".join(redacted(f"{error_class}: {message}").split()))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def ago(moment: datetime, now: datetime) -> str:
    return age_shown(max(0.0, (now - moment).total_seconds()))


def draw(console: Console, letter: DeadLetter, now: datetime) -> None:
    dealt = "" if letter.resolution is None else f"  {plain(letter.resolution)}"
    console.print(f"[bold]dead letter {letter.id}[/]  {plain(letter.type)} of queue {plain(letter.queue)}{dealt}\n")
    console.print(fill(facts(), _facts(letter, now)))
    if letter.traceback:
        console.print("\n[bold]traceback[/]")
        console.out("\n".join(map(printable, letter.traceback.splitlines())), highlight=False)
    text = printable(indented(letter.body))
    console.print("\n[bold]payload[/]" + (" (edited)" if letter.edited_at else ""))
    console.out(text[:PAYLOAD_DRAWN], highlight=False)
    if len(text) > PAYLOAD_DRAWN:
        console.print(f"... and {len(text) - PAYLOAD_DRAWN:,} more characters; `--json` has all of them.")
    if letter.resolution is None:
        console.print(f"\n`penstock dead edit {letter.id}` mends it, `penstock dead replay {letter.id}` sends it back.")


def _facts(letter: DeadLetter, now: datetime) -> list[tuple[str, object]]:
    tries = f"{letter.attempts:,}" + (f", and {letter.crashes:,} deaths of its worker" if letter.crashes else "")
    shown: list[tuple[str, object]] = [
        ("reason", letter.reason),
        ("error", error_shown(letter.error_class, letter.error_message) or "-"),
        ("attempts", tries),
        ("died", _when(letter.failed_at, now)),
    ]
    if letter.first_failed_at is not None and letter.first_failed_at != letter.failed_at:
        shown.append(("first failed", _when(letter.first_failed_at, now)))
    shown += [("sent", f"{_when(letter.sent_at, now)}, by {letter.source}"), ("message", letter.event_id)]
    if letter.handler:
        shown.append(("handler", letter.handler))
    if letter.correlation_id != letter.event_id:
        shown.append(("chain", letter.correlation_id))
    if letter.replay_of is not None:
        shown.append(("replay of", letter.replay_of))
    if letter.replay_count:
        shown.append(("replays", f"{letter.replay_count:,}"))
    if letter.resolution is not None and letter.resolved_at is not None:
        note = f": {letter.note}" if letter.note else ""
        shown.append((letter.resolution, f"{_when(letter.resolved_at, now)}{note}"))
    return shown


def _when(moment: datetime, now: datetime) -> str:
    return f"{to_text(moment)} UTC, {ago(moment, now)} ago"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else iso_z(to_micros(moment))
