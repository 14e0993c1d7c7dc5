"""What a person does with a reminder that exists: snooze, acknowledge, fire, requeue, and settle an unknown outcome."""

from __future__ import annotations

from typing import Any, Literal

import penstock as ps
from penstock_systems.reminders.app import db, now_ms
from penstock_systems.reminders.reminders import find
from penstock_systems.reminders.schedule import next_occurrence, span_ms

SNOOZE_MS_MAX = 366 * 86_400_000
REQUEUE_MAX = 500  # in one call by cause

# The number of the fire is part of each condition: what was decided for one fire is not applied to the next.
MOVE = """
update notifications
set next_fire_at = :at, snoozed_until = :snoozed_until, extra = :extra, done_at = null, dead_lettered_at = null,
  error_count = :error_count, fire_seq = fire_seq + :advances, claimed_until = null, claim_token = null, updated_at = :now
where id = :id
and fire_seq = :fire_seq
"""
ACKNOWLEDGE = """
update notifications
set acked_at = :now, nag_left = 0, extra = null, next_fire_at = :at, occurrence_at = coalesce(:occurrence_at, occurrence_at),
  count_done = coalesce(:count_done, count_done), done_at = :done_at,
  claimed_until = null, claim_token = null, updated_at = :now
where id = :id
and fire_seq = :fire_seq
"""
NOTE_ACK = "update notifications set acked_at = :now, updated_at = :now where id = :id"
RETRY_HELD = """
update notification_deliveries
set status = 'failed', error = 'sent again by an operator', attempt = 0
where notification_id = :id
and fire_seq = :fire_seq
and status in ('held', 'given_up', 'unknown')
"""
RESOLVE_DEAD = """
update notification_dead_letters
set resolved_at = :now
where notification_id = :id
and resolved_at is null
"""
DEAD_OF_CAUSE = """
select d.notification_id as id
from notification_dead_letters d
join notifications n on n.id = d.notification_id
where d.cause = :cause
and d.resolved_at is null
and n.next_fire_at is null
and n.dead_lettered_at is not null
order by d.dead_at
limit :most
"""
HELD = """
select channel, fire_seq, status
from notification_deliveries
where notification_id = :id
and fire_seq = :fire_seq
and status in ('held', 'unknown')
"""
SETTLE_HELD = """
update notification_deliveries
set status = :status, answered_at = :now, error = :error,
  sent_at = case when :status = 'sent' then cast(:now as bigint) else null end
where notification_id = :id
and fire_seq = :fire_seq
and channel = :channel
and status in ('held', 'unknown')
"""


async def snooze(id: str, for_: str) -> dict[str, Any]:
    """Move the fire that is due, or send the last one again, after this time. The schedule stays."""
    row, now = await find(id), now_ms()
    wait = span_ms(for_, "for")
    if not 0 < wait <= SNOOZE_MS_MAX:
        raise ps.errors.BadParameter(f"for cannot be {for_!r}. Write up to a year, such as 1h.", field="for")
    if row.cancelled_at is not None:
        raise ps.HttpError(409, "This reminder is cancelled.", name="cancelled")
    at = now + wait
    # A fire that is not finished moves; one that was delivered is repeated between two occurrences.
    repeats = (
        row.last_fired_at is not None and not row.error_count and (row.next_fire_at is None or row.next_fire_at > now)
    )
    if repeats and row.next_fire_at is not None and not row.extra and row.next_fire_at <= at:
        return {
            "id": id,
            "next_fire_at": row.next_fire_at,
            "note": "The next occurrence comes before the end of the snooze.",
        }
    extra = ("snooze" if row.recurrence_rule is not None or row.extra else None) if repeats else row.extra
    given = {"at": at, "snoozed_until": at, "extra": extra, "error_count": 0, "now": now, "id": id}
    db.write(MOVE, given | {"advances": int(repeats and row.next_fire_at is None), "fire_seq": row.fire_seq}, expect=1)
    return {"id": id, "next_fire_at": at}


