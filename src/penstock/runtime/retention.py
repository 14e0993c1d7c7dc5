"""Bounded retention: old records of the engine go in small portions, and the size of the database is watched."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from penstock.model.errors import StoreError
from penstock.model.forecast import Level, forecast
from penstock.runtime.events import SizeWatched, StoreFailed

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

EVERY_SECONDS = 3_600.0
ROWS_A_PORTION = 1_000  # one short transaction; others get their turn between two of them
PORTIONS_MAX = 100  # what is left waits for the next hour


class Retention:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._level = Level.OK

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self.once()
            except StoreError as error:  # the next hour may be better; what is due goes on meanwhile
                self._engine.events.emit(StoreFailed(self._engine.store.location, str(error)))

    async def once(self) -> int:
        engine = self._engine
        removed = 0
        for _ in range(PORTIONS_MAX):
            portion = await engine.in_writer(
                partial(engine.writer.upkeep.prune, now=engine.clock.now(), limit=ROWS_A_PORTION)
            )
            removed += portion
            if portion < ROWS_A_PORTION:
                break
        await self._watch_size()
        return removed

    async def _watch_size(self) -> None:
        engine = self._engine
        samples = await engine.in_writer(partial(engine.writer.upkeep.sample_size, now=engine.clock.now()))
        cap = engine.limits.database_bytes_max
        seen = forecast(samples, cap_bytes=cap)
        if seen.level not in (Level.OK, self._level):
            engine.events.emit(SizeWatched(engine.store.location, seen.size_bytes, cap, seen.days_left))
        self._level = seen.level
