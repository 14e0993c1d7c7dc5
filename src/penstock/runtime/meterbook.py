"""The meter's book: costs per statement, task and month, gathered in memory and saved now and then."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from penstock.model.times import month_of
from penstock.model.usage import Measure
from penstock.runtime import lanes
from penstock.runtime.events import ScanWasSlow

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

FLUSH_SECONDS = 10.0  # what a crash may lose of the costs; nothing else is lost with it
ENTRIES_MAX = 1_000  # different (task, statement) pairs held before they are saved early
SLOW_ROWS = 10_000
SLOW_AGAIN_SECONDS = 3_600.0


class MeterBook:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._entries: dict[tuple[str, str], Measure] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._told: dict[str, float] = {}
        self._read: dict[str, int] = {}  # by task, since this process began

    def read_by(self, task: str) -> int:
        """The rows a task has read in this process so far."""
        return self._read.get(task, 0)

    def add(self, task: str, measure: Measure) -> None:
        if measure.rows_read:
            self._read[task] = self._read.get(task, 0) + measure.rows_read
        known = self._entries.get((task, measure.sql))
        self._entries[(task, measure.sql)] = measure if known is None else known.plus(measure)
        if measure.rows_read > SLOW_ROWS:
            self._warn(task, measure)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._due)
        if len(self._entries) >= ENTRIES_MAX:
            self._timer.cancel()
            self._due()

    def _due(self) -> None:
        self._timer = None
        self._save(lambda *_: None)

    async def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        saved = asyncio.Event()
        self._save(lambda *_: saved.set())
        await saved.wait()

    def _save(self, answer: lanes.Answer) -> None:
        entries = [(task, measure) for (task, _), measure in self._entries.items()]
        self._entries.clear()
        if not entries or self._engine.committer.broken is not None:
            answer(None, None)
            return
        now = self._engine.clock.now()
        work = partial(self._engine.writer.upkeep.add_usage, month_of(now), entries, now=now)
        self._engine.submit(work, answer)

    def _warn(self, task: str, measure: Measure) -> None:
        now = self._loop.time()
        if now - self._told.get(measure.sql, -SLOW_AGAIN_SECONDS) >= SLOW_AGAIN_SECONDS:
            self._told[measure.sql] = now
            self._engine.events.emit(ScanWasSlow(task, measure.sql, measure.rows_read))
