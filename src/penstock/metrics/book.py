"""The book of data points: written in memory, saved once a second in the history's lane, never in the way of who writes."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any

from penstock.contracts.clock import Clock
from penstock.contracts.history import HistoryFile
from penstock.metrics.point import Noted, Sorts, Unfit, in_order
from penstock.metrics.saving import Ready, Rolling, Tally, Used, prune, ready, save
from penstock.model.errors import PenstockError, StoreError
from penstock.model.times import day_of
from penstock.runtime.engine import Engine
from penstock.runtime.events import EngineEvent

FLUSH_SECONDS = 1.0  # what a crash may lose
FAILED_SECONDS = 30.0  # until points that could not be saved are tried again
PENDING_MAX = 100_000  # points in memory, some 40 MB; more are dropped and counted
PRUNE_SECONDS = 600.0  # a look that finds nothing old costs less than a millisecond
PRUNED_AT_ONCE = 5_000
TOLD_SECONDS = 3_600.0  # what goes on is told of once in so long


class PointsFailed(EngineEvent, name="points.failed", level="warning"):
    """Data points could not be saved. It is tried again; nothing else is held up."""

    error: str


class PointsDropped(EngineEvent, name="points.dropped", level="warning"):
    """So many points were dropped: over the day's quota, or no room in memory while they could not be saved."""

    dropped: int


class PointsRefused(EngineEvent, name="points.refused", level="warning"):
    """Something was written that is no data point. Its line in the code writes nothing."""

    refused: int
    reason: str


class QuotaSpent(PenstockError):
    """The data points were asked as often as they may be on one day."""


