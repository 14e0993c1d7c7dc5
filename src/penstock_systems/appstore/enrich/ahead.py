"""Look-ups ahead of time: one call for all the apps whose turn comes soon. Look-ups share a pace with searches, and it is
a slow one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from penstock_systems.appstore.enrich.outbound import Outbound
from penstock_systems.appstore.store.facts import Found
from penstock_systems.appstore.store.together import OneAtATime

IDS_A_CALL = 200


class Store(Protocol):
    async def lookup(self, track_id: int) -> Found | None: ...
    async def lookup_many(self, ids: Iterable[int]) -> dict[int, Found]: ...


class Ahead:
    """What was heard belongs to the database that was open then: `opened` says which one it is."""

    def __init__(self, opened: Callable[[], Awaitable[object]], store: Store, outbound: Outbound) -> None:
        self._opened = opened
        self._store = store
        self._outbound = outbound
        self._expected: dict[int, None] = {}
        self._batch: tuple[int, ...] = ()
        self._heard: dict[int, Found | None] = {}
        self._calls: OneAtATime[tuple[int, ...], dict[int, Found]] = OneAtATime()
        self._home: object = None

    async def expect(self, ids: Iterable[int]) -> None:
        """These come next, in this order. What was heard about others is forgotten."""
        home = await self._opened()
        if home is not self._home:
            self._home, self._heard, self._batch = home, {}, ()
        self._expected = dict.fromkeys(ids)
        self._heard = {track_id: self._heard[track_id] for track_id in self._expected if track_id in self._heard}

    async def get(self, track_id: int) -> Found | None:
        if track_id in self._heard:
            return self._heard.pop(track_id)
        if track_id not in self._batch:
            if track_id not in self._expected:
                async with self._outbound:
                    return await self._store.lookup(track_id)
            others = (each for each in self._expected if each != track_id and each not in self._heard)
            self._batch = (track_id, *others)[:IDS_A_CALL]
        batch = self._batch
        found = await self._calls.get(batch, lambda: self._call(batch))
        self._heard.pop(track_id, None)
        return found.get(track_id)

    async def _call(self, batch: tuple[int, ...]) -> dict[int, Found]:
        try:
            async with self._outbound:
                found = await self._store.lookup_many(batch)
        finally:
            if self._batch is batch:
                self._batch = ()
        self._heard.update((track_id, found.get(track_id)) for track_id in batch if track_id in self._expected)
        return found
