"""Penstock's own turn among the queues, in a process of its own: full durability, its defaults, one worker.

    python -m bench.queues_penstock FOLDER SERVER ONE_BY_ONE BATCHED LATENCIES SEED

SERVER is the address of a PostgreSQL server, or empty for files in the folder. Unlike a peer's, its drain is timed from
before the worker starts until the last message is settled on the disk. Its idle latency is taken twice: sent by the process
that handles, and sent by another one, as the peers' are.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

import penstock as ps
from bench.engine_loop import ARRIVAL_SECONDS_MAX, PAUSE_SECONDS, idle_latency
from bench.load import QUEUE, Listing, listing
from bench.place import Place, database_of, in_file
from bench.report import ROOT
from bench.watch import WatchedApp
from penstock.cli.worker import GARBAGE_THRESHOLD
from penstock.queues.queue import Queue

BATCH = 100
PACE = "pace"  # in place of a folder: this is the sending process


@dataclass(slots=True)
class Turn:
    """Seconds for each measure. `syncs` are synced appends to a file, made between the latencies after the same pauses."""

    one_by_one: float
    batched: float
    drain: float
    drain_batch_handler: float = 0.0
    latencies: list[float] = field(default_factory=list)
    latencies_between: list[float] = field(default_factory=list)
    syncs: list[float] = field(default_factory=list)


async def send(app: WatchedApp, queue: Queue[Listing], one_by_one: int, batched: int) -> tuple[float, float]:
    singles = [listing(number) for number in range(one_by_one)]
    rest = [listing(number) for number in range(one_by_one, one_by_one + batched)]
    began = time.perf_counter()
    for each in singles:
        async with app.unit():
            queue.send(each)
    between = time.perf_counter()
    for start in range(0, batched, BATCH):
        async with app.unit():
            for each in rest[start : start + BATCH]:
                queue.send(each)
    return between - began, time.perf_counter() - between


async def send_and_drain(place: Place, one_by_one: int, batched: int) -> tuple[float, float, float]:
    app = WatchedApp(place)
    queue = app.queue(QUEUE, Listing)

    async def handle(_: Listing) -> None: ...

    queue.handler(Listing)(handle)
    await app._opened()
    singly, by_the_hundred = await send(app, queue, one_by_one, batched)
    return singly, by_the_hundred, await app.run_until_committed(one_by_one + batched)


async def drain_with_batch_handler(place: Place, count: int) -> float:
    app = WatchedApp(place)
    queue = app.queue(QUEUE, Listing, batch=BATCH, batch_wait=0.0)

    async def handle(_: ps.Batch[Listing]) -> None: ...

    queue.batch_handler(handle)
    await app._opened()
    await send(app, queue, 0, count)
    began = time.perf_counter()
    # How many units a batch is settled in is its own affair, so the end of the run stops the clock.
    await app.run(until_idle=True)
    return time.perf_counter() - began


class Timed(ps.Event, type="job.timed"):
    number: int
    sent_at: float


def timed_app(place: Place) -> tuple[WatchedApp, Queue[Timed]]:
    app = WatchedApp(place)
    return app, app.queue(QUEUE, Timed)


async def latencies_between_processes(place: Place, count: int, seed: int) -> list[float]:
    """Seconds from just before a send in another process to the handler's start here, where nothing else goes on."""
    app, queue = timed_app(place)
    latencies: list[float] = []

    async def handle(job: Timed) -> None:
        latencies.append(time.perf_counter() - job.sent_at)
        if len(latencies) == count:
            app.stop()

    queue.handler(Timed)(handle)
    await app._opened()
    running = asyncio.ensure_future(app.run())
    command = (sys.executable, "-m", "bench.queues_penstock", PACE, place.database, str(count), str(seed))
    sender = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    assert await sender.wait() == 0, "the sending process failed"
    async with asyncio.timeout(ARRIVAL_SECONDS_MAX):
        await running
    return latencies


async def pace(place: Place, count: int, random: Random) -> None:
    app, queue = timed_app(place)
    await app._opened()
    for number in range(count):
        await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
        sent_at = time.perf_counter()
        async with app.unit():
            queue.send(Timed(number=number, sent_at=sent_at))
    await app.close()


def main() -> None:
    if sys.argv[1] == PACE:
        database, count_asked, seed_asked = sys.argv[2:]
        return asyncio.run(pace(Place(database, Path(database).parent), int(count_asked), Random(int(seed_asked))))
    folder, server = Path(sys.argv[1]), sys.argv[2]
    one_by_one, batched, latencies, seed = map(int, sys.argv[3:])
    count = one_by_one + batched
    gc.set_threshold(GARBAGE_THRESHOLD)  # as a worker process of `penstock run` sets itself up

    drained, batches, latency, between = (
        database_of(server, name, folder) if server else in_file(folder / f"{name}.db")
        for name in ("drain", "batches", "latency", "between")
    )
    turn = Turn(*asyncio.run(send_and_drain(drained, one_by_one, batched)))
    drained.check_counts({QUEUE: (count, count, 0)})
    turn.drain_batch_handler = asyncio.run(drain_with_batch_handler(batches, count))
    batches.check_counts({QUEUE: (count, count, 0)})
    turn.latencies, turn.syncs = idle_latency(latency, latencies, Random(seed))
    turn.latencies_between = asyncio.run(latencies_between_processes(between, latencies, seed))
    between.check_counts({QUEUE: (latencies, latencies, 0)})
    print(json.dumps(asdict(turn)), flush=True)
    return None


if __name__ == "__main__":
    main()