class PointBook:
    """Takes points at any time and from any thread. They are saved while an engine is open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._engine: Engine | None = None
        self._pending: list[Noted] = []
        self._room = PENDING_MAX  # so many more are taken before somebody looks whether there is still room
        self._resting = False  # an engine is open, no timer is set and nothing is being saved
        self._timer: asyncio.TimerHandle | None = None
        self._tallies: dict[str, Tally] = {}  # not saved yet
        self._used = Used("", 0, 0)
        self._time: Callable[[], float] = lambda: clock.now() / 1_000_000  # while no engine is open
        self._wall = 0  # what the clock shows when this time is 0
        self._sorts = Sorts()
        self._rolling = Rolling()
        self._told: dict[type[EngineEvent], float] = {}
        self._prune_at = 0.0
        self._counts: dict[str, Tally] = {}  # what is saved, by dataset, since the app was opened

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
            except Exception as error:  # whatever somebody's own iterator raises
                self._refuse(dataset, str(error) if isinstance(error, Unfit) else type(error).__name__)
                return
            self._room -= 1
            # The loop's time is read in a sixth of what the clock takes; the two are compared anew with every flush.
            at = self._wall + int(self._time() * 1_000_000)
            # Made through the tuple itself: twice as quick as calling the class.
            self._pending.append(tuple.__new__(Noted, (dataset, at, blobs, doubles, index)))

    def _refuse(self, dataset: str, reason: str) -> None:
        self._tally(dataset).refused += 1
        self._tell(PointsRefused(1, reason))

    def _tally(self, dataset: str) -> Tally:
        return self._tallies.setdefault(dataset, Tally())

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
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._compare_clocks()
        self._thread = get_ident()
        self._context = contextvars.copy_context()  # a timer set while a handler runs belongs to us, not to its unit
        self._timer = None
        self._prune_at = self._loop.time() + PRUNE_SECONDS
        self._make_room()
        self._resting = True
        if self._pending or self._tallies:
            self._set_timer(FLUSH_SECONDS)

    async def end(self) -> None:
        """Saves what was written. Points that cannot be saved keep nobody from closing."""
        if self._engine is not None:
            await self.flush()
            self._resting, self._engine = False, None
            self._time, self._wall = (lambda: self._clock.now() / 1_000_000), 0
            self._cancel_timer()

    def _compare_clocks(self) -> None:
        self._wall = self._clock.now() - int(self._time() * 1_000_000)

    def _wake(self) -> None:
        self._resting = False
        self._compare_clocks()
        self._on_loop(partial(self._set_timer, FLUSH_SECONDS))

    def _on_loop(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody will save them
            if get_ident() == self._thread:
                work()
            else:
                self._loop.call_soon_threadsafe(work, context=self._context)

    def _set_timer(self, seconds: float) -> None:
        self._resting = False
        if self._timer is None and self._engine is not None:
            self._timer = self._loop.call_later(seconds, self._due, context=self._context)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._save(lambda: None)

    async def flush(self) -> None:
        self._cancel_timer()
        if self._engine is not None and (self._pending or self._tallies):
            done = asyncio.Event()
            self._save(done.set)
            await done.wait()
        else:
            self._resting = self._engine is not None

    # -- saving -----------------------------------------------------------------------------------------

    def _save(self, then: Callable[[], None]) -> None:
        engine = self._engine
        if engine is None:
            then()
            return
        self._compare_clocks()
        batch, self._pending = self._pending, []
        tallies, self._tallies = self._tallies, {}
        now, old = self._clock.now(), self._loop.time() >= self._prune_at
        most = engine.limits.metric_writes_per_day_max

        def work(file: HistoryFile) -> tuple[Ready, Used, dict[str, Tally], bool]:
            checked = ready(batch, self._sorts)
            used, counted = file.transact(
                lambda run: save(run, checked, tallies, self._rolling, now=now, writes_max=most)
            )
            more = False
            if old:
                with suppress(StoreError):  # the points are saved; what is old waits for the next time
                    more = prune(file, now=now, limit=PRUNED_AT_ONCE)
            return checked, used, counted, more

        def answered(found: tuple[Ready, Used, dict[str, Tally], bool] | None, error: BaseException | None) -> None:
            if found is None:
                self._failed(batch, tallies, error)
            else:
                checked, self._used, counted, more = found
                if old:
                    self._prune_at = self._loop.time() + (0.0 if more else PRUNE_SECONDS)
                self._count(counted, checked.reason)
            self._go_on(error)
            then()

        engine.history.submit(work, answered)

    def _failed(self, batch: list[Noted], tallies: dict[str, Tally], error: BaseException | None) -> None:
        self._tell(PointsFailed(str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"))
        for dataset, tally in tallies.items():
            self._tally(dataset).add(tally)
        lost = batch
        if isinstance(error, StoreError):
            self._pending[:0] = batch
            lost = self._pending[PENDING_MAX:]
            del self._pending[PENDING_MAX:]
        # Else it is not the store's doing: a point that cannot be saved would be in the way of all that follow.
        for point in lost:
            self._tally(point.dataset).dropped += 1
        if lost:
            self._tell(PointsDropped(len(lost)))

    def _count(self, counted: dict[str, Tally], reason: str | None) -> None:
        for dataset, tally in counted.items():
            self._counts.setdefault(dataset, Tally()).add(tally)
        dropped, refused = (sum(getattr(each, name) for each in counted.values()) for name in ("dropped", "refused"))
        if dropped:
            self._tell(PointsDropped(dropped))
        if refused and reason is not None:
            self._tell(PointsRefused(refused, reason))

    def _go_on(self, error: BaseException | None) -> None:
        self._make_room()
        if self._pending:
            self._set_timer(FLUSH_SECONDS if error is None else FAILED_SECONDS)
        elif self._timer is None:
            self._resting = self._engine is not None

    def _tell(self, event: EngineEvent) -> None:
        if self._engine is None:
            return
        now = self._loop.time()
        if now - self._told.get(type(event), -TOLD_SECONDS) >= TOLD_SECONDS:
            self._told[type(event)] = now
            self._on_loop(partial(self._engine.events.emit, event))

    # -- asking -----------------------------------------------------------------------------------------

    def counted(self, dataset: str) -> Tally:
        total = Tally()
        for tallies in (self._counts, self._tallies):
            total.add(tallies.get(dataset, Tally()))
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
