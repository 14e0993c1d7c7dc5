"""An app whose processes must never do one thing at the same time: an object's events, a task's ticks, a message.

A handler notes each of its steps in the journal, so that a test sees who was at it, and when.
"""

from __future__ import annotations

import asyncio
import os
from itertools import count

import penstock as ps
from penstock.config import Config
from penstock.queues import consumer
from penstock.runtime.events import LeaseWasLost, WorkerStarted, WorkerStopped
from tests.crash.journal import JOURNAL_VARIABLE, Journal
from tests.crash.leases import shorten

STEPS = 8
STEP_SECONDS = 0.03
WALL_SECONDS = 0.8  # as ever, a handler is cancelled before its lease ends
TICK_WALL_SECONDS = 1.4  # a tick that is cancelled is not tried again, and a busy machine is slow

shorten()
consumer.UNSTARTED_SECONDS = 1.0  # as ever, less than a lease lasts beyond the wall limit
journal = Journal(os.environ.get(JOURNAL_VARIABLE, os.devnull))
app = ps.App("rivals", config=Config(overrides={"retry_first_seconds": 0.2, "retry_longest_seconds": 0.2}))
OUT_OF_REACH = 1_000_000


class Turn(ps.Event, type="rivals.turn"):
    number: int


messages = app.queue("messages", Turn, parallel=4, timeout=WALL_SECONDS, crashes_max=OUT_OF_REACH)
# One at a time: who waits for an object whose owner is stopped is cancelled, and asks again.
callers = app.queue("callers", Turn, parallel=1, timeout=WALL_SECONDS, retries=50, crashes_max=OUT_OF_REACH)


runs = count(1)


async def steps(what: str, number: int) -> None:
    run = f"{os.getpid()}-{next(runs)}"
    for _ in range(STEPS):
        journal.note("step", queue=what, number=number, id=run)
        await asyncio.sleep(STEP_SECONDS)


def effect(what: str, number: int) -> None:
    app.db.write(
        "insert into effects (queue, number, pid) values (:queue, :number, :pid)",
        queue=what,
        number=number,
        pid=os.getpid(),
    )


@messages.handler
async def message(turn: Turn) -> None:
    await steps("message", turn.number)
    effect("message", turn.number)


class Ledger(ps.Object):
    """Reads, waits and writes: two at a time would lose one of the numbers."""

    numbers: tuple[int, ...] = ()

    async def loaded(self) -> None:
        journal.note("loaded", seq=self._residence.epoch)

    async def add(self, number: int) -> int:
        before = self.numbers
        await steps("object", 0)
        self.numbers = (*before, number)
        effect("object", number)
        return len(self.numbers)


ledgers = app.object(Ledger)


@callers.handler
async def caller(turn: Turn) -> None:
    await ledgers["one"].add(turn.number)
    effect("caller", turn.number)


@app.cron("0 * * * *", reason="a test fires it", catch_up="all", overlap="queue", timeout=TICK_WALL_SECONDS)
async def hourly(tick: ps.Tick) -> None:
    await steps("tick", 0)
    effect("tick", int(tick.scheduled_at.timestamp()) // 3_600)


for kind in (LeaseWasLost, WorkerStarted, WorkerStopped):
    app.events.subscribe(lambda event: journal.note(event.name, **event.facts()), to=kind)
