"""An app in which everything is at work at once: two queues, objects with alarms, a cron task every second, workflows with
children and signals, and a controller. Each leaves one effect for each thing it does.

It can also be told to do one of the five wrong: then those effects are not part of the unit that does the work.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import psycopg

import penstock as ps
from penstock.config import Config
from penstock.contracts.running_handlers import RunningHandler
from penstock.control import behind
from penstock.model.schedule import Schedule
from penstock.queues import consumer
from penstock.runtime.events import LeaseWasLost, RowsReturned, WorkerStarted, WorkerStopped
from tests.crash.journal import JOURNAL_VARIABLE, Journal
from tests.crash.leases import LEASE_VARIABLE, shorten

WRONG_VARIABLE = "VICTIM_WRONG"
KINDS = ("queue", "object", "cron", "workflow", "controller")
KIND_OF = {
    **dict.fromkeys(("first", "second"), "queue"),
    **dict.fromkeys(("told", "called", "rung"), "object"),
    **dict.fromkeys(("worked", "after"), "controller"),
    "tick": "cron",
    "step": "workflow",
}

OUT_OF_REACH = 1_000_000  # crashes and retries: nobody here is to blame for a kill or a pause
SECOND = 1_000_000
COUNTERS = 3
RUN_EVERY, ITEM_EVERY = 3, 1  # of the numbers, those with a run and those with an item
PARTS = 5  # steps of a run and its child
UNIT_NUMBERS, BACKLOG_MAX, FEED_SECONDS = 6, 80, 0.03

is_brief = LEASE_VARIABLE in os.environ
wall = 1.5 if is_brief else 900.0
shorten()
if is_brief:  # as ever: a handler is cancelled, and a tick of the controller has ended, before the lease has
    consumer.UNSTARTED_SECONDS = 1.4
    behind.FLIGHT_SECONDS = 0.5
if JOURNAL_VARIABLE in os.environ:  # a cron expression knows no seconds: in a victim every schedule fires once a second
    setattr(Schedule, "next_after", lambda _, micros: (micros // SECOND + 1) * SECOND)  # noqa: B010 (a test may)

wrong = os.environ.get(WRONG_VARIABLE, "")
journal = Journal(os.environ.get(JOURNAL_VARIABLE, os.devnull))
limits = {"retry_first_seconds": 0.2, "retry_longest_seconds": 0.2}
app = ps.App("everything", migrations=Path(__file__).parent / "tables", config=Config(overrides=limits))


def effect(what: str, number: int, value: int = 0) -> None:
    bound = {"queue": what, "number": number, "value": value, "pid": os.getpid()}
    if KIND_OF[what] == wrong:
        outside().execute(PAST_THE_UNIT[app.database.startswith("postgres")], bound)
    else:
        app.db.write(EFFECT, bound)


EFFECT = "insert into effects (queue, number, value, pid) values (:queue, :number, :value, :pid)"
PAST_THE_UNIT = (
    EFFECT,
    "insert into effects (queue, number, value, pid) values (%(queue)s, %(number)s, %(value)s, %(pid)s)",
)


@cache
def outside() -> Any:
    """A connection of one's own, on which everything is saved at once: what nobody should do."""
    if app.database.startswith("postgres"):
        return psycopg.connect(app.database, autocommit=True)
    connection = apsw.Connection(app.database)
    connection.set_busy_timeout(30_000)
    return connection


async def moment(number: int) -> None:
    """Between the effect and its commit."""
    await asyncio.sleep(0.004 + 0.006 * (number % 6))


# -- queues -----------------------------------------------------------------------------------------------


class Task(ps.Event, type="everything.task"):
    number: int


class Passed(ps.Event, type="everything.passed"):
    number: int


first = app.queue("first", Task, parallel=6)
second = app.queue("second", Passed, parallel=6)


@first.handler
async def begin(task: Task, message: ps.Message[Task]) -> None:
    effect("first", task.number)
    await moment(task.number)
    counter_of(task.number).tell.hear(task.number)
    second.send(Passed(number=task.number))


@second.handler
async def finish(passed: Passed, message: ps.Message[Passed]) -> None:
    number = passed.number
    effect("second", number, await counter_of(number).add(number))
    await moment(number)
    if number % RUN_EVERY == 0:
        journey[f"run-{number}"].signal("word", number)


# -- objects ----------------------------------------------------------------------------------------------


