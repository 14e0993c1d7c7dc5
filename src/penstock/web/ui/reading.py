"""What a page reads: on a connection of its own that cannot write, with its price, and in no worker's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.app import App
from penstock.contracts.store import Lookout, Reader
from penstock.model.row import Row, row_type
from penstock.stores import lookout_at
from penstock.views.observer import ROWS_MAX, Observer, Target

SECONDS_MAX = 2.0  # of one statement; what takes longer is given up

T = TypeVar("T")


@dataclass(slots=True)
class PageCost:
    """What a page read: rows that were returned, rows that were read by the meter's estimate, and how long it took."""

    statements: int = 0
    rows: int = 0
    rows_read: int = 0
    seconds: float = 0.0

    def add(self, other: PageCost) -> None:
        self.statements += other.statements
        self.rows += other.rows
        self.rows_read += other.rows_read
        self.seconds += other.seconds


class PageReading(Observer):
    """An Observer that counts what it reads and goes by the clock of the app."""

    def __init__(self, target: Target, reader: Reader, lookout: Lookout, now: int) -> None:
        super().__init__(target, reader, lookout)
        self.spent = PageCost()
        self._now = now

    def read(self, sql: str, **named: Any) -> list[Row]:
        found = self._reader.read(sql, named, rows_max=ROWS_MAX, seconds_max=SECONDS_MAX)
        self.spent.statements += 1
        self.spent.rows += len(found.values)
        self.spent.rows_read += found.measure.rows_read
        made = row_type(found.columns)
        return [made(value) for value in found.values]

    def now(self) -> int:
        return self._now


class PageSource:
    """Opens the database for one page at a time. No connection stays open between two pages."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.total = PageCost()  # since this process began
        self._turn: asyncio.Lock | None = None

    @property
    def target(self) -> Target:
        return Target(self.app.database, self.app.config, self.app)

    async def now(self) -> int:
        return (await self.app._opened()).clock.now()

    async def read(self, page: Callable[[PageReading], Awaitable[T]]) -> tuple[T, PageCost]:
        """Run a function that reads, in a thread unless the app runs in virtual time."""
        engine = await self.app._opened()
        now, began = engine.clock.now(), engine.clock.monotonic()

        def work() -> tuple[T, PageCost]:
            made, spent = self._read(page, now)
            spent.seconds = engine.clock.monotonic() - began
            return made, spent

        if engine.surroundings.in_place:
            return work()
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            return await asyncio.to_thread(work)

    def _read(self, page: Callable[[PageReading], Awaitable[T]], now: int) -> tuple[T, PageCost]:
        target = self.target
        with (
            closing(lookout_at(target.address)) as lookout,
            closing(target.store(metered=True).open_reader()) as reader,
        ):
            reading = PageReading(target, reader, lookout, now)
            made = run_to_end(page(reading))
        self.total.add(reading.spent)
        return made, reading.spent


def run_to_end(work: Awaitable[T]) -> T:
    """Return the result of a coroutine that never waits: a reading answers at once."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("a page waits for something; read it before, on the event loop")
