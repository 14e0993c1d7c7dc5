"""Callers at the same moment share one call. Who goes away early takes nothing from the others."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class OneAtATime(Generic[K, V]):
    """Whoever asks for a thing that is being fetched already waits for that fetch."""

    def __init__(self) -> None:
        self._under_way: dict[K, _Shared[V]] = {}

    def has(self, key: K) -> bool:
        return key in self._under_way and self._under_way[key].can_be_joined

    async def get(self, key: K, fetch: Callable[[], Coroutine[Any, Any, V]]) -> V:
        if not self.has(key):
            self._under_way[key] = _Shared(fetch())
        shared = self._under_way[key]
        try:
            return await shared.result()
        finally:
            if not shared.can_be_joined and self._under_way.get(key) is shared:
                del self._under_way[key]


class Joined(Generic[K, V]):
    """Ids that are asked for within one short while are asked for in one call. Its failure is everybody's."""

    def __init__(
        self, call: Callable[[list[K]], Coroutine[Any, Any, Mapping[K, V]]], *, window: float, most: int
    ) -> None:
        self._call = call
        self._window = window
        self._most = most
        self._open: _Round[K, V] | None = None

    async def get(self, key: K) -> V | None:
        """What the call brought for this id; None if it brought nothing."""
        joined = self._open
        if joined is None or not joined.shared.can_be_joined:
            joined = self._open = _Round()
            joined.shared = _Shared(self._run(joined))
        joined.keys[key] = None
        if len(joined.keys) >= self._most:
            joined.full.set()
            self._open = None
        return (await joined.shared.result()).get(key)

    async def _run(self, joined: _Round[K, V]) -> Mapping[K, V]:
        try:
            async with asyncio.timeout(self._window):
                await joined.full.wait()
        except TimeoutError:
            pass
        finally:
            if self._open is joined:
                self._open = None
        return await self._call(list(joined.keys))


class _Round(Generic[K, V]):
    """The ids of one call while it is open for more."""

    shared: _Shared[Mapping[K, V]]

    def __init__(self) -> None:
        self.keys: dict[K, None] = {}
        self.full = asyncio.Event()


class _Shared(Generic[V]):
    """A task that lives for as long as one of its waiters does."""

    def __init__(self, work: Coroutine[Any, Any, V]) -> None:
        # Outside the unit of whoever came first: the answer belongs to all.
        self.task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._waiters = 0

    @property
    def can_be_joined(self) -> bool:
        """Not one that is over, nor one that nobody waits for any more."""
        return not self.task.done() and not self.task.cancelling()

    async def result(self) -> V:
        self._waiters += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiters -= 1
            if self._waiters == 0 and not self.task.done():
                self.task.cancel()
