"""An app with one workflow of twenty steps. Each of them writes an effect, and notes its key in the journal as a call to
somewhere outside the database would."""

from __future__ import annotations

import asyncio
import os

import penstock as ps
from penstock.config import Config
from penstock.queues import consumer
from penstock.runtime.events import LeaseWasLost, WorkerStarted, WorkerStopped
from tests.crash.journal import JOURNAL_VARIABLE, Journal
from tests.crash.leases import LEASE_VARIABLE, shorten

RUNGS = 20
PARALLEL = 8

shorten()
wall = 60.0
if LEASE_VARIABLE in os.environ:
    wall = 1.6  # as ever, a slice is cancelled before its lease ends, and begins no step in the second half of its time
    consumer.UNSTARTED_SECONDS = 1.5
journal = Journal(os.environ.get(JOURNAL_VARIABLE, os.devnull))
app = ps.App("twenty_steps", config=Config(overrides={"retry_first_seconds": 0.2, "retry_longest_seconds": 0.2}))


async def climb(number: int, rung: int, seconds: float, reached: int) -> int:
    step = ps.step()
    journal.note("call", queue="twenty_steps", number=effect_of(number, rung), id=step.key, attempt=step.attempt)
    await asyncio.sleep(seconds)
    app.db.write(
        "insert into effects (queue, number, pid) values ('twenty_steps', :number, :pid)",
        number=effect_of(number, rung),
        pid=os.getpid(),
    )
    return reached + rung


@app.workflow(parallel=PARALLEL, timeout=wall)
async def twenty_steps(run: ps.Run, number: int, seconds: float) -> int:
    reached = 0
    for rung in range(RUNGS):
        reached = await run.step(f"rung-{rung}", climb, number, rung, seconds, reached)
    return reached


def effect_of(number: int, rung: int) -> int:
    return number * 100 + rung


for kind in (LeaseWasLost, WorkerStarted, WorkerStopped):
    app.events.subscribe(lambda event: journal.note(event.name, **event.facts()), to=kind)
