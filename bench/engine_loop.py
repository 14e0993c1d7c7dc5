"""The engine's side of each comparison: an empty database, full durability, its defaults, a clock that stops at a commit."""

from __future__ import annotations

import asyncio
import time
from random import Random

from bench.disk import Appender
from bench.load import CREATE_RESULTS, QUEUE, SENT_TO, WRITE, Listing, Load, Scored, listing
from bench.place import Place
from bench.watch import WatchedApp
from penstock.queues.queue import Queue

BATCH = 100
PRODUCERS = 8  # tasks that send at the same time, each a hundred messages a unit
PAUSE_SECONDS = (0.020, 0.050)
ARRIVAL_SECONDS_MAX = 30.0


def send_then_drain(place: Place, load: Load) -> tuple[float, float]:
    """Seconds to send everything, and to claim it, run a handler that does nothing, and settle."""

    async def measured() -> tuple[float, float]:
        app, listings, _ = _app(place)
        listings.handler(Listing)(_nothing)
        await app._opened()
        began = time.perf_counter()
        await _send_all(app, listings, load)
        sending = time.perf_counter() - began
        return sending, await app.run_until_committed(load.count)

    seconds = asyncio.run(measured())
    place.check_counts({QUEUE: (load.count, load.count, 0)})
    return seconds


def send_then_work(place: Place, load: Load) -> tuple[float]:
    """Seconds to claim, run a handler with one write and one send, and settle."""

    async def measured() -> float:
        app, listings, scored = _app(place)
        db = app.db

        @listings.handler(Listing)
        async def score(found: Listing) -> None:
            db.write(WRITE, number=found.number, title=found.title, score=0.5)
            scored.send(Scored(number=found.number, url=found.url, score=0.5))

        await app._opened()
        await _send_all(app, listings, load)
        return await app.run_until_committed(load.count)

    migrations = place.folder / "migrations"
    migrations.mkdir()
    migrations.joinpath("0001_results.sql").write_text(CREATE_RESULTS, encoding="utf-8")
    seconds = asyncio.run(measured())
    place.check_counts({QUEUE: (load.count, load.count, 0), SENT_TO: (load.count, 0, load.count)}, results=load.count)
    return (seconds,)


def send_while_draining(place: Place, load: Load) -> tuple[float]:
    """Seconds until everything that producers send to a running app is settled."""

    async def measured() -> float:
        app, listings, _ = _app(place)
        listings.handler(Listing)(_nothing)
        await app._opened()
        # A unit of sends is a unit too. The last one to be committed is a settlement.
        units = load.count + sum(-(-len(share) // BATCH) for share in _shares(load))
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(app.run_until_committed(units))
            tasks.create_task(_send_all(app, listings, load))
        return running.result()

    seconds = asyncio.run(measured())
    place.check_counts({QUEUE: (load.count, load.count, 0)})
    return (seconds,)


def idle_latency(place: Place, count: int, random: Random) -> tuple[list[float], list[float]]:
    """Seconds from just before a send to the start of its handler in an idle app, and of a synced append to a file.

    They take turns, each after a pause from the same range, so that a slow minute of the disk slows both.
    """
    latencies: list[float] = []
    syncs: list[float] = []

    async def measured() -> None:
        app, listings, _ = _app(place)
        arrived = asyncio.Event()
        sent_at = 0.0

        @listings.handler(Listing)
        async def handle(_: Listing) -> None:
            latencies.append(time.perf_counter() - sent_at)
            arrived.set()

        await app._opened()
        running = asyncio.ensure_future(app.run())
        with Appender(place.folder / "appended") as appender:
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


def _app(place: Place) -> tuple[WatchedApp, Queue[Listing], Queue[Scored]]:
    app = WatchedApp(place)
    return app, app.queue(QUEUE, Listing), app.queue(SENT_TO, Scored)


def _shares(load: Load) -> list[list[Listing]]:
    return [load.listings[first::PRODUCERS] for first in range(PRODUCERS)]


async def _send_all(app: WatchedApp, listings: Queue[Listing], load: Load) -> None:
    async def produce(share: list[Listing]) -> None:
        for start in range(0, len(share), BATCH):
            async with app.unit():
                for found in share[start : start + BATCH]:
                    listings.send(found)

    async with asyncio.TaskGroup() as tasks:
        for share in _shares(load):
            tasks.create_task(produce(share))
