"""The cron task that sends what is due: it claims rows oldest first, sends them side by side, and stops in time."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cache
from typing import Any

import penstock as ps
from penstock_systems.reminders.app import app, db, now_ms, settings, spaced_channels, web
from penstock_systems.reminders.fires import run_fire
from penstock_systems.reminders.keys import master_key
from penstock_systems.reminders.settings import CLAIM_ROWS
from penstock_systems.reminders.spacing import Spacing

DAY_MS = 86_400_000
BUDGET_SECONDS = 50.0  # of each minute; rows that are not started by then stay due
LEASE_MS = 75_000  # a mail waits up to the budget for its place, and two commits and ten seconds for its answer
CONDITION = "reminders.given-up"

IS_DUE = db.hot("select 1 from notifications where next_fire_at <= :now limit 1")
DUE = db.hot(
    """
    select id
    from notifications
    where next_fire_at <= :now
    and (claimed_until is null or claimed_until <= :now)
    order by next_fire_at, id
    limit :most
    """
)
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
# A row that is not started in this tick stays due, and is left to the next one.
DEFER = """
update notifications
set claimed_until = :until, claim_token = null
where id = :id
and claim_token = :token
"""
PRUNED = (
    ("notifications", "done_at"),
    ("notifications", "cancelled_at"),
    ("notification_deliveries", "intent_at"),
    ("notification_dead_letters", "dead_at"),
    ("digest_items", "kept_at"),
)
IS_OLD = (
    db.hot("select 1 from notification_deliveries where intent_at < :before limit 1"),
    db.hot("select 1 from notifications where cancelled_at < :before limit 1"),
)
CEILING = ps.Ceiling(rows_read=10_000_000_000)  # far above what sending takes: a ceiling stops the reminders of a month

_log = logging.getLogger("penstock.reminders")


async def is_something_due() -> bool:
    warn_of_unreachable_delays()
    return await db.exists(IS_DUE, now=now_ms())


@app.cron(
    settings.cron, reason="a reminder is sent in the minute in which it is due", when=is_something_due, ceiling=CEILING
)
async def deliver() -> None:
    """Send everything that is due, until nothing is left or the budget of this minute is used up."""
    tick = _Tick(await master_key())
    async with asyncio.TaskGroup() as group:
        while tick.seconds_left > 0 and (claimed := await claim()):
            await tick.start(group, *claimed)
    if tick.given_up:
        text = "\n".join(sorted(set(tick.given_up))[:10])
        await app.alert(
            CONDITION, "Reminders were given up", f"{text}\nSee them with: penstock reminders list --state parked"
        )


class _Tick:
    """The fires of one run of the task."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self._ends = web.clock.monotonic() + BUDGET_SECONDS
        self._slots = asyncio.Semaphore(settings.parallel)
        self._mails = Spacing(settings.mails_a_second)
        self.given_up: list[str] = []

    @property
    def seconds_left(self) -> float:
        return self._ends - web.clock.monotonic()

    async def start(self, group: asyncio.TaskGroup, token: str, rows: list[Any]) -> None:
        """Start the fires of claimed rows. Mails are spaced, and do not hold up what goes elsewhere."""
        deferred: list[str] = []
        for row in rows:
            is_mail = any(f'"{name}"' in row.channels for name in spaced_channels)
            if self._mails.wait_seconds >= self.seconds_left if is_mail else self.seconds_left <= 0:
                deferred.append(row.id)
                continue
            if is_mail:
                group.create_task(self._fire(row.id, token, self._mails.reserve()))
                continue
            await self._slots.acquire()
            group.create_task(self._fire(row.id, token))
        if deferred:
            await defer(deferred, token, now_ms() + max(0, round(self.seconds_left * 1000)))

    async def _fire(self, id: str, token: str, delay: float | None = None) -> None:
        if delay is not None:
            await asyncio.sleep(delay)  # before the intent: what is killed while it waits was not sent
            await self._slots.acquire()
        try:
            if error := await run_fire(id, token, self._master):
                self.given_up.append(error)
        finally:
            self._slots.release()


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


async def defer(ids: list[str], token: str, until: int) -> None:
    """Give rows back that are not started in this tick."""
    async with app.unit():
        db.write_many(DEFER, [{"id": id, "token": token, "until": until} for id in ids])


async def is_something_old() -> bool:
    before = now_ms() - settings.keep_days * DAY_MS
    return any([await db.exists(sql, before=before) for sql in IS_OLD])


@app.cron("17 3 * * *", reason="old rows are deleted once a day", when=is_something_old, ceiling=CEILING)
async def prune() -> None:
    """Delete what ended long ago: reminders, and what became of their fires."""
    for table, column in PRUNED:
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
