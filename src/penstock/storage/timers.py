"""Timers that are due become messages, in the commit that moves or removes them, so that each fires once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.contracts.timers import (
    ALARM,
    CRON,
    TIMERS,
    ClearTimer,
    Declared,
    SetTimer,
    TickNote,
    TimerChange,
    TimerRow,
)
from penstock.model.firing import FiringRule, fired_id
from penstock.model.message import checksum
from penstock.model.schedule import WAITING_MAX, Fire, decide, meet
from penstock.model.usage import Measure
from penstock.storage.session import Session, StoredPart, in_transaction
from penstock.storage.tally import Tally

FIRED_AT_ONCE = 500  # timers of one commit; the rest follows at once


def fire_due(session: Session, tally: Tally, *, number: int, now: int) -> None:
    due = session.rows("timers.due_timers", {"now": now, "limit": FIRED_AT_ONCE})
    for seq, kind, name, due_at, scheduled, queue, type_, rule in due:
        tally.of(queue)  # a commit that only moves a timer, or notes a skipped run, is not an empty one
        if rule is None:
            # Its number tells it from an alarm that was set for the same moment while this one is being retried.
            id = fired_id(kind, name, number, at=now)
            _send(session, tally, id, queue, type_, {"name": name, "due": due_at}, now)
            session.change("timers.remove_timer", {"seq": seq})
            continue
        parsed = FiringRule.parse(rule)
        decided = decide(parsed.schedule(), name, last=scheduled, now=now)
        # Asked once: runs that are made up for together follow one another and are no reason to skip each other.
        busy = _busy(session, parsed, queue)
        for turn, each in enumerate(decided.fires):
            waiting = busy + turn if parsed.overlap == "queue" else busy
            _tick(session, tally, name, parsed, each, decided.missed, queue, type_, now, busy=waiting)
        # A time that lies ahead of every fire came from a clock that was wrong: it must not be waited for.
        known = min(scheduled, decided.next_due - 1)
        last = max((each.due for each in decided.fires), default=now if decided.missed else known)
        moved = {"seq": seq, "due": decided.next_start, "scheduled": last, "fired": len(decided.fires)}
        session.change("timers.move_timer", moved)


def _busy(session: Session, rule: FiringRule, queue: str) -> int:
    """How many runs of a schedule have not ended, if that matters to it."""
    if rule.overlap == "allow":
        return 0
    return int(session.value("timers.runs", {"queue": queue, "most": WAITING_MAX}))


def _tick(
    session: Session,
    tally: Tally,
    name: str,
    rule: FiringRule,
    each: Fire,
    missed: int,
    queue: str,
    type_: str,
    now: int,
    *,
    busy: int = 0,
) -> None:
    """One run of a schedule, unless the one before it still runs and may not be overlapped."""
    skipped = meet(rule.overlap, running=0, waiting=busy) == "skip"
    noted = {"schedule": name, "due": each.due, "now": now, "missed": missed}
    is_new = session.change("timers.note_tick", noted | {"status": "skipped" if skipped else "due"})
    if is_new and not skipped:
        body = {"name": name, "due": each.due, "expression": rule.expression, "missed": missed}
        id = fired_id(CRON, name, each.due, at=each.due)
        _send(session, tally, id, queue, type_, body, max(now, each.start))


def _send(session: Session, tally: Tally, id: bytes, queue: str, type_: str, body: dict[str, Any], now: int) -> None:
    encoded = msgspec.json.encode(body)
    message = {"id": id, "queue": queue, "type": type_, "due": now, "checksum": checksum(id, encoded), "body": encoded}
    if session.change("timers.send_fired", message):
        tally.entered(queue, len(encoded), now)


def next_timer(session: Session) -> int | None:
    due: int | None = session.value("timers.next_timer")
    return due


def change_timers(
    session: Session, changes: Sequence[tuple[str, TimerChange]], tally: Tally, measures: Sequence[tuple[str, Measure]]
) -> None:
    """Set, clear and note timers in order, each for the task of its unit."""
    execute = session.change
    for task, wanted in changes:
        match wanted:
            case SetTimer():
                execute("timers.set_timer", wanted._asdict())
                tally.waits(TIMERS, wanted.due)
                if wanted.kind == ALARM:
                    execute("timers.found_alarm", _object_of(wanted.name))
            case ClearTimer():
                execute("timers.clear_timer", wanted._asdict())
            case TickNote():
                written = sum(measure.rows_written for measured, measure in measures if measured == task)
                execute("timers.end_tick", wanted._asdict() | {"rows_written": written})


def _object_of(alarm: str) -> dict[str, str]:
    """Whose alarm it is: the name of one is its object's class and name."""
    class_name, _, name = alarm.partition("/")
    return {"class_name": class_name, "name": name}


class StoredTimers(StoredPart):
    @in_transaction
    def declare(self, schedules: Sequence[Declared]) -> None:
        for schedule in schedules:
            self._session.change("timers.declare", schedule._asdict())

    @in_transaction
    def keep_only(self, schedules: Sequence[str]) -> None:
        for name in [row.name for row in self.listed(CRON) if row.name not in schedules]:
            self._session.change("timers.clear_timer", {"kind": CRON, "name": name})

    @in_transaction
    def pause(self, name: str, *, paused: bool, since: int | None = None, due: int | None = None) -> bool:
        bound = {"kind": CRON, "name": name, "paused": int(paused), "since": since, "due": due}
        return self._session.change("timers.pause_timer", bound) == 1

    @in_transaction
    def trigger(self, name: str, *, now: int) -> bool:
        session = self._session
        rows: list[Any] = session.rows("timers.fire_by_hand", {"name": name})
        if not rows:
            return False
        ((queue, type_, rule),) = rows
        tally = Tally()
        by_hand = msgspec.structs.replace(FiringRule.parse(rule), overlap="allow")
        _tick(session, tally, name, by_hand, Fire(now, now), 0, queue, type_, now)
        tally.save(session)
        return True

    def listed(self, kind: str) -> list[TimerRow]:
        return [TimerRow(*row) for row in self._session.rows("timers.timers", {"kind": kind})]
