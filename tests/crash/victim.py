"""The app whose processes are killed: each handler waits, works a little, writes an effect and sends on.

Everything that happens is also written to a journal outside the database, so that no test has to believe the engine.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import signal
import sys
import threading
import time
from typing import Any

import penstock as ps
from penstock.config import Config
from penstock.runtime.events import LeaseWasLost, MessageFailed, RowsReturned, WorkerStarted, WorkerStopped
from tests.crash.journal import JOURNAL_VARIABLE, Journal
from tests.crash.leases import shorten

OUT_OF_REACH = 1_000_000  # crashes of a message that only happened to be there when its worker was killed
BRIEF_WALL_SECONDS = 0.5
HANG_WALL_SECONDS = 0.5
RETRY_SECONDS = 0.2

shorten()
journal = Journal(os.environ.get(JOURNAL_VARIABLE, os.devnull))
app = ps.App("victim", config=Config(overrides={"retry_first_seconds": RETRY_SECONDS}))


class Task(ps.Event, type="victim.task"):
    """What to do with a message: `way` names the good or bad end, `seconds` how long it takes to get there."""

    number: int
    way: str = "work"
    seconds: float = 0.003


class Passed(ps.Event, type="victim.passed"):
    number: int


first = app.queue("first", Task, parallel=8, crashes_max=OUT_OF_REACH)
second = app.queue("second", Passed, parallel=8, crashes_max=OUT_OF_REACH)
brief = app.queue("brief", Task, parallel=4, timeout=BRIEF_WALL_SECONDS, crashes_max=OUT_OF_REACH)
patient = app.queue("patient", Task, parallel=8, timeout=60)
deadly = app.queue("deadly", Task, parallel=8)
narrow = app.queue("narrow", Task, parallel=1)
hanging = app.queue("hanging", Task, parallel=8, timeout=HANG_WALL_SECONDS, retries=1)
hopeless = app.queue("hopeless", Task, parallel=8, timeout=HANG_WALL_SECONDS, retries=0)
stuck = app.queue("stuck", Task, parallel=8, timeout=600, retries=0)


def effect(queue: str, number: int) -> None:
    app.db.write(
        "insert into effects (queue, number, pid) values (:queue, :number, :pid)",
        queue=queue,
        number=number,
        pid=os.getpid(),
    )


async def handle(task: Task, message: ps.Message[Task]) -> ps.Later | None:
    began(task.number, message)
    if task.way == "late" and task.number not in let_go:
        return await let_go_too_early(task)
    try:
        await go(task.way, task.seconds)
    except asyncio.CancelledError:
        journal.note("cancelled", queue=message.queue, number=task.number)
        raise
    effect(message.queue, task.number)
    if message.queue == first.name:
        second.send(Passed(number=task.number))
    journal.note("ended", queue=message.queue, number=task.number)
    return None


for each in (first, brief, patient, deadly, narrow, hanging, hopeless, stuck):
    each.handler(Task)(handle)


@second.handler
async def finish(passed: Passed, message: ps.Message[Passed]) -> None:
    began(passed.number, message)
    await asyncio.sleep(0.002)
    effect(second.name, passed.number)
    journal.note("ended", queue=second.name, number=passed.number)


def began(number: int, message: ps.Message[Any]) -> None:
    delivery = message.delivery
    journal.note(
        "began",
        queue=message.queue,
        number=number,
        id=message.id,
        seq=delivery.seq,
        attempt=message.attempt,
        crashes=delivery.crashes,
    )


let_go: dict[int, asyncio.Task[None]] = {}


async def let_go_too_early(task: Task) -> ps.Later:
    """Hands the message back while a unit of its own is still open somewhere."""
    opened = asyncio.Event()
    let_go[task.number] = asyncio.create_task(save_late(task, opened))
    await opened.wait()
    return ps.Later(0.0)


async def save_late(task: Task, opened: asyncio.Event) -> None:
    try:
        async with app.unit():
            opened.set()
            await asyncio.sleep(task.seconds)
            effect("late", task.number)
    except ps.LeaseLost:
        journal.note("late.refused", number=task.number)
    else:
        journal.note("late.saved", number=task.number)


class Collapse(BaseException):
    """What no `except Exception` stops."""


async def leave(seconds: float) -> None:
    await asyncio.sleep(seconds)
    sys.exit(3)


async def go(way: str, seconds: float) -> None:
    match way:
        case "work":  # waits, then is on the processor for about a millisecond
            await asyncio.sleep(seconds)
            hashlib.pbkdf2_hmac("sha256", b"penstock", b"salt", 1_500)
        case "wait" | "late":
            await asyncio.sleep(seconds)
        case "block":
            time.sleep(seconds)  # noqa: ASYNC251 (a handler that holds up the event loop is the point)
        case "spin":
            while True:
                pass
        case "kill":
            await asyncio.sleep(seconds)
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            await asyncio.sleep(seconds)
            ctypes.string_at(0)
        case "exit":
            await asyncio.sleep(seconds)
            os._exit(1)
        case "kill-from-a-thread":
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
            await asyncio.sleep(60)
        case "sys.exit":
            sys.exit(3)
        case "sys.exit after a wait":
            await asyncio.sleep(seconds)
            sys.exit(3)
        case "sys.exit in a task":
            await asyncio.gather(leave(seconds))
        case "interrupt":
            await asyncio.sleep(seconds)
            raise KeyboardInterrupt
        case "generator exit":
            await asyncio.sleep(seconds)
            raise GeneratorExit
        case "base exception":
            raise Collapse("of its own")
        case "cancel itself":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.sleep(seconds)
        case "cancel all":
            await asyncio.sleep(seconds)
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(seconds)
        case "close all":
            await asyncio.sleep(seconds)
            os.closerange(0, 256)
        case "fork":
            if os.fork():
                os.wait()  # noqa: ASYNC222 (the child ends at once)
                raise ValueError("the parent goes on")
        case "stubborn":  # does not let itself be cancelled
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                try:
                    await asyncio.sleep(left)
                except asyncio.CancelledError:
                    pass
        case _:
            raise ValueError(way)


for kind in (LeaseWasLost, MessageFailed, RowsReturned, WorkerStarted, WorkerStopped):
    app.events.subscribe(lambda event: journal.note(event.name, **event.facts()), to=kind)