async def acknowledge(id: str) -> dict[str, Any]:
    """Stop nagging: the reminder waits for its next occurrence, or is done."""
    row, now = await find(id), now_ms()
    if row.extra is None or row.next_fire_at is None:
        db.write(NOTE_ACK, id=id, now=now)
        return {"id": id, "acked_at": now, "next_fire_at": row.next_fire_at}
    following: tuple[int | None, int | None] = (row.occurrence_at, None)
    if row.extra == "nag" or row.occurrence_at <= now:
        found = next_occurrence(row, now)
        following = (None, None) if found is None else (found.at // 1000, found.number)
    at, number = following
    given = {"at": at, "occurrence_at": at, "count_done": number, "done_at": now if at is None else None}
    db.write(ACKNOWLEDGE, given | {"id": id, "now": now, "fire_seq": row.fire_seq}, expect=1)
    return {"id": id, "acked_at": now, "next_fire_at": at}


async def fire(id: str) -> dict[str, Any]:
    """Make a reminder due now. A recurring one keeps its schedule."""
    row, now = await find(id), now_ms()
    if row.cancelled_at is not None:
        raise ps.HttpError(409, "This reminder is cancelled.", name="cancelled")
    if row.next_fire_at is None and row.dead_lettered_at is not None:
        _requeue(id, row.fire_seq, now, now)
        return {"id": id, "next_fire_at": now}
    waits = (
        row.recurrence_rule is not None
        and row.next_fire_at is not None
        and row.next_fire_at > now
        and not row.error_count
    )
    extra = "snooze" if waits else row.extra
    given = {"at": now, "snoozed_until": now if waits else None, "extra": extra, "error_count": 0, "now": now, "id": id}
    db.write(MOVE, given | {"advances": int(row.next_fire_at is None), "fire_seq": row.fire_seq}, expect=1)
    return {"id": id, "next_fire_at": now}


async def requeue(id: str, at: int | None = None) -> dict[str, Any]:
    """Send a parked reminder again, or one with a channel on hold. Channels that have succeeded are left alone."""
    row, now = await find(id), now_ms()
    held = await db.exists(HELD + "limit 1", id=id, fire_seq=row.fire_seq)
    if row.next_fire_at is not None or (row.dead_lettered_at is None and not held):
        raise ps.HttpError(409, "This reminder is not parked, and nothing of it is on hold.", name="not_parked")
    _requeue(id, row.fire_seq, now, at or now)
    return {"id": id, "next_fire_at": at or now}


async def requeue_cause(cause: str) -> dict[str, Any]:
    """Send all parked reminders of one cause again, at most 500."""
    now = now_ms()
    found = await db.column(DEAD_OF_CAUSE, cause=cause, most=REQUEUE_MAX + 1)
    for id in found[:REQUEUE_MAX]:
        row = await find(id)
        _requeue(id, row.fire_seq, now, now)
    return {"cause": cause, "requeued": len(found[:REQUEUE_MAX]), "more": len(found) > REQUEUE_MAX}


def _requeue(id: str, fire_seq: int, now: int, at: int) -> None:
    given = {"at": at, "snoozed_until": None, "extra": None, "error_count": 0, "now": now, "id": id, "advances": 0}
    given["fire_seq"] = fire_seq
    db.write(MOVE, given, expect=1)
    db.write(RETRY_HELD, id=id, fire_seq=fire_seq)
    db.write(RESOLVE_DEAD, id=id, now=now)


async def resolve(id: str, fire_seq: int, channel: str, as_: Literal["sent", "given_up"]) -> dict[str, Any]:
    """Record what a person knows about a notice of unknown outcome."""
    note = "an operator says that it arrived" if as_ == "sent" else "an operator says that it did not arrive"
    given = {"id": id, "fire_seq": fire_seq, "channel": channel, "status": as_, "error": note, "now": now_ms()}
    db.write(SETTLE_HELD, given, expect=1)
    return {"id": id, "fire": fire_seq, "channel": channel, "status": as_}
