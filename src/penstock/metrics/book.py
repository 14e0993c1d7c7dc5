"""Buffers data points in memory and saves them once a second in the history's lane, so that a write never waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple

from penstock.contracts.clock import Clock
from penstock.contracts.history import HistoryFile
from penstock.metrics.point import Noted, Sorts, Unfit, in_order
from penstock.metrics.saving import DatasetTally, Rolling, Used, prune, ready, save
from penstock.model.errors import PenstockError, StoreError
from penstock.model.times import day_of
from penstock.runtime import lanes
from penstock.runtime.buffered_log import BufferedLog, put_back, reason_of
from penstock.runtime.engine import Engine
from penstock.runtime.events import EngineEvent

PENDING_MAX = 100_000  # points in memory, some 40 MB; more are dropped and counted
PRUNE_SECONDS = 600.0  # a look that finds nothing old costs less than a millisecond
PRUNED_AT_ONCE = 5_000


class PointsFailed(EngineEvent, name="points.failed", level="warning"):
    """Data points could not be saved. The save is retried; nothing else waits for it."""

    error: str


class PointsDropped(EngineEvent, name="points.dropped", level="warning"):
    """Points were dropped: over the day's quota, or no room in memory while they could not be saved."""

    dropped: int


class PointsRefused(EngineEvent, name="points.refused", level="warning"):
    """Something was written that is no data point. Its line in the code writes nothing."""

    refused: int
    reason: str


class QuotaSpent(PenstockError):
    """The data points were asked as often as they may be on one day."""


class Written(NamedTuple):
    """What became of a batch. `used` is what all processes have used of the day's quota."""

    reason: str | None  # why the first refused point was none
    used: Used
    counted: dict[str, DatasetTally]
    pruned: bool
    has_more: bool  # to prune


