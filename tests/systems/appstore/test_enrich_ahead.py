"""Look-ups ahead of time: one call for many, one failure for all who wait for it, and nothing from another database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

import penstock as ps
from penstock_systems.appstore.enrich.ahead import IDS_A_CALL, Ahead
from penstock_systems.appstore.enrich.outbound import Outbound
from penstock_systems.appstore.store.facts import Found

pytestmark = pytest.mark.slow("postgres")


class Store:
    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.single: list[int] = []
        self.fails: Exception | None = None
        self.home = object()

    async def opened(self) -> object:
        return self.home

    async def lookup(self, track_id: int) -> Found | None:
        self.single.append(track_id)
        return Found(track_id=track_id)

    async def lookup_many(self, ids: Iterable[int]) -> dict[int, Found]:
        self.calls.append(list(ids))
        await asyncio.sleep(1)
        if self.fails is not None:
            raise self.fails
        return {track_id: Found(track_id=track_id) for track_id in self.calls[-1] if track_id % 10}


def made() -> tuple[Store, Ahead]:
    store = Store()
    return store, Ahead(store.opened, store, Outbound(8))


async def test_all_that_come_soon_are_looked_up_in_one_call() -> None:
    store, ahead = made()
    await ahead.expect(range(1, 301))

    heard = await asyncio.gather(*(ahead.get(track_id) for track_id in range(1, 9)))
    later = [await ahead.get(track_id) for track_id in range(9, 201)]

    assert [len(call) for call in store.calls] == [IDS_A_CALL]
    assert [found.track_id for found in heard if found] == list(range(1, 9))
    assert [found is None for found in later] == [track_id % 10 == 0 for track_id in range(9, 201)]
    assert (await ahead.get(250)) is None
    assert len(store.calls) == 2


async def test_one_that_was_not_expected_is_looked_up_by_itself() -> None:
    store, ahead = made()
    await ahead.expect([1, 2])
    assert await ahead.get(77) == Found(track_id=77)
    assert (store.single, store.calls) == ([77], [])


async def test_what_was_heard_is_used_once_and_kept_for_those_that_still_wait() -> None:
    store, ahead = made()
    await ahead.expect([1, 2, 3])
    await ahead.get(1)
    await ahead.expect([2, 3, 4])
    assert await ahead.get(2) == Found(track_id=2)
    assert len(store.calls) == 1
    await ahead.expect([1, 2, 4])
    await ahead.get(2)
    assert store.calls == [[1, 2, 3], [2, 1, 4]]


async def test_a_failure_reaches_all_waiting_callers_and_no_later_one() -> None:
    store, ahead = made()
    await ahead.expect([1, 2])
    store.fails = ps.Throttled("403")
    heard = await asyncio.gather(ahead.get(1), ahead.get(2), return_exceptions=True)
    assert [type(each) for each in heard] == [ps.Throttled, ps.Throttled]
    store.fails = None
    assert await ahead.get(1) == Found(track_id=1)


async def test_who_goes_away_early_takes_nothing_from_the_others() -> None:
    store, ahead = made()
    await ahead.expect([1, 2])
    first, second = (asyncio.ensure_future(ahead.get(track_id)) for track_id in (1, 2))
    await asyncio.sleep(0.5)
    first.cancel()
    assert await second == Found(track_id=2)
    assert len(store.calls) == 1


async def test_what_was_sent_to_another_database_is_forgotten() -> None:
    store, ahead = made()
    await ahead.expect([1, 2])
    await ahead.get(1)
    store.home = object()
    await ahead.expect([1, 2])
    await ahead.get(2)
    assert len(store.calls) == 2
