"""Sends inside a commit: rows in bulk, one by one where an id may be there already, and queues that are full refused."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from penstock.contracts.effects import SealedUnit
from penstock.contracts.ledger import Committed, RefusedUnits, Units
from penstock.model.errors import QueueFull, TooLarge
from penstock.model.message import KEYED, NewMessage
from penstock.model.queue import QueueSettings
from penstock.storage.session import Session
from penstock.storage.tally import NOTHING, SENT, Tally

FULL_SECONDS = 1.0  # when to ask a full queue again
KEYED_IN_BULK = 10  # ids that can come back are looked up one by one if they are fewer: one may well be there already

_body_of = attrgetter("body")


class Conflicts(Exception):
    """Some sends were there already: the group is run again counting each one."""


def send(
    session: Session,
    units: Units,
    rows: Sequence[NewMessage],
    committed: Committed,
    tally: Tally,
    *,
    careful: bool,
    now: int,
) -> None:
    if session.guarded:
        _guard(session, units, tally, now)
    keyed = [(row.id, row.queue, row.type, row.source, now) for row in rows if row.flags & KEYED]
    if careful or 0 < len(keyed) < KEYED_IN_BULK:
        for unit in units:
            _send_one_by_one(session, unit, committed, tally, now)
        return
    if keyed and session.insert("sends.note_seen", keyed) != len(keyed):
        session.rollback()
        raise Conflicts
    if session.insert_messages(rows) != len(rows):
        session.rollback()
        raise Conflicts
    tally.bulk(rows, SENT)


def _send_one_by_one(session: Session, unit: SealedUnit, committed: Committed, tally: Tally, now: int) -> None:
    for row in unit.sends():
        if row.flags & KEYED:
            seen = {"id": row.id, "queue": row.queue, "type": row.type, "source": row.source, "now": now}
            if not session.change("sends.note_seen", seen):
                committed.answer(unit).duplicates.add(row.id)
                continue
        if session.insert_messages([row]):
            tally.bulk([row], SENT)


# -- queues with a bound -----------------------------------------------------------------------------------


def _guard(session: Session, units: Units, tally: Tally, now: int) -> None:
    """Names the units whose sends would fill a queue beyond what it holds, or faster than it may be fed."""
    for queue in sorted({row.queue for unit in units for row in unit.sends()} & session.guarded.keys()):
        session.lock_queue(queue)
    loads: dict[str, _Load] = {}
    refused: list[tuple[SealedUnit, Exception]] = []
    for unit in units:
        wanted: dict[str, list[NewMessage]] = {}
        for row in unit.sends():
            if row.queue in session.guarded:
                wanted.setdefault(row.queue, []).append(row)
        for queue, rows in wanted.items():
            load = loads.get(queue)
            if load is None:
                load = loads[queue] = _Load(session, session.guarded[queue], tally, now)
            full = load.refusal(rows)
            if full is not None:
                refused.append((unit, full))
                break
        else:
            for queue, rows in wanted.items():
                loads[queue].add(rows)
    if refused:
        session.rollback()
        raise RefusedUnits(refused=refused)
    for load in loads.values():
        load.save(session)


class _Load:
    """What a queue with a bound holds, this commit included."""

    def __init__(self, session: Session, settings: QueueSettings, tally: Tally, now: int) -> None:
        ((messages, size, second, second_sent),) = session.rows("sends.load", {"queue": settings.name})
        sent, acked, dead, purged, expired, more, _ = tally.by_queue.get(settings.name, NOTHING)
        self._settings = settings
        self._now = now
        self._messages = messages + sent - acked - dead - purged - expired
        self._bytes = size + more
        self._second = now // 1_000_000
        self._second_sent = second_sent if second == self._second else 0

    def refusal(self, rows: list[NewMessage]) -> QueueFull | TooLarge | None:
        settings = self._settings
        size = sum(map(len, map(_body_of, rows)))
        for unit, held, added, most in (
            ("messages", self._messages, len(rows), settings.messages_max),
            ("bytes", self._bytes, size, settings.bytes_max),
            ("messages in this second", self._second_sent, len(rows), settings.per_second_max),
        ):
            if most is not None and added > most:
                return TooLarge(
                    f"One unit of work sends {added:,} {unit} to queue {settings.name!r}, which takes {most:,} at most: "
                    "waiting would not help. Nothing was sent. Send fewer at a time, or raise the limit.",
                    queue=settings.name,
                )
            if most is not None and held + added > most:
                return QueueFull(
                    f"Queue {settings.name!r} has {held:,} {unit}, and {added:,} more would pass its limit of {most:,}. "
                    "Nothing was sent. Wait for its consumer, or raise the limit.",
                    queue=settings.name,
                    retry_after=FULL_SECONDS,
                )
        return None

    def add(self, rows: list[NewMessage]) -> None:
        self._messages += len(rows)
        self._bytes += sum(map(len, map(_body_of, rows)))
        self._second_sent += len(rows)

    def save(self, session: Session) -> None:
        if self._settings.per_second_max is not None:
            counted = {"queue": self._settings.name, "second": self._second, "sent": self._second_sent}
            session.change("sends.note_second", counted)
