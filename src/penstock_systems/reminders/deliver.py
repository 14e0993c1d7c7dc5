"""The cron task that sends what is due: it claims rows oldest first, sends them side by side, and stops in time."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cache
from typing import Any

from penstock_systems.reminders.app import app, db, now_ms, settings, web
from penstock_systems.reminders.fires import run_fire
from penstock_systems.reminders.keys import master_key
from penstock_systems.reminders.settings import CLAIM_ROWS
from penstock_systems.reminders.spacing import Spacing

BUDGET_SECONDS = 50.0  # of each minute; rows that are not started by then stay due
LEASE_MS = 60_000  # twice the worst time of a row: two commits and a channel's ten seconds
CONDITION = "reminders.given-up"

IS_DUE = db.hot("select 1 from notifications where next_fire_at <= :now limit 1")
CLAIM = """
update notifications
set claimed_until = :until, claim_token = :token
where id in (
  select id
  from notifications
  where next_fire_at <= :now
  and (claimed_until is null or claimed_until <= :now)
  order by next_fire_at, id
  limit :most
)
and (claimed_until is null or claimed_until <= :now)
"""
CLAIMED = db.hot("select id, channels, next_fire_at from notifications where claim_token = :token")
RELEASE = "update notifications set claimed_until = null, claim_token = null where id = :id and claim_token = :token"
PRUNE = {"done_at": "notifications", "cancelled_at": "notifications", "intent_at": "notification_deliveries"}

mails = Spacing(settings.mails_a_second)
_log = logging.getLogger("penstock.reminders")


async def is_something_due() -> bool:
    warn_of_unreachable_delays()
    return await db.exists(IS_DUE, now=now_ms())


@app.cron("* * * * *", reason="a reminder is sent in the minute in which it is due", when=is_something_due)
async def deliver() -> None:
    """Send everything that is due, until nothing is left or the budget of this minute is used up."""
    ends = web.clock.monotonic() + BUDGET_SECONDS
    master = await master_key()
    slots = asyncio.Semaphore(settings.parallel)
    given_up: list[str] = []

    async def fire(id: str, token: str) -> None:
        try:
            if error := await run_fire(id, token, master):
                given_up.append(error)
        finally:
            slots.release()

    async with asyncio.TaskGroup() as group:
        while web.clock.monotonic() < ends and (claimed := await claim()):
            token, rows = claimed
            for place, row in enumerate(rows):
                await slots.acquire()
                late = mails.wait_seconds if '"email"' in row.channels else 0.0
                if web.clock.monotonic() + late >= ends:
                    slots.release()
                    await release([each.id for each in rows[place:]], token)
                    break
                if '"email"' in row.channels:
                    await mails.wait()  # before the intent: what is killed while it waits was not sent
                group.create_task(fire(row.id, token))
    if given_up:
        text = "\n".join(sorted(set(given_up))[:10])
        await app.alert(
            CONDITION, "Reminders were given up", f"{text}\nSee them with: penstock reminders list --state parked"
        )


async def claim() -> tuple[str, list[Any]] | None:
    """Lease up to 100 due rows, oldest first. No other tick gets them before the lease ends."""
    now, token = now_ms(), os.urandom(8).hex()

    def take(transaction: Any) -> list[Any]:
        taken = transaction.write(CLAIM, now=now, until=now + LEASE_MS, token=token, most=CLAIM_ROWS)
        return (
            sorted(transaction.rows(CLAIMED, token=token), key=lambda row: (row.next_fire_at, row.id)) if taken else []
        )

    async with app.unit():
        taken = db.atomically(take)
    return (token, taken.result) if taken.result else None


async def release(ids: list[str], token: str) -> None:
    """Give rows back that were not started."""
    async with app.unit():
        db.write_many(RELEASE, [{"id": id, "token": token} for id in ids])


@app.cron("17 3 * * *", reason="old rows are deleted once a day")
async def prune() -> None:
    """Delete what ended long ago: reminders, and what became of their fires."""
    for column, table in PRUNE.items():
        await db.prune(table, column=column, older_than=f"{settings.keep_days}d", unit="ms")


@cache
def warn_of_unreachable_delays() -> None:
    """Log, once in a process, which delays no retry ever waits for."""
    if settings.unreachable:
        _log.warning(
            "reminders: with retries = %d the delays %s of `backoff` are never used. Set retries = %d to use them.",
            settings.retries,
            ", ".join(settings.unreachable),
            len(settings.backoff) + 1,
        )
