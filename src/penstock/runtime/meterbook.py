"""Sums up costs by statement and task in memory, and adds them to the month's costs every few seconds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from penstock.model.times import month_of
from penstock.model.usage import Measure
from penstock.runtime import lanes
from penstock.runtime.buffered_log import BufferedLog
from penstock.runtime.events import ScanWasSlow

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

Costs = dict[tuple[str, str], Measure]  # by task and statement

ENTRIES_MAX = 1_000  # different (task, statement) pairs held before they are saved early
SLOW_ROWS = 10_000


class MeterBook(BufferedLog[Costs]):
    flush_seconds: ClassVar[float] = 10.0  # a crash loses the costs of these seconds and nothing else

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.clock, dict)
        self._engine = engine
        self._read: dict[str, int] = {}  # by task, since this process began
        self._begin(engine.events.emit)

    def read_by(self, task: str) -> int:
        """The rows a task has read in this process so far."""
        return self._read.get(task, 0)

    def add(self, task: str, measure: Measure) -> None:
        if measure.rows_read:
            self._read[task] = self._read.get(task, 0) + measure.rows_read
        known = self._pending.get((task, measure.sql))
        self._pending[(task, measure.sql)] = measure if known is None else known.plus(measure)
        if measure.rows_read > SLOW_ROWS:
            self._warn(ScanWasSlow(task, measure.sql, measure.rows_read), about=measure.sql)
        if self._resting:
            self._wake()
        if len(self._pending) >= ENTRIES_MAX:
            self._due()

    def _submit(self, batch: Costs, answer: lanes.Answer) -> None:
        if self._engine.scheduler.broken is not None:
            answer(None, None)
            return
        now = self._clock.now()
        costs = [(task, measure) for (task, _), measure in batch.items()]
        self._engine.submit(partial(self._engine.writer.upkeep.add_usage, month_of(now), costs, now=now), answer)
