"""Traces a chain of messages: what became of each, children under their cause, and every step of runs of workflows.

Settled deliveries are read from the history. Waiting messages and dead letters are read from their rows, of which there may
be millions, with no index by chain. But ids derived from one another begin with the same six bytes of time, so the rows of
a chain are neighbours in the index on ids. Only a message sent midway, in a unit without a key, has an id of its own time:
for those the newest rows are scanned. Each scan ends after `SCANNED` rows.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.contracts.history import Entry
from penstock.data.reports import Asking
from penstock.data.usage import Reading
from penstock.model.errors import BadParameter, StoreError
from penstock.model.ids import correlation_of, from_text
from penstock.model.row import Row
from penstock.model.sql_files import load
from penstock.model.stack import error_line
from penstock.views.chain import Trace, Traced, in_order, with_runs

SQL = load("penstock.views", "trace.sql")
CHAIN_MAX = 5_000  # of each kind: what settled, what waits, what is dead
SCANNED = 20_000  # rows that one look goes through: some 20 ms
ERROR_TEXT_MAX = 300
TIME_BYTES = 6  # of an id: the same in all ids that follow from one another


def parsed(text: str, *, names_a_chain: bool = False) -> bytes:
    """Return the id in a text, or the id of the chain whose `correlation=` it is."""
    try:
        return from_text(text.strip())
    except ValueError:
        if names_a_chain and text.strip():
            return correlation_of(text)
        raise BadParameter(
            f"{text!r} is not an id. An id has 32 hexadecimal digits, like 019a8c3e-7f00-7abc-8def-0123456789ab; logs, "
            "`penstock dead show` and `queue.send` print ids.",
            value=text,
        ) from None


async def trace(reading: Reading, history: Asking, id: bytes, *, now: int) -> Trace | None:
    """Return the chain that `id` names, or that the message of this id belongs to. None if nothing is known of it."""
    found = await _chain(reading, history, id, now)
    if not found.events:
        chain = await _chain_of(reading, history, id)
        if chain is None:
            return None
        found = await _chain(reading, history, chain, now)
    return found if found.events else None


async def trace_of_run(reading: Reading, history: Asking, run: Row, *, now: int) -> Trace:
    """Return the chain of a run, also where the history knows nothing of it."""
    return await _chain(reading, history, bytes(run.correlation_id), now, bytes(run.key))


async def _chain_of(reading: Reading, history: Asking, id: bytes) -> bytes | None:
    for row in await reading.rows(SQL["chain_of"], id=id):
        return bytes(row.correlation_id)
    try:
        entries = await history.ask(lambda file: file.of_message(id))
    except StoreError:
        return None  # reading the chain itself has reported it
    return entries[0].correlation_id if entries else None


async def _chain(reading: Reading, history: Asking, chain: bytes, now: int, run: bytes | None = None) -> Trace:
    # Rows first: what settles meanwhile is then seen twice rather than not at all.
    looks = [await _near(reading, chain, chain, chain)]
    entries: list[Entry] = []
    notes: list[str] = []
    try:
        entries = await history.ask(lambda file: file.chain(chain, CHAIN_MAX))
    except StoreError as error:
        notes.append(f"Only waiting messages and dead letters are shown. {error}")
    ids = sorted(entry.id for entry in entries)
    if ids and ids[0][:TIME_BYTES] != chain[:TIME_BYTES]:
        # Its caller has named the chain, so its id holds no time; the ids of its messages do.
        looks.append(await _near(reading, chain, ids[0], ids[-1]))
    waiting = list({row.seq: row for look in looks for row in look.waiting}.values())
    dead = list({row.seq: row for look in looks for row in look.dead}.values())
    notes += _cut(looks[-1].unseen, waiting, dead, entries)
    events, missing = await with_runs(reading, _events(entries, waiting, dead, now), run, now=now)
    return Trace(chain, in_order(events), notes + missing)


class Look(NamedTuple):
    waiting: list[Row]
    dead: list[Row]
    unseen: Row


async def _near(reading: Reading, chain: bytes, first: bytes, last: bytes) -> Look:
    """Read the rows of a chain: among those sent from the time of one id to that of another, and among the newest."""
    near = {"low": first[:TIME_BYTES], "high": last[:TIME_BYTES] + b"\xff" * len(last), "scanned": SCANNED}
    waiting = await reading.rows(SQL["waiting"], **near, chain=chain, most=CHAIN_MAX)
    dead = await reading.rows(SQL["dead"], **near, chain=chain, most=CHAIN_MAX)
    (unseen,) = await reading.rows(SQL["unseen"], **near)
    return Look(waiting, dead, unseen)


def _cut(unseen: Row, waiting: list[Row], dead: list[Row], entries: list[Entry]) -> list[str]:
    notes = []
    for name, near, anywhere in (
        ("waiting messages", unseen.waiting_near, unseen.waiting),
        ("dead letters", unseen.dead_near, unseen.dead),
    ):
        if near:
            notes.append(
                f"More than {SCANNED:,} {name} were sent at the time of this chain; some of its messages may be missing."
            )
        elif anywhere:
            notes.append(
                f"There are more than {SCANNED:,} {name}. Of those that a handler sent midway, in a unit without a key, and "
                "of those at the start of a chain that its caller has named, only the newest were read."
            )
    for name, shown in (("settled deliveries", entries), ("waiting messages", waiting), ("dead letters", dead)):
        if len(shown) >= CHAIN_MAX:
            notes.append(f"The chain has more than {CHAIN_MAX:,} {name}; the first are shown.")
    return notes


# -- one kind of event out of three ---------------------------------------------------------------------


def _events(entries: list[Entry], waiting: list[Row], dead: list[Row], now: int) -> list[Traced]:
    services = {entry.queue: entry.service for entry in entries}
    ended: dict[bytes, int] = {}
    for entry in entries:
        ended[entry.id] = max(entry.ended_at, ended.get(entry.id, 0))
    events = _with_dead([_settled(entry) for entry in entries], dead, services)
    return [*events, *(_waits(row, services, ended, now) for row in waiting)]


def _settled(entry: Entry) -> Traced:
    return Traced(
        entry.started_at,
        entry.service,
        entry.kind,
        entry.name,
        entry.id,
        entry.causation_id,
        entry.attempt,
        entry.status,
        entry.ended_at - entry.started_at,
        entry.queue,
        entry.source,
        entry.error,
    )


def _with_dead(events: list[Traced], dead: list[Row], services: dict[str, str]) -> list[Traced]:
    """Complete a death in the history from its dead letter; add those that the history does not have."""
    places: dict[tuple[bytes, str], list[int]] = defaultdict(list)
    for place, event in enumerate(events):
        if event.status == "dead":
            places[event.id, event.queue].append(place)
    for row in dead:
        letter = {"reason": row.reason, "resolution": row.resolution, "replay_of": _bytes(row.replay_of)}
        known = places[bytes(row.id), row.queue]
        if known:
            place = known.pop(0)
            events[place] = replace(events[place], **letter)
        else:
            events.append(replace(_of_row(row, row.failed_at, max(row.attempts, 1), "dead", services), **letter))
    return events


def _waits(row: Row, services: dict[str, str], ended: dict[bytes, int], now: int) -> Traced:
    status = "leased" if row.worker is not None else "ready" if row.due <= now else "delayed"
    at = max(row.sent_at, row.last_failed_at or 0, ended.get(bytes(row.id), 0))
    waits = _of_row(row, at, row.attempts + 1, status, services)
    return replace(waits, due=row.due, replay_of=_bytes(row.replay_of))


def _of_row(row: Row, at: int, attempt: int, status: str, services: dict[str, str]) -> Traced:
    message = ("message", row.type, bytes(row.id), _bytes(row.causation_id))
    return Traced(at, services.get(row.queue), *message, attempt, status, None, row.queue, row.source, _error(row))


def _error(row: Row) -> str | None:
    if row.error_class is None:
        return None
    return error_line(row.error_class, row.error_message, row.traceback)[:ERROR_TEXT_MAX]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
