"""Collects records in memory and saves them now and then: what the history, the data points and the meter share."""

from __future__ import annotations

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable, Sized
from typing import Any, ClassVar, Generic, TypeVar

from penstock.contracts.clock import Clock
from penstock.model.errors import StoreError
from penstock.runtime import lanes
from penstock.runtime.events import EngineEvent

B = TypeVar("B", bound=Sized)  # a batch

FAILED_SECONDS = 30.0  # until records that could not be saved are saved again
WARNED_SECONDS = 3_600.0  # an ongoing warning is repeated at most this often


class BufferedLog(ABC, Generic[B]):
    """Sets a timer with the first record after a rest, so that an idle process has none. Lives on the event loop.

    A subclass adds records to `_pending`, calls `_wake` where `_resting` is true, and says how a batch is saved.
    """

    flush_seconds: ClassVar[float] = 1.0  # what a crash may lose

    def __init__(self, clock: Clock, empty: Callable[[], B]) -> None:
        self._clock = clock
        self._empty = empty
        self._pending = empty()
        self._is_open = False
        self._resting = True  # no timer is set and nothing is being saved
        self._timer: asyncio.TimerHandle | None = None
        self._time: Callable[[], float] = lambda: clock.now() / 1_000_000
        self._wall = 0  # what the clock shows when `_time` is 0
        self._warned: dict[object, float] = {}
        self._emit: Callable[[EngineEvent], None] = lambda event: None

    @abstractmethod
    def _submit(self, batch: B, answer: lanes.Answer) -> None:
        """Save a batch in a lane, which calls `answer` on the event loop."""

    def _saved(self, batch: B, result: Any, error: BaseException | None) -> None:
        """Note what became of a batch, and put back what can be saved later. By default a failed batch is lost."""

    def _has_records(self) -> bool:
        return bool(self._pending)

    def _begin(self, emit: Callable[[EngineEvent], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._context = contextvars.copy_context()  # a timer set while a handler runs belongs to us, not to its unit
        self._timer = None
        self._warned.clear()
        self._is_open = self._resting = True
        self._compare_clocks()

    def _wake(self) -> bool:
        """Set the timer for the first record after a rest; false if the log is closed."""
        if self._is_open:
            self._resting = False
            self._compare_clocks()
            self._set_timer(self.flush_seconds)
        return self._is_open

    def _compare_clocks(self) -> None:
        """The loop's time is read in a sixth of what the clock takes; the two are compared anew with every flush."""
        self._wall = self._clock.now() - int(self._time() * 1_000_000)

    def _set_timer(self, seconds: float) -> None:
        self._resting = False
        if self._timer is None and self._is_open:
            self._timer = self._loop.call_later(seconds, self._due, context=self._context)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._cancel_timer()
        self._save()

    async def flush(self) -> None:
        """Save what is in the buffer, and return when it is saved or has failed."""
        self._cancel_timer()
        if self._has_records():
            done = asyncio.Event()
            self._save(done.set)
            await done.wait()
        else:
            self._resting = True

    def _save(self, then: Callable[[], object] = bool) -> None:
        self._compare_clocks()
        batch, self._pending = self._pending, self._empty()

        def answered(result: Any, error: BaseException | None) -> None:
            self._saved(batch, result, error)
            if self._is_open and self._has_records():
                self._set_timer(self.flush_seconds if error is None else FAILED_SECONDS)
            else:
                self._resting = self._timer is None
            then()

        self._submit(batch, answered)

    def _warn(self, event: EngineEvent, about: object = None) -> bool:
        """Emit an event, unless one of its kind was emitted `about` the same within the hour; whether it was."""
        now, kind = self._time(), about or type(event)
        if now - self._warned.get(kind, -WARNED_SECONDS) < WARNED_SECONDS:
            return False
        self._warned[kind] = now
        self._emit(event)
        return True


def put_back(pending: list[Any], batch: list[Any], error: BaseException | None, most: int) -> list[Any]:
    """Put a batch that could not be saved before what is pending; the records that are lost.

    If it is not the store's fault, a record cannot be saved: it would hold up all that follow.
    """
    if not isinstance(error, StoreError):
        return batch
    pending[:0] = batch
    lost = pending[most:]
    del pending[most:]
    return lost


def reason_of(error: BaseException | None) -> str:
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
