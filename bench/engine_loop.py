"""The engine's side of each comparison: a fresh file, full durability, its defaults, and a clock that stops at a commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import penstock as ps
from bench import raw_sqlite
from bench.disk import Appender
from bench.raw_sqlite import BATCH, Result
from penstock.contracts.ledger import Committed, Ledger, OnceKey, SealedUnit, Want
from penstock.contracts.store import Writer
from penstock.model.envelope import encode
from penstock.queues.queue import Queue
from penstock.storage.sqlite.store import SqliteStore, SqliteWriter

PRODUCERS = 8  # tasks that send at the same time, each a hundred messages a unit
CREATE_RESULTS = "create table results (\n  number integer not null,\n  title text not null,\n  score real not null\n);\n"


class Listing(ps.Event, type="listing.found"):
    number: int
    url: str
    title: str


class Scored(ps.Event, type="listing.scored"):
    number: int
    url: str
    score: float


class Load:
    """The same messages for both sides: payloads for the engine, and the bodies it makes of them for the raw loop."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.listings = [
            Listing(number=number, url=f"https://shop.example/flats/{number:08}", title="Two rooms, quiet, no lift")
            for number in range(count)
        ]
        self.bodies = [encode(listing) for listing in self.listings]
        self.results: list[Result] = [
            {"number": listing.number, "title": listing.title, "score": 0.5} for listing in self.listings
        ]
        self.sent = [
            encode(Scored(number=listing.number, url=listing.url, score=0.5)) for listing in self.listings
        ]


class Watch:
    """A ledger that notes, in the writer's thread, when the last of so many units was committed.

    `commit` returns after SQLite's own commit, so the moment is exact, and counting whole groups costs nothing a message.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._left = 0
        self._then: Callable[[], None] = lambda: None
        self.finished_at = 0.0

    def expect(self, units: int, then: Callable[[], None]) -> None:
        self._left = units
        self._then = then

    def commit(self, units: Sequence[SealedUnit], wants: Sequence[Want], *, now: int, sweep: bool) -> Committed:
        committed = self._ledger.commit(units, wants, now=now, sweep=sweep)
        if units and self._left > 0:
            self._left -= len(units)
            if self._left <= 0:
                self.finished_at = time.perf_counter()
                self._then()
        return committed

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._ledger.find_once(once)


class WatchedWriter:
    """A writer whose ledger is watched and whose connection can be looked at."""

    def __init__(self, writer: SqliteWriter) -> None:
        self.session = writer._session
        self.ledger = Watch(writer.ledger)
        self.workers = writer.workers
        self.upkeep = writer.upkeep
        self.close = writer.close


class WatchedStore(SqliteStore):
    def open_writer(self, *, now: int) -> Writer:
        writer = super().open_writer(now=now)
        assert isinstance(writer, SqliteWriter)
        self.opened = WatchedWriter(writer)
        return self.opened


class WatchedApp(ps.App):
    """An app as users have it, but for the watch between its committer and the ledger."""

    def __init__(self, path: Path) -> None:
        super().__init__("bench", database=path, migrations=path.parent / "migrations")
        self.watched: WatchedStore

    def store(self, **options: Any) -> WatchedStore:
        assert self.config.synchronous == "full", "the bars are meant for full durability"
        self.watched = WatchedStore(self.database, synchronous=self.config.synchronous, **options)
        return self.watched

    async def run_until_committed(self, units: int) -> float:
        """Runs until so many units are committed. The clock starts before `run`, which registers and then claims."""
        loop = asyncio.get_running_loop()
        watch = self.watched.opened.ledger
        watch.expect(units, lambda: loop.call_soon_threadsafe(self.stop))
        began = time.perf_counter()
        await self.run()
        return watch.finished_at - began


def send_then_drain(path: Path, load: Load) -> tuple[float, float]:
    """Seconds to send everything, and to claim, run a handler that does nothing, and settle."""

    async def noop(_: Listing) -> None:
        pass

    async def measured() -> tuple[float, float]:
        app, listings, _ = _app(path)
        listings.on(Listing)(noop)
        await app.opened()
        sending = await _send_all(app, listings, load)
        draining = await app.run_until_committed(load.count)
        return sending, draining

    seconds = asyncio.run(measured())
    check_counts(path, {raw_sqlite.QUEUE: (load.count, load.count, 0)})
    return seconds


def send_then_work(path: Path, load: Load) -> float:
    """Seconds to claim, run a handler with one write and one send, and settle."""

    async def measured() -> float:
        app, listings, scored = _app(path)
        db = app.db

        @listings.on(Listing)
        async def score(listing: Listing) -> None:
            db.write(raw_sqlite.WRITE, number=listing.number, title=listing.title, score=0.5)
            scored.send(Scored(number=listing.number, url=listing.url, score=0.5))

        await app.opened()
        await _send_all(app, listings, load)
        return await app.run_until_committed(load.count)

    path.parent.joinpath("migrations").mkdir(exist_ok=True)
    path.parent.joinpath("migrations", "0001_results.sql").write_text(CREATE_RESULTS, encoding="utf-8")
    seconds = asyncio.run(measured())
    check_counts(
        path,
        {raw_sqlite.QUEUE: (load.count, load.count, 0), raw_sqlite.SENT_TO: (load.count, 0, load.count)},
        results=load.count,
    )
    return seconds


def send_while_draining(path: Path, load: Load) -> float:
    """Seconds until everything that producers send to a running app is settled."""

    async def noop(_: Listing) -> None:
        pass

    async def measured() -> float:
        app, listings, _ = _app(path)
        listings.on(Listing)(noop)
        await app.opened()
        async with asyncio.TaskGroup() as tasks:
            # A unit of sends is a unit too: the watch counts both kinds, and the last one is a settlement.
            units_sent = sum(-(-len(share) // BATCH) for share in _shares(load))
            running = tasks.create_task(app.run_until_committed(load.count + units_sent))
            tasks.create_task(_send(app, listings, load))
        return running.result()

    seconds = asyncio.run(measured())
    check_counts(path, {raw_sqlite.QUEUE: (load.count, load.count, 0)})
    return seconds


def idle_latency(path: Path, count: int, random: Random) -> tuple[list[float], list[float]]:
    """Seconds from just before a send to the start of its handler in an idle app, and of a synced append to a file.

    Both come after pauses from the same range, turn by turn, so a slow minute of the disk slows both.
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
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(app.run())
            with Appender(path.parent / "appended") as appender:
                for number in range(count):
                    payload = Listing(number=number, url="https://shop.example/flats/1", title="Two rooms")
                    await asyncio.sleep(random.uniform(0.020, 0.050))
                    arrived.clear()
                    sent_at = time.perf_counter()
                    async with app.unit():
                        listings.send(payload)
                    async with asyncio.timeout(30):
                        await arrived.wait()
                    await asyncio.sleep(random.uniform(0.020, 0.050))
                    syncs.append(appender.append())
            app.stop()
            await running

    asyncio.run(measured())
    return latencies, syncs


