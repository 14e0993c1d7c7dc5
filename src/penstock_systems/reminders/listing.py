"""What is read of reminders: lists by state, deliveries, causes of failures, counts, and the story of one reminder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from penstock_systems.reminders.app import db, now_ms
from penstock_systems.reminders.reminders import find, shown

PAGE = 50
State = Literal["pending", "due", "retrying", "parked", "done", "cancelled", "unknown"]

PENDING = db.hot(
    """
    select id, next_fire_at as at
    from notifications
    where next_fire_at > :now
    and error_count = 0
    and (next_fire_at, id) > (:after_at, :after)
    order by next_fire_at, id
    limit :most
    """
)
DUE = db.hot(
    """
    select id, next_fire_at as at
    from notifications
    where next_fire_at <= :now
    and error_count = 0
    and (next_fire_at, id) > (:after_at, :after)
    order by next_fire_at, id
    limit :most
    """
)
RETRYING = db.hot(
    """
    select id, next_fire_at as at
    from notifications
    where error_count > 0
    and next_fire_at is not null
    and (next_fire_at, id) > (:after_at, :after)
    order by next_fire_at, id
    limit :most
    """
)
PARKED = db.hot(
    """
    select id, dead_lettered_at as at
    from notifications
    where dead_lettered_at is not null
    and next_fire_at is null
    and (dead_lettered_at, id) > (:after_at, :after)
    order by dead_lettered_at, id
    limit :most
    """
)
DONE = db.hot(
    """
    select id, done_at as at
    from notifications
    where done_at is not null
    and (done_at, id) > (:after_at, :after)
    order by done_at, id
    limit :most
    """
)
CANCELLED = """
select id, cancelled_at as at
from notifications
where cancelled_at is not null
and (cancelled_at, id) > (:after_at, :after)
order by cancelled_at, id
limit :most
"""
UNKNOWN = db.hot(
    """
    select notification_id as id, intent_at as at
    from notification_deliveries
    where status in ('sending', 'unknown', 'held')
    and (intent_at, notification_id) > (:after_at, :after)
    order by intent_at, notification_id
    limit :most
    """
)
OF_USER = """
select id, coalesce(next_fire_at, 0) as at
from notifications
where user_id = :user
and next_fire_at is not null
and (next_fire_at, id) > (:after_at, :after)
order by next_fire_at, id
limit :most
"""
LISTS = {
    "pending": PENDING,
    "due": DUE,
    "retrying": RETRYING,
    "parked": PARKED,
    "done": DONE,
    "cancelled": CANCELLED,
    "unknown": UNKNOWN,
}
DELIVERIES = """
select fire_seq, channel, status, attempt, idempotency_key, occurrence_at, intent_at, answered_at, sent_at, provider_id,
  error, digest_id
from notification_deliveries
where notification_id = :id
order by fire_seq desc, channel
limit :most
"""
CAUSES = """
select cause, count(*) as reminders, min(dead_at) as first_at, max(dead_at) as last_at
from notification_dead_letters
where resolved_at is null
group by cause
order by cause
limit 100
"""
# The counts of C-22, as anyone may ask them of the database: each reads one index.
COUNTS = {
    "pending": "select count(*) from notifications where next_fire_at > :now and error_count = 0",
    "due": "select count(*) from notifications where next_fire_at <= :now and error_count = 0",
    "retrying": "select count(*) from notifications where error_count > 0 and next_fire_at is not null",
    "parked": "select count(*) from notifications where dead_lettered_at is not null and next_fire_at is null",
    "unknown": "select count(*) from notification_deliveries where status in ('sending', 'unknown', 'held')",
}


class Reading(Protocol):
    """A database that answers queries."""

    async def value(self, sql: str, given: object = None, /, **named: object) -> Any: ...


async def list_state(state: State, *, cursor: str = "", most: int = PAGE) -> dict[str, Any]:
    """One page of the reminders in a state, oldest first, and the cursor of the next page."""
    after_at, after = read_cursor(cursor)
    given: dict[str, Any] = {"after_at": after_at, "after": after, "most": most}
    if state in ("pending", "due"):
        given["now"] = now_ms()
    return await _page(LISTS[state], given, most)


async def list_user(user: str, *, cursor: str = "", most: int = PAGE) -> dict[str, Any]:
    """One page of the reminders of a person that are still due."""
    after_at, after = read_cursor(cursor)
    return await _page(OF_USER, {"user": user, "after_at": after_at, "after": after, "most": most}, most)


async def _page(sql: str, given: dict[str, Any], most: int) -> dict[str, Any]:
    rows = await db.rows(sql, given)
    found = [shown(await find(id)) for id in dict.fromkeys(row.id for row in rows)]
    return {"reminders": found, "cursor": f"{rows[-1].at}.{rows[-1].id}" if len(rows) == most else None}


def read_cursor(cursor: str) -> tuple[int, str]:
    at, _, id = cursor.partition(".")
    return (int(at), id) if at.isdigit() else (-1, "")


async def list_deliveries(id: str, most: int = 100) -> list[dict[str, Any]]:
    """What became of a reminder's fires, newest first."""
    await find(id)
    return [row.asdict() for row in await db.rows(DELIVERIES, id=id, most=most)]


async def list_causes() -> list[dict[str, Any]]:
    return [row.asdict() for row in await db.rows(CAUSES)]


async def count(reading: Reading = db) -> dict[str, int]:
    """How many reminders are in each state, and how many deliveries have an unknown outcome."""
    now = now_ms()
    return {
        name: int(await reading.value(sql, now=now) if ":now" in sql else await reading.value(sql))
        for name, sql in COUNTS.items()
    }


async def why(id: str) -> str:
    """One sentence about where a reminder is and why."""
    row, now = await find(id), now_ms()
    state = shown(row)["state"]
    last = await db.rows(DELIVERIES, id=id, most=3)
    told = "; ".join(
        f"fire {each.fire_seq} by {each.channel}: {each.status}" + (f" ({each.error})" if each.error else "")
        for each in last
    )
    when = {
        "pending": f"is due {moment(row.next_fire_at)}",
        "due": f"has been due since {moment(row.next_fire_at)}",
        "retrying": f"is retried {moment(row.next_fire_at)} after {row.error_count} failures",
        "parked": f"was given up {moment(row.dead_lettered_at)}: requeue it with `penstock reminders requeue {row.id}`",
        "done": f"was done {moment(row.done_at)}",
        "cancelled": f"was cancelled {moment(row.cancelled_at)}",
    }[state]
    why = f" because of {row.last_error}" if row.last_error else ""
    moved = " It is snoozed." if row.snoozed_until and row.snoozed_until > now else ""
    return f"{row.title!r} {when}{why}.{moved}" + (f" Last: {told}." if told else " It was not sent yet.")


def moment(at: int | None) -> str:
    return "never" if at is None else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
