"""How often a controller looks for work, and what the looks and the work cost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadApp
from penstock.testing import TestApp, virtual
from tests.flow.shelf import START, Shelf, names
from tests.flow.shop import effects

HOUR = 3_600


@pytest.mark.spec("A6-28", "G2-21")
@virtual
async def test_with_nothing_to_do_the_rest_doubles_up_to_the_longest() -> None:
    shelf = Shelf(mode="pilot", idle_backoff=(10.0, 80.0))
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=10 + 20 + 40 + 5)
        assert shelf.picks == 4
        await shop.advance(seconds=HOUR)
        assert shelf.picks == pytest.approx(4 + HOUR / 80, abs=1)


@virtual
async def test_ticks_that_fail_come_as_rarely_as_ones_that_find_nothing() -> None:
    shelf = Shelf(mode="pilot", idle_backoff=(10.0, 80.0))
    shelf.pick_fails = OSError("no such table")
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=10 + 20 + 40 + 5)
        assert shelf.picks == 4


@pytest.mark.spec("A6-28")
@virtual
async def test_when_all_is_done_it_rests_and_does_not_look_again_at_once() -> None:
    shelf = Shelf(mode="pilot", idle_backoff=(300.0, 300.0))
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(20))
        await shelf.controller.wake()
        await shop.advance(seconds=290)
        assert await effects(shelf.app) == names(20)
        looked = shelf.picks
        await shelf.fill(shop, "late")
        await shop.advance(seconds=5)
        assert shelf.picks == looked
        await shop.advance(seconds=300)
        assert "late" in await effects(shelf.app)


@virtual
async def test_an_item_that_waits_is_picked_when_its_time_has_come_however_long_the_rest() -> None:
    async def work(_item: str) -> None:
        if len(shelf.worked) == 1:
            raise ps.Throttled(retry_after=1)
        if len(shelf.worked) == 2:
            raise OSError("not yet")

    shelf = Shelf(work, mode="pilot", idle_backoff=(HOUR, HOUR))
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        await shelf.controller.wake()
        await shop.advance(seconds=5 + 60 + 10)
        assert await effects(shelf.app) == ["a"]


@virtual
async def test_a_wake_up_while_it_flies_is_heard_when_it_has_landed() -> None:
    app = ps.App("shop")
    pending, worked = [1], list[int]()

    @app.controller("enrichment", idle_backoff=(HOUR, HOUR))
    class Slow(ps.Controller[int]):
        async def pick(self, limit: int) -> list[int]:
            found = pending[:limit]
            await asyncio.sleep(5)
            return found

        async def work(self, item: int) -> None:
            pending.remove(item)
            worked.append(item)

    async with TestApp(app, start=START) as shop:
        await shop.advance(seconds=8)
        assert worked == [1]
        assert pending == []
        pending.append(2)  # what it looks for now it has asked for already
        await app.controllers["enrichment"].wake()
        await shop.advance(seconds=20)
        assert worked == [1, 2]


@virtual
async def test_finished_items_are_gathered_for_after() -> None:
    gathered: list[int] = []
    for gather in (0.0, 60.0):
        shelf = Shelf(mode="pilot", rate=(1.0, 1.0), flush_after=gather)
        handed: list[int] = []

        async def after(self: object, done: list[str], handed: list[int] = handed) -> None:
            handed.append(len(done))

        type(shelf.app.controllers._definitions["enrichment"].controller).after = after  # type: ignore[method-assign]
        async with TestApp(shelf.app, start=START) as shop:
            await shelf.fill(shop, *names(30))
            await shop.advance(minutes=10)
        assert sum(handed) == 30
        gathered.append(len(handed))
    assert gathered[0] >= 20
    assert gathered[1] <= 2


@pytest.mark.spec("A5-18")
@virtual
async def test_the_time_of_the_items_is_not_the_time_of_the_object() -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(30)

    shelf = Shelf(work, mode="pilot", idle_backoff=(300.0, 300.0))
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(5))
        await shop.advance(minutes=20)
        assert await effects(shelf.app) == names(5)
        total = (await shelf.app.db.usage()).total
        assert total.object_requests <= 10
        assert total.object_seconds < 1


@pytest.mark.parametrize(
    "settings", [{"idle_backoff": (0.0, 10.0)}, {"idle_backoff": (20.0, 10.0)}, {"flush_after": -1.0}]
)
def test_waits_that_are_none_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadApp, match=rf"'enrichment'.*: {next(iter(settings))} is .*(above 0|from 0|comes last)"):
        Shelf(mode="pilot", **settings)
