"""Bounded retention: old records of the engine go in small portions, and the size of the database is watched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.model.errors import StoreError
from penstock.model.forecast import Level, forecast
from penstock.runtime.clock import BELIEVED_MICROS
from penstock.runtime.events import LettersAge, LettersPiledUp, MessagesExpired, SizeWatched, StoreFailed

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

EVERY_SECONDS = 3_600.0
ROWS_A_PORTION = 1_000  # one short transaction; others get their turn between two of them
PORTIONS_MAX = 100  # what is left waits for the next hour
EXPIRY_SLACK_SECONDS = 0.001  # so that a look at a moment of expiry finds it past
WARNED_BEFORE_SECONDS = 86_400.0  # operators get a day to resolve dead letters that are about to expire
LETTERS_MAX = 1_000  # dead letters of one queue, beyond which there is one cause rather than many


class Retention:
    def __init__(self, engine: Engine, *, shortest_seconds: float | None = None) -> None:
        """`shortest_seconds` is how soon a message that is sent from now on can expire, if it can."""
        self._engine = engine
        self._level = Level.OK
        self._piled: set[str] = set()
        self._every = EVERY_SECONDS if shortest_seconds is None else min(EVERY_SECONDS, shortest_seconds)

    async def run(self) -> None:
        """Look at once, for what expired while no worker ran; then once an hour, and when the next message expires."""
        clock = self._engine.clock
        pause, looked_at = 0.0, clock.monotonic()
        while True:
            await asyncio.sleep(pause)
            try:
                pause = await self.expire()
                if clock.monotonic() - looked_at >= EVERY_SECONDS:
                    looked_at = clock.monotonic()
                    await self.once()
                    await self._watch_letters()
            except StoreError as error:  # the next hour may be better; deliveries continue meanwhile
                self._engine.events.emit(StoreFailed(self._engine.store.location, str(error)))
                pause = self._every

    async def expire(self) -> float:
        """Removes what outlived its queue's retention; in how many seconds to look again."""
        engine = self._engine
        while True:
            now = engine.clock.now()
            expired = await engine.in_writer(engine.writer.operations.expire, now=now, limit=ROWS_A_PORTION)
            if expired.messages or expired.dead:
                engine.events.emit(MessagesExpired(expired.messages, expired.dead))
            if expired.next_expiry is None or expired.next_expiry > now:
                break
        if expired.next_expiry is None:
            return self._every
        return min(self._every, (expired.next_expiry - now) / 1_000_000 + EXPIRY_SLACK_SECONDS)

    async def _watch_letters(self) -> None:
        """Warn before dead letters expire, and when a queue has more than an operator would read."""
        engine = self._engine
        kept = engine.limits.dead_retention_seconds
        now = engine.clock.now()
        if kept is not None:
            before = now - int((kept - WARNED_BEFORE_SECONDS) * 1_000_000)
            aging = engine.writer.operations.aging
            for queue, letters in await engine.in_writer(aging, before=before, now=now, limit=ROWS_A_PORTION):
                engine.events.emit(LettersAge(queue, letters))
        for queue, letters in await engine.in_writer(engine.writer.operations.dead):
            if letters > LETTERS_MAX and queue not in self._piled:
                engine.events.emit(LettersPiledUp(queue, letters, LETTERS_MAX))
                self._piled.add(queue)
            elif letters <= LETTERS_MAX:
                self._piled.discard(queue)

    async def once(self) -> int:
        """Trust a clock that is still far behind what was recorded an hour ago: it has not been set since."""
        engine = self._engine
        removed = 0
        for _ in range(PORTIONS_MAX):
            now, dedup_seconds = engine.clock.now(), engine.limits.dedup_seconds
            prune = engine.writer.upkeep.prune
            portion = await engine.in_writer(prune, now=now, limit=ROWS_A_PORTION, dedup_seconds=dedup_seconds)
            removed += portion
            if portion < ROWS_A_PORTION:
                break
        behind = engine.writer.workers.behind
        if await engine.in_writer(behind, now=engine.clock.now(), most=BELIEVED_MICROS) > BELIEVED_MICROS:
            engine.wake(set())
        await self._watch_size()
        return removed

    async def _watch_size(self) -> None:
        engine = self._engine
        samples = await engine.in_writer(engine.writer.upkeep.sample_size, now=engine.clock.now())
        cap = engine.limits.database_bytes_max
        seen = forecast(samples, cap_bytes=cap)
        if seen.level not in (Level.OK, self._level):
            engine.events.emit(SizeWatched(engine.store.location, seen.size_bytes, cap, seen.days_left))
        self._level = seen.level
