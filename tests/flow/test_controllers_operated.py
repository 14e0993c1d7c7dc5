"""What an operator asks of a controller holds at once, also in the middle of a tick, and works on no item twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import PenstockError
from penstock.testing import TestApp, virtual
from tests.flow.shelf import MODES, START, Shelf, names
from tests.flow.shop import effects


@pytest.mark.spec("A6-32")
@MODES
@virtual
async def test_a_stop_in_the_middle_of_a_tick_starts_nothing_more_and_sets_no_alarm(mode: str) -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(10)

    shelf = Shelf(work, mode=mode, parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(50))
        await shelf.controller.start()
        await shop.advance(seconds=5)
        await shelf.controller.stop()
        worked = len(shelf.worked)
        assert worked
        await shop.advance(hours=1)
        assert len(shelf.worked) == worked
        assert len(await effects(shelf.app)) == worked, "what was under way ends"
        status = await shelf.status()
        assert (status["running"], status["next_tick_at"]) == (False, None)


@pytest.mark.spec("A6-32", "F-33")
@virtual
async def test_a_stop_just_before_an_alarm_leaves_the_alarm_and_nothing_is_done() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=10)
        assert (await shelf.status())["next_tick_at"] is not None
        await shelf.controller.stop()
        assert (await shelf.status())["next_tick_at"] is not None
        await shelf.fill(shop, "a")
        await shop.restart()
        await shop.advance(hours=1)
        assert shelf.worked == []
        assert (await shelf.status())["next_tick_at"] is None


@pytest.mark.spec("A6-31")
@virtual
async def test_a_start_ticks_in_a_second() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=1)
        await shelf.controller.stop()
        await shop.advance(minutes=10)
        await shelf.fill(shop, "a")
        await shelf.controller.start()
        status = await shelf.status()
        assert (status["running"], status["in_cooldown"]) == (True, False)
        assert datetime.fromisoformat(status["next_tick_at"]) == shop.now + timedelta(seconds=1)
        await shop.advance(seconds=40)
        assert shelf.worked == ["a"]


@MODES
@virtual
async def test_a_stop_and_a_start_in_the_middle_of_a_tick_work_on_no_item_twice(mode: str) -> None:
    under_way: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def work(item: str) -> None:
        under_way[item] += 1
        most[item] = max(most[item], under_way[item])
        await asyncio.sleep(30)
        under_way[item] -= 1

    shelf = Shelf(work, mode=mode, parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(6))
        await shelf.controller.start()
        await shop.advance(seconds=5)
        assert shelf.worked
        await shelf.controller.stop()
        await shelf.controller.start()
        await shop.advance(hours=1)
        assert await effects(shelf.app) == names(6)
        assert Counter(shelf.worked) == dict.fromkeys(names(6), 1)
        assert set(most.values()) == {1}


@pytest.mark.spec("A6-33", "G5-17")
@MODES
@virtual
async def test_a_reset_in_the_middle_of_a_tick_drops_what_it_counted_and_no_item_is_worked_on_twice(mode: str) -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(30)

    shelf = Shelf(work, mode=mode, parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a", "b")
        await shelf.controller.start()
        await shop.advance(seconds=5)
        assert shelf.worked
        await shelf.controller.reset()
        status = await shelf.status()
        assert datetime.fromisoformat(status["next_tick_at"]) == shop.now + timedelta(seconds=1)
        await shop.advance(seconds=31)
        status = await shelf.status()
        totals = {name: status[name] for name in status if name.startswith("total_")}
        assert totals["total_completed"] == 0
        await shop.advance(hours=1)
        assert await effects(shelf.app) == ["a", "b"]
        assert Counter(shelf.worked) == {"a": 1, "b": 1}


@pytest.mark.spec("A6-33", "G5-17")
@MODES
@virtual
async def test_a_tick_that_was_under_way_during_a_reset_does_not_change_the_pace(mode: str) -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(30)

    def pace(status: dict[str, Any]) -> dict[str, Any]:
        learnt = ("current_batch_size", "current_interval_ms", "rate_per_second")
        return {name: status[name] for name in learnt if name in status}

    shelf = Shelf(work, mode=mode, parallel=8)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(20))
        await shelf.controller.start()
        await shop.advance(seconds=31)
        await shelf.controller.stop()
        await shelf.controller.reset(keep_stopped=True)
        first = pace(await shelf.status())
        await shop.advance(minutes=5)
        assert pace(await shelf.status()) == first


@pytest.mark.spec("A6-33", "G5-17")
@virtual
async def test_a_reset_keeps_a_stopped_controller_stopped_if_asked_to() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=5)
        await shelf.controller.stop()
        await shelf.controller.reset(keep_stopped=True)
        assert (await shelf.status())["running"] is False
        await shelf.controller.reset()
        assert (await shelf.status())["running"] is True


@virtual
async def test_after_a_reset_items_that_were_set_aside_are_picked_again() -> None:
    async def work(_item: str) -> None:
        if len(shelf.worked) == 1:
            raise ps.Gone("not yet")

    shelf = Shelf(work)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        await shop.advance(minutes=10)
        assert await shelf.notes() == {"a": "gone"}
        await shelf.controller.reset()
        await shop.advance(minutes=10)
        assert await effects(shelf.app) == ["a"]


@pytest.mark.spec("A6-34", "G5-18")
@virtual
async def test_zones_are_tuned_within_their_rails_and_what_is_no_number_is_refused() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=5)
        await shelf.controller.tune(batch_size=500, interval_ms=1)
        status = await shelf.status()
        assert (status["current_batch_size"], status["current_interval_ms"]) == (50, 10_000)
        for wanted in ({"batch_size": "abc"}, {"interval_ms": 1.5}, {"batch_size": True}, {"pieces": 1}):
            with pytest.raises(PenstockError):
                await shelf.controller.tune(**wanted)
        await shop.restart()
        status = await shelf.status()
        assert (status["current_batch_size"], status["current_interval_ms"]) == (50, 10_000)


@pytest.mark.spec("A6-34")
@virtual
async def test_a_shorter_interval_holds_at_once() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(100))
        await shelf.controller.tune(interval_ms=120_000, batch_size=2)
        await shop.advance(seconds=125)
        worked = len(shelf.worked)
        await shelf.controller.tune(interval_ms=10_000)
        await shop.advance(seconds=11)
        assert len(shelf.worked) > worked


@virtual
async def test_a_pilot_stays_tuned_over_ticks_and_restarts() -> None:
    shelf = Shelf(mode="pilot", rate=(0.01, 50.0))
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=5)
        await shelf.controller.tune(rate=0.5, parallel=3)
        await shelf.fill(shop, *names(200))
        await shop.advance(minutes=2)
        await shop.restart()
        await shop.advance(minutes=2)
        assert 60 <= len(shelf.worked) <= 130
        assert (await shelf.status())["current_batch_size"] == 3
        with pytest.raises(PenstockError):
            await shelf.controller.tune(rate="fast")


@virtual
async def test_a_refused_tune_in_the_middle_of_a_tick_costs_no_count() -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(1)

    shelf = Shelf(work, mode="pilot", rate=(0.5, 2.0))
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(60))
        for _ in range(20):
            await shop.advance(seconds=3)
            with pytest.raises(PenstockError):
                await shelf.controller.tune(rate="fast")
        await shop.advance(hours=1)
        status = await shelf.status()
        assert len(await effects(shelf.app)) == 60
        assert status["total_completed"] >= 60


@virtual
async def test_a_worker_with_a_controller_in_the_middle_of_a_tick_stops_when_its_items_have_ended() -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(2)

    shelf = Shelf(work, mode="pilot", parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(500))
        await shop.advance(seconds=20)
        before = shop.now
        await shop.restart()
        assert (shop.now - before).total_seconds() < 10
        assert Counter(shelf.worked).most_common(1)[0][1] == 1