class Counter(ps.Object):
    """Counts the calls. Its alarm is set by the first call after the last alarm, and sees all calls that came before it."""

    count: int = 0
    seen: int = 0
    rung: int = 0
    is_set: bool = False

    async def add(self, number: int) -> int:
        return await self._counted("called", number)

    async def hear(self, number: int) -> int:
        return await self._counted("told", number)

    async def _counted(self, what: str, number: int) -> int:
        before = self.count
        effect(what, number, before + 1)
        await asyncio.sleep(0.003)
        self.count = before + 1
        if not self.is_set:
            self.is_set = True
            self.set_alarm(after=0.02)
        return self.count

    async def alarm(self) -> None:
        number = int(self.name) * SECOND + self.rung + 1
        effect("rung", number, self.count)
        await asyncio.sleep(0.01)
        self.rung, self.seen, self.is_set = self.rung + 1, self.count, False


counters = app.object(Counter)


def counter_of(number: int) -> Any:
    return counters[str(number % COUNTERS)]


# -- cron -------------------------------------------------------------------------------------------------


@app.cron("*/5 * * * *", reason="it is looked at every second", catch_up="all", overlap="queue", timeout=wall)
async def tick(tick: ps.Tick) -> None:
    effect("tick", int(tick.scheduled_at.timestamp()))
    await asyncio.sleep(0.1)
    journal.note("ticked")


# -- workflows --------------------------------------------------------------------------------------------


async def part(number: int, which: int, before: int) -> int:
    effect("step", number * 10 + which)
    await moment(number)
    return before + which + number


@app.workflow(parallel=4, timeout=wall)
async def errand(run: ps.Run, number: int) -> int:
    there = await run.step("there", part, number, 2, 0)
    return await run.step("back", part, number, 3, there)


@app.workflow(parallel=4, timeout=wall)
async def journey(run: ps.Run, number: int) -> int:
    packed = await run.step("pack", part, number, 0, 0)
    await run.sleep(seconds=0.05)
    left = await run.step("leave", part, number, 1, packed)
    word = await run.wait_for("word", int)
    back = await run.child("errand", errand, number)
    return await run.step("arrive", part, number, 4, left + back + word)


def result_of(number: int) -> int:
    return 6 * number + 10


# -- the controller ---------------------------------------------------------------------------------------


@app.controller("items", parallel=4, rate=(50.0, 1_000.0), idle_backoff=(0.2, 0.2), flush_after=0.1)
class Items(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return await app.db.column("select number from items where done = 0 order by number limit :limit", limit=limit)

    async def work(self, item: int) -> None:
        effect("worked", item)
        await moment(item)
        app.db.write("update items set done = done + 1 where number = :number", number=item, expect=1)

    async def after(self, done: list[int]) -> None:
        for item in done:
            effect("after", item)
        await asyncio.sleep(0.01)


# -- who feeds and stops it -------------------------------------------------------------------------------


def feed(first_number: int) -> None:
    """Gives everybody something to do until SIGTERM, then tells how far it came."""
    asyncio.run(_feed(first_number))


async def _feed(number: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with app:
        journal.note("ready")
        while not stop.is_set():
            async with app.unit():
                for each in range(number, number + UNIT_NUMBERS):
                    _give(each)
            number += UNIT_NUMBERS
            await _pause(stop)
    journal.note("fed", number=number)


def _give(number: int) -> None:
    first.send(Task(number=number))
    if number % RUN_EVERY == 0:
        journey[f"run-{number}"].start(number)
    if number % ITEM_EVERY == 0:
        app.db.write("insert into items (number) values (:number)", number=number)


async def _pause(stop: asyncio.Event) -> None:
    backlog = BACKLOG_MAX + 1
    while backlog > BACKLOG_MAX and not stop.is_set():
        await asyncio.sleep(FEED_SECONDS)
        waiting = await app.db.value("select count(*) from penstock_messages")
        backlog = max(waiting, await app.db.value("select count(*) from items where done = 0"))


def pile_up(first_number: int, items: int) -> None:
    """Gives the controller more than it can do while a test looks."""

    async def main() -> None:
        async with app, app.unit():
            app.db.insert_many("items", ({"number": first_number + each, "done": 0} for each in range(items)))

    asyncio.run(main())


def stop_ticking() -> None:
    """No more ticks from here on."""

    async def main() -> None:
        async with app:
            await app.crons.pause("tick")

    asyncio.run(main())


# Each queue has a wall limit of its own, so that a look at the list of running handlers tells what it sees: the thousandths
# beyond the half second are its place.
for place, queue in enumerate(app.queues.values()):
    known = queue.settings
    again = replace(known.retry, retries=OUT_OF_REACH) if known.name == "second" else known.retry
    limit = wall + (place + 0.5) / 1_000
    queue.settings = replace(known, timeout_seconds=limit, crashes_max=OUT_OF_REACH, retry=again)


def queue_of(running: RunningHandler) -> str:
    return [*app.queues][running.wall_micros % (SECOND // 2) // 1_000]


for kind in (LeaseWasLost, RowsReturned, WorkerStarted, WorkerStopped):
    app.events.subscribe(lambda event: journal.note(event.name, **event.facts()), to=kind)
