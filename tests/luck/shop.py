"""The app that bad luck strikes: orders whose handlers leave an effect, on a disk that a test has its hands on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.contracts.store import Store
from penstock.model.outcome import DONE
from penstock.runtime.events import EngineEvent, MessageSettled
from tests.disk import Disk
from tests.extent import patient

EFFECT = "insert into effects (what) values (:what)"
PATIENCE_SECONDS = 20.0  # a test that waits longer than this waits for something that will not happen


class Order(ps.Event):
    name: str
    load: str = ""


Handle = Callable[[Order], Awaitable[object]]


class Shop(ps.App):
    """Opens its store on a disk that can be told to misbehave, and remembers what happened."""

    def __init__(self, path: Path, disk: Disk | None = None, *, reserve_bytes: int = 300_000) -> None:
        super().__init__("shop", database=path, migrations=Path(__file__).parent / "migrations")
        self.options: dict[str, Any] = {"reserve_bytes": reserve_bytes, **(disk.options if disk else {})}
        self.orders = self.queue("orders", Order, parallel=8)
        self.happened: list[EngineEvent] = []
        self.begun: list[str] = []
        self.done: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self.events.subscribe(self._note)

    def _store(self, **options: Any) -> Store:
        return super()._store(**self.options, **options)

    def _note(self, event: EngineEvent) -> None:
        self.happened.append(event)
        if isinstance(event, MessageSettled) and event.settlement == DONE:
            self.done[event.id] += 1
        self._changed.set()

    def begin(self, order: Order) -> None:
        """Called by handlers, so that a test can wait for them."""
        self.begun.append(order.name)
        self._changed.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Waits, from event to event, until something is true."""
        async with asyncio.timeout(patient(PATIENCE_SECONDS)):
            while not reached():
                self._changed.clear()
                await self._changed.wait()

    async def until_done(self, count: int) -> None:
        await self.until(lambda: sum(self.done.values()) == count)

    async def until_begun(self, count: int) -> None:
        await self.until(lambda: len(self.begun) == count)

    async def place(self, *names: str, load: str = "") -> None:
        async with self.unit():
            for name in names:
                self.orders.send(Order(name=name, load=load))

    async def effects(self) -> Counter[str]:
        return Counter(await self.db.column("select what from effects"))

    def saw(self, kind: type[EngineEvent]) -> int:
        return sum(isinstance(event, kind) for event in self.happened)


@asynccontextmanager
async def running(shop: Shop) -> AsyncIterator[None]:
    """Runs the shop beside the block, then stops it and waits for its end."""
    run = asyncio.create_task(shop.run(grace_seconds=1.0))
    try:
        yield
    finally:
        shop.stop()
        async with asyncio.timeout(patient(PATIENCE_SECONDS)):
            await run
