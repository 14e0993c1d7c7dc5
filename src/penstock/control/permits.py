"""Pace as a resource: `async with store.permit():` waits until a service can take one more, and learns from how it went."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from penstock.control.pace import AdaptivePace, outcome_of
from penstock.model.arguments import check_ranges
from penstock.model.errors import Throttled
from penstock.model.times import Span, in_seconds
from penstock.objects.object import Object

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

SAVE_SECONDS = 30.0  # what a crash may lose of the pace that was found
WAITING_MAX = 10_000


class Remembered(Object):
    """The pace of one service, as it was found last."""

    pace: dict[str, Any] = {}  # noqa: RUF012 (every object gets a copy)

    async def remember(self, pace: dict[str, Any]) -> None:
        self.pace = pace

    async def recall(self) -> dict[str, Any]:
        return self.pace


class Permits:
    """The permits of one service in this process. Whoever waits longest goes next."""

    def __init__(
        self,
        name: str,
        opened: Callable[[], Awaitable[Engine]],
        remembered: Remembered,
        *,
        rate: tuple[float, float],
        parallel: int,
        max_wait: float,
    ) -> None:
        check_ranges(f"Pace {name!r}", rate=rate)
        self.name = name
        self._opened = opened
        self._remembered = remembered
        self._rate = rate
        self._parallel = parallel
        self._max_wait = max_wait
        self._engine: Engine | None = None
        self._pace: AdaptivePace | None = None
        self._loading: asyncio.Lock | None = None
        self._waiting: deque[asyncio.Event] = deque()
        self._saved_at = 0.0

    @asynccontextmanager
    async def permit(self, item: str | None = None, *, max_wait: Span | None = None) -> AsyncIterator[None]:
        """Take one permit for one call; `item` helps to tell a bad item from a service that refuses. `max_wait` is
        seconds or a timedelta: 0 takes a permit that is free now, or raises `Throttled`."""
        engine = await self._opened()
        if engine is not self._engine:
            self._engine, self._pace, self._loading = engine, None, None
            self._waiting.clear()
        pace = await self._loaded()
        await self._turn(engine, pace, self._max_wait if max_wait is None else in_seconds(max_wait))
        began = engine.clock.now()
        ticket = pace.started(began / 1_000_000)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            ended = engine.clock.now()
            pace.finished(
                ended / 1_000_000,
                ticket,
                outcome_of(error),
                latency=(ended - began) / 1_000_000,
                retry_after=getattr(error, "retry_after", None),
                item=item,
            )
            self._wake()
        await self._remember(engine, pace)

    async def _turn(self, engine: Engine, pace: AdaptivePace, max_wait: float) -> None:
        """Waits for its turn. A wait that would be too long is refused instead, and costs a message no attempt: while a
        service is down nothing queues up before its door."""
        me = asyncio.Event()  # set when the first in the row has something to look at
        if len(self._waiting) >= WAITING_MAX:
            raise Throttled(f"{WAITING_MAX:,} callers already wait for {self.name}.", retry_after=self._max_wait)
        self._waiting.append(me)
        until = engine.clock.now() / 1_000_000 + max_wait
        try:
            while True:
                now = engine.clock.now() / 1_000_000
                again_at: float | None = None
                if self._waiting and self._waiting[0] is me:
                    decision = pace.next(now)
                    if decision.start:
                        return
                    again_at = decision.again_at
                if now >= until or (again_at is not None and again_at > until):
                    wait = max(1.0, (again_at or now) - now)
                    raise Throttled(f"{self.name} takes no more for {wait:.0f} s.", retry_after=wait)
                me.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, min(until, again_at or until) - now)):
                        await me.wait()
        finally:
            if me in self._waiting:  # not those of an engine before this one
                self._waiting.remove(me)
            self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting[0].set()

    async def _loaded(self) -> AdaptivePace:
        if self._pace is None:
            if self._loading is None:
                self._loading = asyncio.Lock()
            async with self._loading:
                if self._pace is None:
                    saved = await _aside(self._remembered.recall())
                    self._pace = AdaptivePace(saved, rate=self._rate, parallel=self._parallel)
        return self._pace

    async def _remember(self, engine: Engine, pace: AdaptivePace) -> None:
        now = engine.clock.monotonic()
        if now - self._saved_at >= SAVE_SECONDS:
            self._saved_at = now
            await _aside(self._remembered.remember(pace.saved()))

    @property
    def rate_per_second(self) -> float | None:
        """What it allows now; None before its first use."""
        return None if self._pace is None else self._pace.rate_per_second


async def _aside(work: Coroutine[Any, Any, Any]) -> Any:
    """Outside the caller's unit: what a pace remembers is no part of what a handler did."""
    return await asyncio.get_running_loop().create_task(work, context=contextvars.Context())
