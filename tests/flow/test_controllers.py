"""Controllers: they tick by themselves, one bad item harms no other, and each item reaches one `after`."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from itertools import pairwise

import pytest

import penstock as ps
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.extent import sampled
from tests.flow.shelf import MODES, START, Shelf, names
from tests.flow.shop import effects
from tests.flow.tampering import tamper


@pytest.mark.spec("A6-01")
@MODES
@virtual
async def test_it_works_by_itself_and_goes_on_when_new_items_come(mode: str) -> None:
    shelf = Shelf(mode=mode)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(20))
        await shop.advance(minutes=10)
        assert await effects(shelf.app) == names(20)
        await shelf.fill(shop, "late")
        await shop.advance(minutes=5)
        assert "late" in await effects(shelf.app)
        assert await shelf.notes() == {}
        assert shelf.picks >= 10, "it has looked again and again, and nobody has called it"


@MODES
@virtual
async def test_one_failing_item_harms_no_other_and_is_parked_after_five(mode: str) -> None:
    async def work(item: str) -> None:
        if item == "003":
            raise OSError("poison")
        if item == "005":
            shelf.app.db.write("insert into no_such_table (what) values (1)")

    shelf = Shelf(work, mode=mode)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(10))
        await shop.advance(hours=2)
        assert await effects(shelf.app) == [name for name in names(10) if name not in ("003", "005")]
        assert await shelf.notes() == {"003": "parked", "005": "parked"}
        tried = Counter(shelf.worked)
        assert (tried["003"], tried["005"], tried["000"]) == (5, 5, 1)


@pytest.mark.slow("postgres")
@virtual
async def test_tries_of_a_failing_item_are_counted_over_a_restart() -> None:
    async def work(_item: str) -> None:
        raise OSError("poison")

    shelf = Shelf(work)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        for _ in range(8):
            await shop.advance(minutes=20)
            await shop.restart()
        await shop.advance(hours=1)
        assert len(shelf.worked) == 5
        assert await shelf.notes() == {"a": "parked"}


@MODES
@virtual
async def test_a_refused_item_is_not_to_blame_and_one_that_is_gone_is_skipped(mode: str) -> None:
    refusals = ["a"] * 3

    async def work(item: str) -> None:
        if item in refusals:
            refusals.remove(item)
            raise ps.Throttled(retry_after=1)
        if item == "b":
            raise ps.Gone("no such app")

    shelf = Shelf(work, mode=mode)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a", "b", "c")
        await shop.advance(hours=2)
        assert await effects(shelf.app) == ["a", "c"]
        assert await shelf.notes() == {"b": "gone"}
        assert shelf.worked.count("b") == 1
        status = await shelf.status()
        assert (status["total_skipped"], status["total_throttled"], status["total_failed"]) == (1, 3, 0)
        assert status["total_dispatched"] == status["total_completed"] + 4


@MODES
@virtual
async def test_where_the_table_tells_what_is_due_nothing_is_set_aside_for_good(mode: str) -> None:
    async def work(item: str) -> None:
        tries = shelf.worked.count(item)
        if item == "a" and tries == 1:
            raise OSError("not yet")
        if item == "a" and tries == 2:
            async with shelf.app.unit():
                shelf.app.db.write("update stock set pieces = -1 where item = 'a'")
            raise ps.Gone("no such app")
        if item == "b" and tries < 8:
            raise OSError("poison")

    shelf = Shelf(work, mode=mode, sets_aside=False)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a", "b")
        await shop.advance(hours=2)
        assert (shelf.worked.count("a"), shelf.worked.count("b")) == (2, 8)
        assert await effects(shelf.app) == ["b"]
        assert await shelf.notes() == {}
        status = await shelf.status()
        assert (status["total_skipped"], status["total_failed"]) == (1, 8)

        async with shop.unit():
            shelf.app.db.write("update stock set pieces = 0 where item = 'a'")
        await shop.advance(minutes=5)
        assert sorted(await effects(shelf.app)) == ["a", "b"]


@virtual
async def test_an_item_that_is_refused_while_others_pass_is_parked_and_slows_no_other_down() -> None:
    async def work(item: str) -> None:
        await asyncio.sleep(3)
        if item == "a poison":
            raise ps.Throttled("403")

    shelf = Shelf(work, mode="pilot", parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a poison", *(f"good {number:04}" for number in range(950)))
        await shop.advance(hours=1)
        assert len(await effects(shelf.app)) == 950
        assert await shelf.notes() == {"a poison": "parked"}


@virtual
async def test_a_refusal_between_failures_does_not_wipe_them_out() -> None:
    turns = iter([OSError("1"), ps.Throttled(), OSError("2"), ps.Throttled(), OSError("3"), OSError("4"), OSError("5")])

    async def work(_item: str) -> None:
        raise next(turns)

    shelf = Shelf(work)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        await shop.advance(hours=3)
        assert await shelf.notes() == {"a": "parked"}
        assert len(shelf.worked) == 7


@virtual
async def test_held_items_do_not_block_the_head() -> None:
    async def work(item: str) -> None:
        if item < "500":
            raise ps.Gone("no such app")

    shelf = Shelf(work, mode="zones", parallel=4)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(60), "900")
        await shop.advance(hours=2)
        assert await effects(shelf.app) == ["900"]
        assert len(shelf.worked) == 61


@virtual
async def test_an_item_that_takes_too_long_counts_as_unavailable_and_leaves_no_effect() -> None:
    async def work(item: str) -> None:
        if item == "slow" and shelf.worked.count("slow") == 1:
            await asyncio.sleep(100)

    shelf = Shelf(work, timeout=10)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "slow", "quick")
        await shelf.controller.start()
        await shop.advance(seconds=20)
        assert await effects(shelf.app) == ["quick"]
        await shop.advance(minutes=10)
        assert await effects(shelf.app) == ["quick", "slow"]


POINTS = [point for point in CRASH_POINTS if point.startswith(("commit", "claim", "handler", "unit"))]


@sampled("point", POINTS, every=3)
@virtual
async def test_each_item_reaches_one_after_wherever_the_worker_dies(point: str) -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(0.5)

    shelf = Shelf(work)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(12))
        for nth in (1, 2, 3, 5, 7):
            await shop.crash(at=point, nth=nth)
            await shop.advance(seconds=40)
        await shop.advance(hours=1)
        assert shop.workers_started > 1
        assert await effects(shelf.app) == names(12)
        pieces = await shelf.app.db.column("select distinct pieces from stock")
        assert pieces == [1], "an item was worked on twice"
        assert await shelf.notes() == {}


@sampled("seconds", [1.5, 3.0, 7.0, 31.0, 33.0], every=3)
@virtual
async def test_each_item_reaches_one_after_although_the_worker_is_killed_again_and_again(seconds: float) -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(1)

    shelf = Shelf(work, mode="pilot", parallel=4)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(40))
        for _ in range(10):
            await shop.advance(seconds=seconds)
            await shop.kill()
        await shop.advance(hours=1)
        assert await effects(shelf.app) == names(40)
        assert await shelf.notes() == {}


@pytest.mark.spec("A6-06")
@pytest.mark.parametrize("where", ["pick", "after", "after's commit"])
@virtual
async def test_an_error_of_the_users_outside_work_cannot_stop_the_ticks(where: str) -> None:
    shelf = Shelf()
    if where == "pick":
        shelf.pick_fails = OSError("no such table")
    elif where == "after":
        shelf.after_fails = "not even sql"
    else:
        shelf.after_fails = "insert into no_such_table (what) values (1)"
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(5))
        for _ in range(6):
            await shop.advance(minutes=10)
            assert (await shelf.status())["next_tick_at"] is not None
        assert await effects(shelf.app) == []

        shelf.pick_fails = shelf.after_fails = None
        await shop.advance(minutes=10)
        assert await effects(shelf.app) == names(5)
        assert sorted(shelf.worked) == names(5), "an item whose `after` failed was worked on again"


@pytest.mark.only_on("sqlite")  # the trigger that breaks the save is written in its SQL
@pytest.mark.spec("A6-06")
@MODES
@virtual
async def test_a_tick_whose_state_cannot_be_saved_is_followed_by_another(mode: str) -> None:
    shelf = Shelf(mode=mode)
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        abort = "begin select raise(abort, 'no'); end"
        tamper(shelf.app.database, f"create trigger broken before update on penstock_objects {abort}")
        await shelf.fill(shop, *names(5))
        await shop.advance(minutes=2)
        tamper(shelf.app.database, "drop trigger broken")
        await shop.advance(minutes=10)
        assert await effects(shelf.app) == names(5)
        assert (await shelf.status())["next_tick_at"] is not None


@pytest.mark.spec("G5-14", "F-37")
@MODES
@virtual
async def test_items_that_are_always_refused_do_not_keep_others_from_their_turn(mode: str) -> None:
    async def work(item: str) -> None:
        if item < "006":
            raise ps.Throttled

    shelf = Shelf(work, mode=mode, parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(10))
        await shop.advance(hours=2)

        assert await effects(shelf.app) == names(10)[6:]


@pytest.mark.spec("A6-07")
@MODES
@virtual
async def test_what_is_picked_is_worked_on_in_its_order_and_never_more_than_was_asked_for(mode: str) -> None:
    app = ps.App("shop")
    waiting = [f"item {number}" for number in (5, 3, 9, 1, 7, 2)]
    asked: list[int] = []
    worked: list[str] = []

    @app.controller("enrichment", mode=mode, parallel=1)
    class Enrichment(ps.Controller[str]):
        async def pick(self, limit: int) -> list[str]:
            asked.append(limit)
            return [item for item in waiting if item not in worked][:limit]

        async def work(self, item: str) -> None:
            worked.append(item)

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=30)

    assert worked == waiting
    assert min(asked) > 0


@pytest.mark.spec("A6-27", "F-37")
@MODES
@virtual
async def test_an_item_that_was_refused_is_not_tried_again_in_the_same_tick(mode: str) -> None:
    async def work(item: str) -> None:
        tries.setdefault(shelf.picks, []).append(item)
        raise ps.Throttled(retry_after=1)

    tries: dict[int, list[str]] = {}
    shelf = Shelf(work, mode=mode, parallel=2)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(3))
        await shop.advance(minutes=30)

        assert len(tries) > 1, "they were tried again later"
        for items in tries.values():
            assert len(items) == len(set(items)), "one was asked for twice"


@virtual
async def test_a_failed_item_waits_a_minute_and_twice_as_long_each_time() -> None:
    tries: list[datetime] = []

    async def work(_item: str) -> None:
        tries.append(datetime.fromisoformat(await shelf.app.db.now()))
        raise OSError("poison")

    shelf = Shelf(work)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        await shop.advance(hours=2)

    waited = [(later - earlier).total_seconds() for earlier, later in pairwise(tries)]
    assert len(waited) == 4
    assert all(seconds >= 60 * 2**place - 1 for place, seconds in enumerate(waited)), waited
