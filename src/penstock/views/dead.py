"""Dead letters: many in a list, counted by their cause, or everything about one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from penstock.contracts.store import Rows
from penstock.model.redaction import redacted
from penstock.model.strict_json import BadJson, parse
from penstock.model.times import iso_z, to_micros
from penstock.model.usage import Measure
from penstock.queues.letters import DeadLetter, DeadLetterFilter, DeadLetters, Group
from penstock.runtime.engine import Engine
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, short

ERROR_SHOWN = 200  # characters
TIMES = ("failed_at", "replayed_at", "first_failed_at", "sent_at", "edited_at", "resolved_at")
LETTER = (
    "id event_id queue dlq type source payload attempts failed_at replayed_at resolution correlation_id causation_id"
)
LETTER += " envelope error_class error_message first_failed_at replay_count reason handler crashes sent_at replay_of"
LETTER += " edited_at resolved_at note traceback"
ENVELOPE = "event_id type source timestamp correlation_id causation_id hops depth replay_of"


def letters(observer: Observer) -> DeadLetters:
    """Return what lists, groups and gets letters as `app.dead` does, on the observer's connection."""

    async def opened() -> Engine:
        return cast(Engine, _Reading(observer))

    return DeadLetters(opened, {})


class _Reading:
    """The part of an engine that reading needs."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    async def read(self, task: str, sql: str, bound: dict[str, Any], *, rows_max: int) -> Rows:
        found = self._observer.read(sql, **bound)
        columns = found[0].columns if found else ()
        return Rows(columns, [tuple(row) for row in found], Measure(sql, 1, 0, 0, 0, 0, 0.0))


async def rows(observer: Observer, which: DeadLetterFilter, *, limit: int = 100, resolved: bool = False) -> list[Row]:
    """Return letters, oldest first; those that were resolved only if asked for."""
    return [row_of(letter) for letter in await letters(observer).list(which, limit=limit, resolved=resolved)]


def row_of(letter: DeadLetter) -> Row:
    facts = {**msgspec.structs.asdict(letter), "dlq": letter.dlq, "payload": payload(letter.body)}
    facts |= {name: _iso(facts[name]) for name in TIMES}
    facts["error_message"] = None if letter.error_message is None else redacted(letter.error_message)
    facts["envelope"] = {name: facts.get(name, facts["sent_at"]) for name in ENVELOPE.split()}
    return {name: facts[name] for name in LETTER.split()}


def payload(body: bytes) -> str:
    """Return the body as text. What is not text is written as SQL writes bytes."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return f"X'{body.hex().upper()}'"


def indented(body: bytes) -> str:
    """Return JSON on several lines; anything else as it is."""
    try:
        return json.dumps(parse(body), indent=2, ensure_ascii=False)
    except BadJson:
        return payload(body)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else iso_z(to_micros(moment))


async def groups(observer: Observer, which: DeadLetterFilter) -> list[Row]:
    """Return how many died of each cause, the most frequent first."""
    return [row_of_group(group) for group in await letters(observer).groups(which)]


def row_of_group(group: Group) -> Row:
    return {**msgspec.structs.asdict(group), "first_at": _iso(group.first_at), "last_at": _iso(group.last_at)}


# -- columns ------------------------------------------------------------------------------------------------


def _error(row: Row, most: int = ERROR_SHOWN) -> str | None:
    if row["error_class"] is None:
        return None
    return short(redacted(f"{row['error_class']}: {row['error_message']}"), most)


def group_error(row: Row) -> str | None:
    """Return the one message of a cause, or its pattern with the most frequent messages."""
    examples: Sequence[str] = row["examples"]
    message = f"{row['message']}: {', '.join(examples)}" if row["message"] else None
    if len(examples) == 1:
        message = examples[0].rpartition(" (")[0]
    return _error({"error_class": row["error_class"], "error_message": message})


def _attempts(row: Row) -> str:
    return f"{row['attempts']:,}" + (f", and {row['crashes']:,} deaths of its worker" if row["crashes"] else "")


def _unless_same(name: str, other: str) -> Any:
    return lambda row: None if row[name] == row[other] else row[name]


REASON = Column("reason", "reason")
ERROR = Column("error_message", "error", "prose", rank=1, of=_error)
DEAD = View(
    "dead",
    (
        Column("id", "id", "count", of=lambda row: row["id"]),
        Column("failed_at", "died", "time", rank=2),
        Column("queue", "queue"),
        Column("type", "type", rank=3),
        REASON,
        Column("resolution", "", "state", rank=1),
        ERROR,
        Column("attempts", "attempts", "count", rank=4),
    ),
    rows,
    "There are no dead letters.",
)
GROUPS = View(
    "groups",
    (
        Column("letters", "letters", "count"),
        Column("queue", "queue"),
        REASON,
        Column("error_class", "error", "prose", rank=1, of=group_error),
        Column("last_at", "last", "time", rank=2),
        Column("type", "type", rank=3),
        Column("first_at", "first", "time", rank=4),
    ),
    groups,
    "There are no dead letters.",
)
ONE = (
    REASON,
    Column("error_message", "error", of=lambda row: _error(row, 10_000)),
    Column("attempts", "attempts", of=_attempts),
    Column("failed_at", "died", "exact_time"),
    Column("first_failed_at", "first failed", "exact_time", of=_unless_same("first_failed_at", "failed_at")),
    Column("sent_at", "sent", "exact_time"),
    Column("source", "sent by"),
    Column("event_id", "message"),
    Column("handler", "handler"),
    Column("correlation_id", "chain", of=_unless_same("correlation_id", "event_id")),
    Column("replay_of", "replay of"),
    Column("replay_count", "replays", "count", of=lambda row: row["replay_count"] or None),
    Column("resolved_at", "resolved", "exact_time"),
    Column("note", "note"),
)
