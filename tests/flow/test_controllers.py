"""Controllers: they tick by themselves, one bad item harms no other, each item reaches one `after`, and nothing stops them
but an operator."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.control.behind import GRACE_SECONDS
from penstock.control.controllers import WATCH_SECONDS
from penstock.model.errors import BadApp, NoSuchController, PenstockError
from penstock.model.times import to_micros
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.flow.crew import Crew
from tests.flow.shop import EFFECT, effects

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PENDING = "select item from stock where pieces = 0 order by item limit :limit"
SAVE = "update stock set pieces = pieces + 1 where item = :item"
Work = Callable[[str], Awaitable[object]]


class Shelf:
    """A controller over the table `stock`: items with no pieces are pending, and `after` notes each."""

    def __init__(self, work: Work | None = None, *, mode: str = "zones", **settings: Any) -> None:
        self.app = app = ps.App("shop")
        self.worked: list[str] = []
        self.picks = 0
        self.pick_fails: Exception | None = None
        self.after_fails: str | None = None
        shelf = self

        @app.controller("enrichment", mode=mode, **settings)
        class Enrichment(ps.Controller[str]):
            async def pick(self, limit: int) -> list[str]:
                shelf.picks += 1
                if shelf.pick_fails is not None:
                    raise shelf.pick_fails
                return await app.db.column(PENDING, limit=limit)

            async def work(self, item: str) -> None:
                shelf.worked.append(item)
                if work is not None:
                    await work(item)
                app.db.write(SAVE, item=item)

            async def after(self, done: list[str]) -> None:
                for item in done:
                    app.db.write(EFFECT, what=item)
                if shelf.after_fails:
                    app.db.write(shelf.after_fails)

        self.controller = app.controllers["enrichment"]

    async def fill(self, shop: TestApp, *names: str) -> None:
        async with shop.unit():
            for name in names:
                self.app.db.write("insert into stock (item, pieces) values (:item, 0)", item=name)

    async def status(self) -> dict[str, Any]:
        return await self.app.controllers.status("enrichment")

    async def notes(self) -> dict[str, str]:
        rows = await self.app.db.rows("select item, state from penstock_items order by item")
        return {row["item"].strip('"'): row["state"] for row in rows}


def names(count: int) -> list[str]:
    return [f"{number:03}" for number in range(count)]


MODES = pytest.mark.parametrize("mode", ["pilot", "zones"])


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


@virtual
async def test_an_item_that_is_refused_whenever_others_pass_is_parked_and_slows_nobody_down() -> None:
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


@pytest.mark.parametrize("point", POINTS)
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


@pytest.mark.parametrize("seconds", [1.5, 3.0, 7.0, 31.0, 33.0])
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


# -- what an operator does --------------------------------------------------------------------------------


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


@pytest.mark.spec("A6-32")
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


# -- what watches over it ---------------------------------------------------------------------------------


@pytest.mark.spec("A5-11", "G5-15")
@virtual
async def test_a_controller_whose_alarm_was_deleted_by_hand_ticks_again_within_one_pass() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        session = shelf.app._engine.writer.timers._session  # type: ignore[union-attr]
        session.transact(lambda: session.connection.execute("delete from penstock_timers where kind = 'alarm'"))
        await shelf.fill(shop, "a")
        await shop.advance(seconds=WATCH_SECONDS + 35)
        assert await effects(shelf.app) == ["a"]


@virtual
async def test_what_waits_for_one_controller_is_not_mistaken_for_another_whose_name_is_longer() -> None:
    app = ps.App("shop")
    ticks: Counter[str] = Counter()

    def made(name: str) -> None:
        @app.controller(name)
        class Named(ps.Controller[str]):
            async def pick(self, limit: int) -> list[str]:
                ticks[name] += 1
                if name == "apps":
                    await asyncio.sleep(10_000)
                return []

    made("app")
    made("apps")
    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=1)
        session = app._engine.writer.timers._session  # type: ignore[union-attr]
        session.transact(lambda: session.connection.execute("delete from penstock_timers where kind = 'alarm'"))
        before = ticks["app"]
        await shop.advance(seconds=WATCH_SECONDS)
        assert ticks["app"] > before


@virtual
async def test_a_controller_that_cannot_be_looked_after_does_not_end_its_worker() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        session = shelf.app._engine.writer.timers._session  # type: ignore[union-attr]

        def spoil() -> None:
            session.connection.execute("delete from penstock_timers")
            session.connection.execute("""update penstock_objects set state = cast('{"tally":7}' as blob)""")

        session.transact(spoil)
        await shop.restart()
        await shop.advance(minutes=20)
        assert shop.workers_started == 2


@virtual
async def test_a_new_version_waits_a_minute_before_it_works(tmp_path: Path) -> None:
    versions = ["1", "2"]
    shelves: list[Shelf] = []

    def made() -> ps.App:
        shelves.append(Shelf(version=versions.pop(0)))
        return shelves[-1].app

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await crew.advance(seconds=10)
        shelves[0].pick_fails = OSError("not any more")
        app = crew.apps[0]

        async def fill() -> None:
            async with app.unit():
                app.db.write("insert into stock (item, pieces) values ('a', 0)")

        await crew.inside(0, fill)
        await crew.stop(0)
        await crew.man(0)
        await crew.advance(seconds=GRACE_SECONDS - 1)
        assert shelves[1].worked == []
        await crew.advance(seconds=40)
        assert shelves[1].worked == ["a"]


@virtual
async def test_when_the_process_of_a_controller_dies_another_goes_on(tmp_path: Path) -> None:
    shelves: list[Shelf] = []

    def made() -> ps.App:
        shelves.append(Shelf(mode="pilot"))
        return shelves[-1].app

    async with Crew(made, tmp_path, workers=2, start=START) as crew:
        app = crew.apps[1]

        async def fill() -> None:
            async with app.unit():
                for name in names(20):
                    app.db.write("insert into stock (item, pieces) values (:item, 0)", item=name)

        await crew.inside(1, fill)
        await crew.advance(seconds=3)
        crew.kill(0)
        await crew.advance(minutes=20)
        assert await effects(app) == names(20)


@MODES
@virtual
async def test_an_operator_in_another_process_is_heard_in_the_middle_of_a_tick(mode: str, tmp_path: Path) -> None:
    async def work(_item: str) -> None:
        await asyncio.sleep(3)

    shelves: list[Shelf] = []

    def made() -> ps.App:
        shelves.append(Shelf(work, mode=mode, parallel=2))
        return shelves[-1].app

    async with Crew(made, tmp_path, workers=2, start=START) as crew:
        await crew.man(2, visits=True)
        outside = crew.apps[2]

        async def fill() -> None:
            async with outside.unit():
                for name in names(500):
                    outside.db.write("insert into stock (item, pieces) values (:item, 0)", item=name)

        async def operate(verb: str, **wanted: object) -> dict[str, Any]:
            status: Any = await crew.inside(2, lambda: outside.controllers.operate("enrichment", verb, **wanted))
            return dict(status)

        await crew.inside(2, fill)
        assert (await operate("start"))["running"] is True
        await crew.advance(seconds=10)
        worked = sum(len(shelf.worked) for shelf in shelves)
        assert worked > 0

        assert (await operate("stop"))["running"] is False
        worked = sum(len(shelf.worked) for shelf in shelves)
        await crew.advance(minutes=5)
        assert sum(len(shelf.worked) for shelf in shelves) == worked

        assert (await operate("start"))["running"] is True
        await crew.advance(minutes=5)
        assert sum(len(shelf.worked) for shelf in shelves) > worked, "whoever operated it has kept it"
        with pytest.raises(PenstockError):
            await operate("tune", **({"rate": "fast"} if mode == "pilot" else {"batch_size": "abc"}))
        with pytest.raises(AttributeError):
            await operate("explode")


# -- status -----------------------------------------------------------------------------------------------

FLAT = {
    "running": bool,
    "total_dispatched": int,
    "total_completed": int,
    "total_failed": int,
    "completions_per_minute": float,
    "success_rate": float,
    "success_rate_pct": float,
    "current_batch_size": int,
    "current_interval_ms": int,
    "in_cooldown": bool,
    "cooldown_remaining_s": int,
    "projected_per_day": int,
    "projected_per_hour": int,
    "mode": str,
    "rate_per_second": float,
    "ticks": list,
}
RICH = {
    "params": {"batch_size", "interval_ms", "interval_human"},
    "lifetime": {"dispatched", "completed", "failed", "success_rate_pct"},
    "rolling": {"success_rate_pct", "sample_size", "confidence", "completions_per_minute"},
}


@pytest.mark.spec("A6-29", "A6-30", "G5-19")
@MODES
@virtual
async def test_status_has_its_fields_also_before_anything_was_done(mode: str) -> None:
    shelf = Shelf(mode=mode)
    async with TestApp(shelf.app, start=START) as shop:
        for filled in (False, True):
            status = await shelf.status()
            assert {name: type(status[name]) for name in FLAT} == FLAT
            assert {name: set(status[name]) for name in RICH} == RICH
            assert status["success_rate"] == status["rolling"]["success_rate_pct"] == 100.0
            assert status["lifetime"]["success_rate_pct"] == 100.0
            assert all(set(tick) == {"at", "text"} for tick in status["ticks"])
            if not filled:
                assert status["rolling"]["confidence"] == "none"
                await shelf.fill(shop, *names(10))
                await shop.advance(minutes=5)
        assert status["total_completed"] == 10
        assert status["last_tick_at"].startswith("2026-03-01T12:0")
        assert status["last_work_at"] is not None


@pytest.mark.spec("A6-29")
@virtual
async def test_eighteen_a_minute_are_25920_a_day() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=1)
        await shelf.controller.stop()
        at = to_micros(shop.now.replace(second=0, microsecond=0))
        session = shelf.app._engine.writer.timers._session  # type: ignore[union-attr]
        change = (
            f"update penstock_objects set state = json_set(cast(state as text), '$.minutes', json('[[{at},18,0]]'))"
        )
        change = change.replace("json_set(", "cast(json_set(").replace("'))", "')) as blob)")
        session.transact(lambda: session.connection.execute(change))
        status = await shelf.status()
        assert (status["completions_per_minute"], status["projected_per_day"]) == (18.0, 25_920)


@pytest.mark.spec("G5-16", "A6-31")
@virtual
async def test_status_shows_life_during_a_cooldown_and_a_start_ends_it() -> None:
    async def work(_item: str) -> None:
        raise ps.Throttled(retry_after=600)

    shelf = Shelf(work, mode="pilot")
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(50))
        await shop.advance(minutes=4)
        status = await shelf.status()
        assert status["in_cooldown"]
        assert status["seconds_since_last_tick"] < 130
        await shelf.controller.start()
        status = await shelf.status()
        assert (status["in_cooldown"], status["cooldown_remaining_s"]) == (False, 0)


@virtual
async def test_names_that_are_not_there_or_there_twice_are_refused() -> None:
    shelf = Shelf()
    with pytest.raises(NoSuchController, match="enrichment"):
        shelf.app.controllers["enrichmentX"]
    with pytest.raises(BadApp, match="no mode"):
        Shelf(mode="autopilot")
    with pytest.raises(BadApp, match="two controllers"):
        shelf.app.controller("enrichment")(type("Again", (ps.Controller,), {}))
