"""What a process of these tests can be: a worker, a producer that keeps its own books, or somebody who only sends."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import apsw
import msgspec

from penstock.cli import worker as cli_worker
from tests.crash.oracle import WHOLE
from tests.crash.victim import Task, app, effect, first, journal

UNIT_MESSAGES = 5
PRODUCER_PAUSE_SECONDS = 0.07
BACKLOG_MAX = 60  # the producer waits for the workers, so that a returned message does not queue for long


def worker(grace: float, reference: str = "tests.crash.victim:app") -> int:
    """A worker without a supervisor, as `python -m penstock.cli.worker` starts it."""
    return cli_worker.main([reference, "--grace", str(grace)])


def producer(first_number: int, ledger: str) -> None:
    """Sends until SIGTERM. Notes what it is about to send, and again once the commit has returned, each with an fsync."""
    asyncio.run(_produce(first_number, Path(ledger)))


async def _produce(number: int, ledger: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    descriptor = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    async with app:
        journal.note("ready")
        while not stop.is_set():
            numbers = " ".join(str(number + each) for each in range(UNIT_MESSAGES))
            _note(descriptor, f"begun {numbers}")
            async with app.unit():
                for each in range(UNIT_MESSAGES):
                    first.send(Task(number=number + each, seconds=0.008 * ((number + each) % 7)))
            _note(descriptor, f"sent {numbers}")
            number += UNIT_MESSAGES
            await _pause(stop)
    os.close(descriptor)


async def _pause(stop: asyncio.Event) -> None:
    """A moment, and as many more as the workers need to catch up."""
    backlog = BACKLOG_MAX + 1
    while backlog > BACKLOG_MAX and not stop.is_set():
        await asyncio.sleep(PRODUCER_PAUSE_SECONDS)
        backlog = await app.db.value("select count(*) from penstock_messages")


def _note(descriptor: int, line: str) -> None:
    os.write(descriptor, f"\n{line} {WHOLE}\n".encode())
    os.fsync(descriptor)


def send(queue: str, tasks: list[dict[str, Any]]) -> None:
    """Sends all tasks in one unit."""

    async def main() -> None:
        async with app, app.unit():
            for task in tasks:
                app.queues[queue].send(msgspec.convert(task, Task))

    asyncio.run(main())


def compete(first: int, turns: int) -> None:
    """Gives the rivals so many messages, and as many calls of one object."""
    from tests.crash import rivals  # an app of its own, which no other process here needs

    async def main() -> None:
        async with rivals.app, rivals.app.unit():
            for number in range(first, first + turns):
                rivals.messages.send(rivals.Turn(number=number))
                rivals.callers.send(rivals.Turn(number=number))

    asyncio.run(main())


def climb(first: int, runs: int, seconds: float) -> None:
    """Starts so many runs of the workflow in one unit, whose steps take so long."""
    from tests.crash import workflow_app  # an app of its own, which no other process here needs

    async def main() -> None:
        async with workflow_app.app, workflow_app.app.unit():
            for number in range(first, first + runs):
                workflow_app.twenty_steps[f"run-{number}"].start(number, seconds)

    asyncio.run(main())


def write(units: int, writer: int) -> None:
    """From SIGUSR1 on, commits so many units, one after another, and notes how long each of them took."""

    async def main() -> None:
        go = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, go.set)
        async with app:
            journal.note("ready", number=writer)
            await go.wait()
            waits = []
            for number in range(units):
                began = time.perf_counter()
                async with app.unit():
                    effect("writers", writer * units + number)
                waits.append(time.perf_counter() - began)
            journal.note("waits", number=writer, reason=" ".join(f"{wait:.6f}" for wait in waits))

    asyncio.run(main())


def hold(seconds: float) -> None:
    """Another program on the same file: keeps the write lock for so long, taking no turn."""
    connection = apsw.Connection(os.environ["PENSTOCK_DATABASE"])
    connection.set_busy_timeout(30_000)
    connection.execute("begin immediate")
    journal.note("holding")
    time.sleep(seconds)
    connection.execute("rollback")
    connection.close()
