"""The trial of the reminders: ten reminders, followed from their creation to the next occurrence.

They go through a channel that sends nothing, so that a trial disturbs nobody's phone. Whether a provider accepts mail is
shown by a first reminder to oneself, and `penstock reminders endpoints test`.
"""

from __future__ import annotations

from penstock.channels import Channel, Flight, Notice, Outcome
from penstock_systems.reminders.app import app, channels, db, now_ms
from penstock_systems.reminders.reminders import NewReminder, create

ITEMS = 10
CHANNEL = "trial"
ADDED = "select id from notifications where key like 'trial %' order by id limit 10"
SENT = """
select notification_id
from notification_deliveries
where notification_id = :id
and fire_seq = 1
and channel = 'trial'
and status = 'sent'
"""
REPEATS = "select id from notifications where id = :id and fire_seq = 2 and next_fire_at > :now"


class Rehearsal(Channel):
    """Accepts every notice, and sends nothing."""

    name = CHANNEL

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        return Outcome("sent")


channels[CHANNEL] = Rehearsal()


async def add(items: list[str]) -> None:
    async with app.unit():
        for number in range(ITEMS):
            given = NewReminder(
                title=f"Trial {number}", key=f"trial {number}", channels=[CHANNEL], rule={"every": "1 day"}
            )
            await create(given)


async def send(items: list[str]) -> None:
    await app.crons.trigger("deliver")


@app.trial.stage("add", within="1m", push=add)
async def added(items: list[str]) -> list[str]:
    return await db.column(ADDED)


@app.trial.stage("send", within="3m", push=send)
async def sent(items: list[str]) -> list[str]:
    return [id for id in items if await db.value(SENT, id=id) is not None]


@app.trial.stage("repeat", within="3m")
async def repeated(items: list[str]) -> list[str]:
    return [id for id in items if await db.value(REPEATS, id=id, now=now_ms()) is not None]