class PointBook(BufferedLog[list[Noted]]):
    """Takes points at any time and from any thread. They are saved while an engine is open."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, list)
        self._engine: Engine | None = None
        self._room = PENDING_MAX  # how many more are taken before the room is counted again
        self._tallies: dict[str, DatasetTally] = {}  # not saved yet
        self._used = Used("", 0, 0)
        self._sorts = Sorts()
        self._rolling = Rolling()
        self._prune_at = 0.0
        self._counts: dict[str, DatasetTally] = {}  # what is saved, by dataset, since the app was opened

    # -- writing ----------------------------------------------------------------------------------------

    def note(self, dataset: str, blobs: Any, doubles: Any, index: Any) -> None:
        """Never raises, and looks at little: what is no point is found out when it is saved."""
        if self._resting:
            self._wake()
        if self._room <= 0 and not self._has_room():
            self._tally(dataset).dropped += 1
        else:
            try:
                if type(blobs) is not tuple:
                    blobs = in_order(blobs)
                if type(doubles) is not tuple:
                    doubles = in_order(doubles)
            except Exception as error:  # whatever an iterator of the caller raises
                self._refuse(dataset, str(error) if isinstance(error, Unfit) else type(error).__name__)
                return
            self._room -= 1
            at = self._wall + int(self._time() * 1_000_000)
            # Made through the tuple itself: twice as quick as calling the class.
            self._pending.append(tuple.__new__(Noted, (dataset, at, blobs, doubles, index)))

    def _refuse(self, dataset: str, reason: str) -> None:
        self._tally(dataset).refused += 1
        self._warn(PointsRefused(1, reason))

    def _tally(self, dataset: str) -> DatasetTally:
        return self._tallies.setdefault(dataset, DatasetTally())

    def _has_room(self) -> bool:
        self._make_room()
        return self._room > 0

    def _make_room(self) -> None:
        room = PENDING_MAX - len(self._pending)
        most = None if self._engine is None else self._engine.limits.metric_writes_per_day_max
        if most is not None:
            written = self._used.written if day_of(self._clock.now()) == self._used.day else 0
            room = min(room, most - written - len(self._pending))
        self._room = room

    # -- an engine is open ------------------------------------------------------------------------------

    def begin(self, engine: Engine) -> None:
        if self._engine is not None:
            self._pending.clear()  # the process that held them is gone, and they with it
        self._engine = engine
        self._used = Used("", 0, 0)
        self._counts = {}
        self._thread = get_ident()
        self._begin(lambda event: self._on_loop(partial(engine.events.emit, event)))
        self._prune_at = self._time() + PRUNE_SECONDS
        self._make_room()
        if self._has_records():
            self._set_timer(self.flush_seconds)

    async def end(self) -> None:
        """Save the buffer. Points that cannot be saved do not prevent closing."""
        if self._engine is not None:
            await self.flush()
            self._is_open, self._engine = False, None
            self._time, self._wall = (lambda: self._clock.now() / 1_000_000), 0
            self._cancel_timer()

    def _set_timer(self, seconds: float) -> None:
        self._resting = False
        self._on_loop(partial(super()._set_timer, seconds))

    def _on_loop(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing will save them
            if get_ident() == self._thread:
                work()
            else:
                self._loop.call_soon_threadsafe(work, context=self._context)

    # -- saving -----------------------------------------------------------------------------------------

    def _has_records(self) -> bool:
        return bool(self._pending or self._tallies)

    def _submit(self, batch: list[Noted], answer: lanes.Answer) -> None:
        engine = self._engine
        if engine is None:
            answer(None, None)
            return
        tallies, self._tallies = self._tallies, {}
        now, prunes = self._clock.now(), self._time() >= self._prune_at
        most = engine.limits.metric_writes_per_day_max

        def work(file: HistoryFile) -> Written:
            checked = ready(batch, self._sorts)
            used, counted = file.transact(
                lambda run: save(run, checked, tallies, self._rolling, now=now, writes_max=most)
            )
            has_more = False
            if prunes:
                with suppress(StoreError):  # the points are saved; old ones are removed the next time
                    has_more = prune(file, now=now, limit=PRUNED_AT_ONCE)
            return Written(checked.reason, used, counted, prunes, has_more)

        def answered(result: Written | None, error: BaseException | None) -> None:
            for dataset, tally in tallies.items() if error is not None else ():
                self._tally(dataset).add(tally)
            answer(result, error)

        engine.history.submit(work, answered)

    def _saved(self, batch: list[Noted], result: Written | None, error: BaseException | None) -> None:
        if error is not None:
            self._warn(PointsFailed(reason_of(error)))
            lost = put_back(self._pending, batch, error, PENDING_MAX)
            for point in lost:
                self._tally(point.dataset).dropped += 1
            if lost:
                self._warn(PointsDropped(len(lost)))
        elif result is not None:
            self._used = result.used
            if result.pruned:
                self._prune_at = self._time() + (0.0 if result.has_more else PRUNE_SECONDS)
            self._count(result.counted, result.reason)
        self._make_room()

    def _count(self, counted: dict[str, DatasetTally], reason: str | None) -> None:
        for dataset, tally in counted.items():
            self._counts.setdefault(dataset, DatasetTally()).add(tally)
        dropped, refused = (sum(getattr(each, name) for each in counted.values()) for name in ("dropped", "refused"))
        if dropped:
            self._warn(PointsDropped(dropped))
        if refused and reason is not None:
            self._warn(PointsRefused(refused, reason))

    # -- asking -----------------------------------------------------------------------------------------

    def counted(self, dataset: str) -> DatasetTally:
        total = DatasetTally()
        for tallies in (self._counts, self._tallies):
            total.add(tallies.get(dataset, DatasetTally()))
        return total

    async def ask(self, dataset: str, engine: Engine) -> None:
        """Counts a question, and saves what was written before it, so that the answer knows of it."""
        self._tally(dataset).asked += 1
        await self.flush()
        most = engine.limits.metric_reads_per_day_max
        if most is not None and self._used.asked > most:
            raise QuotaSpent(
                f"Data points were queried {most:,} times today, the maximum (metric_reads_per_day_max). Query "
                "tomorrow, or raise the limit.",
                most=most,
            )
