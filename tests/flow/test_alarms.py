"""Alarms: one an object, at least once, late rather than never, retried with growing gaps and parked where it can be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

import penstock as ps
from penstock.model.errors import BadApp, BadMessage
from penstock.objects.namespace import Namespace
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.extent import sampled
from tests.flow.crew import Crew
from tests.flow.shop import EFFECT, effects

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
Ring = Callable[["Clock"], Awaitable[None]]


class Clock(ps.Object):
    app: ClassVar[ps.App]
    rings: ClassVar[list[tuple[str, datetime]]]
    ring: ClassVar[Any]

    fired: int = 0

    async def set(self, seconds: float) -> None:
        self.set_alarm(after=seconds)

    async def set_at(self, iso: str) -> None:
        self.set_alarm(datetime.fromisoformat(iso))

    async def clear(self) -> None:
        self.clear_alarm()

    async def next(self) -> str | None:
        found = await self.get_alarm()
        return None if found is None else found.isoformat()

    async def set_and_fail(self, seconds: float) -> None:
        self.set_alarm(after=seconds)
        raise OSError("no")

    async def set_and_look(self, seconds: float) -> str | None:
        self.set_alarm(after=seconds)
        return await self.next()

    async def badly(self, method: str) -> None:
        if method == "both":
            self.set_alarm(START, after=1)
        elif method == "neither":
            self.set_alarm()

    async def alarm(self) -> None:
        self.rings.append((self.name, await _now(self.app)))
        self.fired += 1
        self.app.db.write(EFFECT, what=self.name)
        if self.ring is not None:
            await self.ring(self)


async def _now(app: ps.App) -> datetime:
    engine = await app._opened()
    return datetime.fromtimestamp(engine.clock.now() / 1_000_000, UTC)


def clocks_app(ring: Ring | None = None) -> tuple[ps.App, Namespace[Clock], list[tuple[str, datetime]]]:
    app = ps.App("shop")
    rings: list[tuple[str, datetime]] = []
    kept = {"app": app, "rings": rings, "ring": None if ring is None else staticmethod(ring)}
    return app, app.object(type("Clock", (Clock,), kept)), rings


def seconds_of(rings: list[tuple[str, datetime]]) -> list[float]:
    return [round((at - START).total_seconds(), 3) for _, at in rings]


@pytest.mark.spec("A5-07")
@virtual
async def test_an_alarm_that_is_set_twice_fires_once_at_the_second_time() -> None:
    app, clocks, rings = clocks_app()
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(10)
        await clocks["a"].set(20)
        await clocks["b"].set(20)
        await clocks["b"].set(5)
        assert await clocks["a"].next() == (START + timedelta(seconds=20)).isoformat()
        await shop.advance(minutes=1)
        assert sorted(rings) == [("a", START + timedelta(seconds=20)), ("b", START + timedelta(seconds=5))]
        assert await clocks["a"].next() is None


@pytest.mark.spec("A5-07")
@virtual
async def test_an_alarm_that_is_cleared_does_not_fire() -> None:
    app, clocks, rings = clocks_app()
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(10)
        await clocks["a"].clear()
        assert await clocks["a"].next() is None
        await shop.advance(minutes=1)
        assert rings == []


@virtual
async def test_an_alarm_belongs_to_its_event_and_goes_with_it() -> None:
    app, clocks, rings = clocks_app()
    async with TestApp(app, start=START) as shop:
        with pytest.raises(OSError, match="no"):
            await clocks["a"].set_and_fail(10)
        assert await clocks["a"].set_and_look(30) == (START + timedelta(seconds=30)).isoformat()
        await shop.advance(minutes=1)
        assert seconds_of(rings) == [30]
        for how in ("both", "neither"):
            with pytest.raises(BadMessage):
                await clocks["a"].badly(how)


@pytest.mark.spec("A5-08")
@virtual
async def test_while_its_handler_runs_there_is_no_alarm_unless_it_set_one() -> None:
    seen: list[object] = []

    async def ring(clock: Clock) -> None:
        seen.append(await clock.get_alarm())
        if len(seen) < 3:
            clock.set_alarm(after=60)
            seen.append(await clock.get_alarm())

    app, clocks, rings = clocks_app(ring)
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(10)
        await shop.advance(minutes=5)
        assert seen == [None, START + timedelta(seconds=70), None]
        assert seconds_of(rings) == [10, 70]


@pytest.mark.spec("A5-09")
@pytest.mark.fault("F34")
@virtual
async def test_an_alarm_that_came_due_while_nothing_ran_fires_once_at_the_start(tmp_path: Path) -> None:
    every: list[tuple[str, datetime]] = []

    def made() -> ps.App:
        app, clocks, _ = clocks_app()
        app.clocks = clocks  # type: ignore[attr-defined]
        clocks.cls.rings = every
        return app

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        app: Any = crew.apps[0]
        await crew.inside(0, lambda: app.clocks["a"].set(60))
        await crew.stop(0)
        await crew.advance(days=2)
        await crew.man(0)
        await crew.advance(seconds=1)
        assert [name for name, _ in every] == ["a"]
        await crew.advance(hours=1)
        assert len(every) == 1


@pytest.mark.fault("F34")
@virtual
async def test_an_alarm_in_the_past_fires_at_once() -> None:
    app, clocks, rings = clocks_app()
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set_at("2020-01-01T00:00:00+00:00")
        await clocks["b"].set(-5)
        await shop.advance(seconds=1)
        assert seconds_of(rings) == [0, 0]


@pytest.mark.spec("A5-10", "G5-15")
@pytest.mark.fault("F34")
@virtual
async def test_an_alarm_that_always_fails_runs_seven_times_with_growing_gaps_and_is_parked() -> None:
    async def ring(_clock: Clock) -> None:
        if failing:
            raise OSError("always")

    failing = True
    app, clocks, rings = clocks_app(ring)
    alerts: list[ps.Alert] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        alerts.append(alert)

    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(0)
        await shop.advance(minutes=10)

        times = seconds_of(rings)
        assert [round(after - before) for before, after in pairwise(times)] == [2, 4, 8, 16, 32, 64]
        assert await effects(app) == []
        assert await app.db.value("select alarm_lost from penstock_objects where name = 'a'") == 1
        assert "alarm.lost" in [alert.kind for alert in alerts]
        assert [alert.facts["object"] for alert in alerts if alert.kind == "alarm.lost"] == ["Clock/a"]
        assert (await shop.counts(app.queues["object.Clock"])).dead == 1

        failing = False
        await clocks["a"].set(5)
        assert await app.db.value("select alarm_lost from penstock_objects where name = 'a'") == 0
        await shop.advance(minutes=1)
        assert await effects(app) == ["a"]


@pytest.mark.fault("F34")
@virtual
async def test_an_alarm_that_fails_and_then_succeeds_has_one_effect() -> None:
    async def ring(_clock: Clock) -> None:
        if len(rings) < 4:
            raise OSError("not yet")

    app, clocks, rings = clocks_app(ring)
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(0)
        await shop.advance(minutes=5)
        assert (len(rings), await effects(app)) == (4, ["a"])


@pytest.mark.fault("F34")
@virtual
async def test_a_chain_of_alarms_set_to_now_inside_the_handler_never_stalls() -> None:
    async def ring(clock: Clock) -> None:
        if clock.fired < 50:
            clock.set_alarm(after=0)

    app, clocks, rings = clocks_app(ring)
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(10)
        await shop.advance(seconds=11)
        assert len(rings) == 50
        assert len(await effects(app)) == 50


@pytest.mark.spec("A5-09")
@pytest.mark.fault("F34")
@sampled("point", [point for point in CRASH_POINTS if point.startswith(("commit", "unit", "handler"))], every=3)
@pytest.mark.parametrize("nth", [1, 2, 3])
@virtual
async def test_a_chain_of_alarms_goes_on_although_the_worker_dies(point: str, nth: int) -> None:
    async def ring(clock: Clock) -> None:
        await asyncio.sleep(1)
        if clock.fired < 5:
            clock.set_alarm(after=10)

    app, clocks, _ = clocks_app(ring)
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(10)
        await shop.crash(at=point, nth=nth)
        await shop.advance(minutes=3)
        assert shop.workers_started == 2
        assert await effects(app) == ["a"] * 5


@pytest.mark.fault("F34")
@virtual
async def test_an_alarm_whose_worker_is_killed_in_the_handler_runs_again_at_once() -> None:
    async def ring(_clock: Clock) -> None:
        await asyncio.sleep(30)

    app, clocks, rings = clocks_app(ring)
    async with TestApp(app, start=START) as shop:
        await clocks["a"].set(10)
        await shop.advance(seconds=20)
        await shop.kill()
        await shop.advance(minutes=1)
        assert seconds_of(rings) == [10, 20]
        assert await effects(app) == ["a"]


@pytest.mark.spec("A5-17")
@virtual
async def test_a_thousand_objects_with_alarms_in_one_second_all_fire_once() -> None:
    app, clocks, rings = clocks_app()
    async with TestApp(app, start=START) as shop:
        for number in range(1_000):
            await clocks[str(number)].set(10)
        await shop.advance(seconds=15)
        assert len({name for name, _ in rings}) == len(rings) == 1_000
        assert len(await effects(app)) == 1_000


@virtual
async def test_an_object_without_a_handler_for_its_alarm_says_so() -> None:
    class Mute(ps.Object):
        async def set(self) -> None:
            self.set_alarm(after=1)

    app = ps.App("shop")
    mutes = app.object(Mute)
    async with TestApp(app, start=START) as shop:
        await mutes["a"].set()
        await shop.advance(minutes=5)
        [letter] = await app.dead.list()
        assert letter.error_class == BadApp.__name__
        assert "async def alarm" in (letter.error_message or "")


@virtual
async def test_alarms_fire_once_with_two_workers(tmp_path: Path) -> None:
    every: list[tuple[str, datetime]] = []

    def made() -> ps.App:
        app, clocks, _ = clocks_app()
        app.clocks = clocks  # type: ignore[attr-defined]
        clocks.cls.rings = every
        return app

    async with Crew(made, tmp_path, workers=2, start=START) as crew:
        for number in range(20):
            app: Any = crew.apps[number % 2]

            async def set_it(app: Any = app, name: str = str(number)) -> None:
                await app.clocks[name].set(10)

            await crew.inside(number % 2, set_it)
        await crew.advance(seconds=30)
        assert sorted(await effects(crew.apps[0])) == sorted(str(number) for number in range(20))
        assert len(every) == 20
