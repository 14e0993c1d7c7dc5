"""The engine's side of each comparison: a fresh file, full durability, its defaults, and a clock that stops at a commit."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random

import apsw

from bench.disk import Appender
from bench.load import CREATE_RESULTS, QUEUE, SENT_TO, WRITE, Listing, Load, Scored, listing
from bench.watch import WatchedApp
from penstock.queues.queue import Queue

BATCH = 100
PRODUCERS = 8  # tasks that send at the same time, each a hundred messages a unit
PAUSE_SECONDS = (0.020, 0.050)
ARRIVAL_SECONDS_MAX = 30.0


def send_then_drain(path: Path, load: Load) -> tuple[float, float]:
    """Seconds to send everything, and to claim it, run a handler that does nothing, and settle."""

    async def measured() -> tuple[float, float]:
        app, listings, _ = _app(path)
        listings.on(Listing)(_nothing)
        await app.opened()
        began = time.perf_counter()
        await _send_all(app, listings, load)
        sending = time.perf_counter() - began
        return sending, await app.run_until_committed(load.count)

    seconds = asyncio.run(measured())
    check_counts(path, {QUEUE: (load.count, load.count, 0)})
    return seconds


def send_then_work(path: Path, load: Load) -> tuple[float]:
    """Seconds to claim, run a handler with one write and one send, and settle."""

    async def measured() -> float:
        app, listings, scored = _app(path)
        db = app.db

        @listings.on(Listing)
        async def score(found: Listing) -> None:
            db.write(WRITE, number=found.number, title=found.title, score=0.5)
            scored.send(Scored(number=found.number, url=found.url, score=0.5))

        await app.opened()
        await _send_all(app, listings, load)
        return await app.run_until_committed(load.count)

    migrations = path.parent / "migrations"
    migrations.mkdir()
    migrations.joinpath("0001_results.sql").write_text(CREATE_RESULTS, encoding="utf-8")
    seconds = asyncio.run(measured())
    check_counts(path, {QUEUE: (load.count, load.count, 0), SENT_TO: (load.count, 0, load.count)}, results=load.count)
    return (seconds,)


def send_while_draining(path: Path, load: Load) -> tuple[float]:
    """Seconds until everything that producers send to a running app is settled."""

    async def measured() -> float:
        app, listings, _ = _app(path)
        listings.on(Listing)(_nothing)
        await app.opened()
        # A unit of sends is a unit too. The last one to be committed is a settlement.
        units = load.count + sum(-(-len(share) // BATCH) for share in _shares(load))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(app.run_until_committed(units))
            tasks.create_task(_send_all(app, listings, load))
        return running.result()

    seconds = asyncio.run(measured())
    check_counts(path, {QUEUE: (load.count, load.count, 0)})
    return (seconds,)


def idle_latency(path: Path, count: int, random: Random) -> tuple[list[float], list[float]]:
    """Seconds from just before a send to the start of its handler in an idle app, and of a synced append to a file.

    They take turns, each after a pause from the same range, so that a slow minute of the disk slows both.
    """
    latencies: list[float] = []
    syncs: list[float] = []

    async def measured() -> None:
        app, listings, _ = _app(path)
        arrived = asyncio.Event()
        sent_at = 0.0

        @listings.on(Listing)
        async def handle(_: Listing) -> None:
            latencies.append(time.perf_counter() - sent_at)
            arrived.set()

        await app.opened()
        running = asyncio.ensure_future(app.run())
        with Appender(path.parent / "appended") as appender:
            for number in range(count):
                await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
                arrived.clear()
                sent_at = time.perf_counter()
                async with app.unit():
                    listings.send(listing(number))
                async with asyncio.timeout(ARRIVAL_SECONDS_MAX):
                    await arrived.wait()
                await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
                syncs.append(appender.append())
        app.stop()
        await running

    asyncio.run(measured())
    return latencies, syncs


async def _nothing(_: Listing) -> None:
    pass


def _app(path: Path) -> tuple[WatchedApp, Queue, Queue]:
    app = WatchedApp(path)
    return app, app.queue(QUEUE, accepts=[Listing]), app.queue(SENT_TO, accepts=[Scored])


def _shares(load: Load) -> list[list[Listing]]:
    return [load.listings[first::PRODUCERS] for first in range(PRODUCERS)]


async def _send_all(app: WatchedApp, listings: Queue, load: Load) -> None:
    async def produce(share: list[Listing]) -> None:
        for start in range(0, len(share), BATCH):
            async with app.unit():
                for found in share[start : start + BATCH]:
                    listings.send(found)

    async with asyncio.TaskGroup() as tasks:
        for share in _shares(load):
            tasks.create_task(produce(share))


def check_counts(path: Path, expected: dict[str, tuple[int, int, int]], *, results: int | None = None) -> None:
    """Work that was not done is quick: what was sent, acked and is waiting must be what it should."""
    connection = apsw.Connection(str(path))
    counters = "select coalesce(sum(sent), 0), coalesce(sum(acked), 0) from penstock_counters where queue = ?"
    waiting = "select count(*) from penstock_messages where queue = ?"
    for queue, should in expected.items():
        found = (*connection.execute(counters, (queue,)).get, connection.execute(waiting, (queue,)).get)
        assert found == should, f"{queue}: sent, acked and waiting are {found}; they should be {should}"
    if results is not None:
        written = connection.execute("select count(*) from results").get
        assert written == results, f"{written} of {results} rows were written"
    connection.close()