def _app(path: Path) -> tuple[WatchedApp, Queue, Queue]:
    app = WatchedApp(path)
    return app, app.queue(raw_sqlite.QUEUE, accepts=[Listing]), app.queue(raw_sqlite.SENT_TO, accepts=[Scored])


def _shares(load: Load) -> list[list[Listing]]:
    return [load.listings[first::PRODUCERS] for first in range(PRODUCERS)]


async def _send_all(app: WatchedApp, listings: Queue, load: Load) -> float:
    began = time.perf_counter()
    await _send(app, listings, load)
    return time.perf_counter() - began


async def _send(app: WatchedApp, listings: Queue, load: Load) -> None:
    async def produce(share: list[Listing]) -> None:
        for start in range(0, len(share), BATCH):
            async with app.unit():
                for listing in share[start : start + BATCH]:
                    listings.send(listing)

    async with asyncio.TaskGroup() as tasks:
        for share in _shares(load):
            tasks.create_task(produce(share))


def check_counts(path: Path, expected: dict[str, tuple[int, int, int]], *, results: int | None = None) -> None:
    """A fast figure for work that was not done is worth nothing: sent, acked and waiting must be what they should."""
    connection = raw_sqlite.connect(path)
    try:
        for queue, (sent, acked, waiting) in expected.items():
            counters = "select coalesce(sum(sent), 0), coalesce(sum(acked), 0) from penstock_counters where queue = ?"
            rows = "select count(*) from penstock_messages where queue = ?"
            found = (*connection.execute(counters, (queue,)).get, connection.execute(rows, (queue,)).get)
            assert found == (sent, acked, waiting), f"{queue}: sent, acked, waiting are {found}"
        if results is not None:
            assert connection.execute("select count(*) from results").get == results
    finally:
        connection.close()
