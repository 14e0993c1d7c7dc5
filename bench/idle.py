"""What an app costs that has nothing to do: processor time, and what its writer's connection ran meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import apsw

from bench.load import Listing
from bench.place import Place
from bench.watch import WatchedApp

DELAYED = 1_000  # messages that wait for tomorrow: an idle app is not an empty one
HEADER_ONLY = 'pragma "data_version"'  # looks at the first page's header, once each time it runs


@dataclass(frozen=True, slots=True)
class Idle:
    seconds: float
    cpu_seconds: float
    statements: Counter[str]
    pages: int

    @property
    def cpu_percent(self) -> float:
        return 100 * self.cpu_seconds / self.seconds

    @property
    def pages_with_rows(self) -> int:
        """Pages that were looked at beyond the file's header. Where it is 0, no row can have been read."""
        return self.pages - self.statements[HEADER_ONLY]


def idle_cost(place: Place, seconds: float, *, settling_seconds: float) -> Idle:
    """Settling comes first, so that registering, the first look and saving what was used are over."""
    return asyncio.run(_idle_cost(place, seconds, settling_seconds))


async def _idle_cost(place: Place, seconds: float, settling_seconds: float) -> Idle:
    app = WatchedApp(place)
    listings = app.queue("listings", Listing)

    @listings.handler
    async def handle(_: Listing) -> None: ...

    engine = await app._opened()
    async with app.unit():
        for number in range(DELAYED):
            listings.send(Listing(number=number, url="https://shop.example/flats/1", title="Later"), delay=86_400)
    connection = app.writer.store_writer._session.connection
    statements: Counter[str] = Counter()

    def note(event: dict[str, Any]) -> None:
        statements[event["sql"]] += 1

    def begin() -> int:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, note, id="bench")
        return _pages(connection)

    def end() -> int:
        connection.trace_v2(0, None, id="bench")
        return _pages(connection)

    running = asyncio.ensure_future(app.run())
    await asyncio.sleep(settling_seconds)
    pages_before = await engine.in_writer(begin)
    cpu_before, wall_before = time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    cpu, wall = time.process_time() - cpu_before, time.perf_counter() - wall_before
    pages = await engine.in_writer(end) - pages_before
    app.stop()
    await running
    return Idle(wall, cpu, statements, pages)


def _pages(connection: apsw.Connection) -> int:
    """How many pages this connection has looked at, in its cache or in the file."""
    asked = (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
    return sum(connection.status(counter)[0] for counter in asked)
