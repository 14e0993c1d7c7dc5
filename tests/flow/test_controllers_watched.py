"""What watches over controllers: a lost alarm, a new version, a dead process or an operator elsewhere stops none."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.control.behind import ControllerTicked
from penstock.control.controllers import WATCH_SECONDS
from penstock.model.errors import PenstockError
from penstock.testing import TestApp, virtual
from tests.flow.crew import Crew
from tests.flow.shelf import MODES, START, Shelf, names
from tests.flow.shop import effects
from tests.flow.tampering import tamper


@pytest.mark.spec("A5-11", "G5-15")
@virtual
async def test_a_controller_whose_alarm_was_deleted_by_hand_ticks_again_within_one_pass() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        tamper(shelf.app.database, "delete from penstock_timers where kind = 'alarm'")
        await shelf.fill(shop, "a")
        await shop.advance(minutes=5, seconds=35)
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
        tamper(app.database, "delete from penstock_timers where kind = 'alarm'")
        before = ticks["app"]
        await shop.advance(seconds=WATCH_SECONDS)
        assert ticks["app"] > before


@virtual
async def test_a_controller_that_cannot_be_looked_after_does_not_end_its_worker() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        tamper(shelf.app.database, "delete from penstock_timers")
        tamper(shelf.app.database, "update penstock_objects set state = :state", state=b'{"tally":7}')
        await shop.restart()
        await shop.advance(minutes=20)
        assert shop.workers_started == 2


@pytest.mark.spec("A6-38", "G5-21")
@virtual
async def test_a_new_version_waits_a_minute_and_begins_with_the_first_pace(tmp_path: Path) -> None:
    versions = ["1", "2"]
    shelves: list[Shelf] = []

    def made() -> ps.App:
        shelves.append(Shelf(version=versions.pop(0)))
        return shelves[-1].app

    async def fill() -> None:
        async with shelves[-1].app.unit():
            for name in names(600):
                shelves[-1].app.db.write("insert into stock (item, pieces) values (:item, 0)", item=name)

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await crew.inside(0, fill)
        await crew.advance(minutes=4)
        assert (await crew.inside(0, shelves[0].status))["current_batch_size"] > 5
        worked = len(shelves[0].worked)
        await crew.stop(0)
        await crew.man(0)
        await crew.advance(seconds=59)
        assert shelves[1].worked == []
        await crew.advance(seconds=12)
        status = await crew.inside(0, shelves[1].status)
        assert (status["current_batch_size"], status["current_interval_ms"]) == (5, 30_000)
        assert 0 < len(shelves[1].worked) <= 5
        await crew.advance(hours=1)
        assert worked + len(shelves[1].worked) == 600


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

    async with Crew(made, tmp_path, workers=2, start=START, look_seconds=5) as crew:
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


@pytest.mark.spec("A6-37")
@virtual
async def test_a_controller_that_runs_and_has_no_alarm_gets_one_when_its_worker_starts() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        await shelf.fill(shop, "a")
        tamper(shelf.app.database, "delete from penstock_timers where kind = 'alarm'")
        await shop.restart()
        await shop.advance(seconds=35)  # an interval, and far less than one pass of the watch
        assert await effects(shelf.app) == ["a"]


@pytest.mark.spec("A6-37", "A6-32")
@virtual
async def test_a_controller_that_was_stopped_gets_no_alarm_when_its_worker_starts() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=1)
        await shelf.controller.stop()
        await shelf.fill(shop, "a")
        tamper(shelf.app.database, "delete from penstock_timers where kind = 'alarm'")
        await shop.restart()
        await shop.advance(seconds=2 * WATCH_SECONDS)
        assert shelf.worked == []


@pytest.mark.spec("A6-40")
@virtual
async def test_every_tick_that_worked_or_was_kept_from_it_is_one_line() -> None:
    async def work(item: str) -> None:
        if down:
            raise ps.Unavailable("down")
        if item == "001":
            raise ps.Gone("sold out")

    down = False
    shelf = Shelf(work)
    told: list[ControllerTicked] = []
    shelf.app.events.subscribe(told.append, to=ControllerTicked)
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(minutes=10)
        assert told == [], "it is quiet while there is nothing to do"
        await shelf.fill(shop, *names(5))
        await shop.advance(minutes=3)
        [line] = told
        assert (line.controller, line.succeeded, line.total, line.failed) == ("enrichment", 4, 5, 0)
        assert (line.batch_size, line.interval_ms, line.cooldown_seconds) == (5, 30_000, 0.0)

        down = True
        await shelf.fill(shop, *(f"late {number}" for number in range(20)))
        await shop.advance(minutes=10)
        assert any(line.failed for line in told)
        assert [line for line in told if 0 < line.cooldown_seconds <= 300], "the cooldown is told of with what is left"
