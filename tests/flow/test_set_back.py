"""A process that starts after the wall clock was set back goes on from the time that was: nothing waits for it twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.runtime.events import ClockJumped, ClockWasAhead
from penstock.testing import virtual
from tests.flow.crew import Crew
from tests.flow.shop import EFFECT, Listing, effects

START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
HOUR, YEAR = 1 / 24, 365.0  # in days


def made() -> ps.App:
    """Everything that waits: a delay, a failure, an alarm, a rate."""
    app = ps.App("shop")
    listings: ps.Queue[Any] = app.queue("listings", retries=5)
    slow: ps.Queue[Any] = app.queue("slow", rate=0.1)
    failed: list[str] = []

    class Clock(ps.Object):
        async def set(self, seconds: float) -> None:
            self.set_alarm(after=seconds)

        async def alarm(self) -> None:
            app.db.write(EFFECT, what=f"alarm {self.name}")

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        if listing.name.startswith("fails") and listing.name not in failed:
            failed.append(listing.name)
            raise OSError("once")
        app.db.write(EFFECT, what=listing.name)

    @slow.handler(Listing)
    async def crawl(listing: Listing) -> None:
        app.db.write(EFFECT, what=listing.name)

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def tick(tick: ps.Tick) -> None:
        app.db.write(EFFECT, what=f"cron {tick.scheduled_at:%H:%M}")

    app.clocks = app.object(Clock)  # type: ignore[attr-defined]
    app.told = []  # type: ignore[attr-defined]
    app.events.subscribe(app.told.append, to=ClockJumped)  # type: ignore[attr-defined]
    app.events.subscribe(app.told.append, to=ClockWasAhead)  # type: ignore[attr-defined]
    return app


async def fill(crew: Crew) -> None:
    """All of it is due within two minutes."""
    app: Any = crew.apps[0]

    async def send() -> None:
        async with app.unit():
            app.queues["listings"].send(Listing(name="delayed"), delay=60)
            app.queues["listings"].send(Listing(name="next day"), delay=86_400)
            app.queues["listings"].send(Listing(name="fails"))
            for number in range(3):
                app.queues["slow"].send(Listing(name=f"slow {number}"))
        await app.clocks["a"].set(60)

    await crew.inside(0, send)
    await crew.advance(seconds=1)


def now_of(crew: Crew, post: int) -> float:
    engine = crew.apps[post]._life.engine
    assert engine is not None
    return engine.clock.now() / 1_000_000


EVERYTHING = ["alarm a", "delayed", "fails", "slow 0", "slow 1", "slow 2"]


@pytest.mark.fault("F09")
@pytest.mark.parametrize("how", ["stop", "kill"])
@virtual
async def test_after_an_hour_back_and_a_restart_what_was_due_runs_when_it_would_have(how: str, tmp_path: Path) -> None:
    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await fill(crew)
        await crew.advance(seconds=11)  # the meter, and with it the time, has been saved since
        before = now_of(crew, 0)
        if how == "stop":
            await crew.stop(0)
        else:
            crew.kill(0)
        crew.jump(days=-HOUR)
        await crew.man(0)

        assert now_of(crew, 0) == pytest.approx(before, abs=12)
        await crew.advance(minutes=2)
        assert [what for what in await effects(crew.apps[0]) if not what.startswith("cron")] == EVERYTHING
        told: Any = crew.apps[0]
        assert [round(each.by_seconds) for each in told.told] == [pytest.approx(-3_600, abs=12)]


@pytest.mark.only_on(
    "sqlite"
)  # five hours with a look a second: minutes on PostgreSQL, where a clock is the same clock
@pytest.mark.slow
@pytest.mark.fault("F09")
@virtual
async def test_the_clock_gives_the_hour_back_over_four_and_no_due_time_fires_twice(tmp_path: Path) -> None:
    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await crew.advance(minutes=10)
        for _ in range(3):
            await crew.stop(0)
            crew.jump(days=-HOUR / 3)
            await crew.man(0)
        await crew.advance(hours=5)

        crons = [what for what in await effects(crew.apps[0]) if what.startswith("cron")]
        assert len(set(crons)) == len(crons)
        assert now_of(crew, 0) == pytest.approx((START + timedelta(hours=4, minutes=10)).timestamp(), abs=1)
        assert crons[-1] == "cron 16:10"


@pytest.mark.fault("F09")
@virtual
async def test_who_starts_beside_others_shares_their_time(tmp_path: Path) -> None:
    async with Crew(made, tmp_path, workers=2, start=START) as crew:
        await fill(crew)
        await crew.advance(seconds=11)
        crew.jump(days=-HOUR)
        await crew.advance(seconds=1)
        crew.kill(1)
        await crew.man(1)
        assert now_of(crew, 1) == pytest.approx(now_of(crew, 0), abs=12)


@pytest.mark.fault("F09")
@virtual
async def test_after_a_year_back_an_operator_is_alerted_and_waiting_messages_are_due_after_an_hour(
    tmp_path: Path,
) -> None:
    async with Crew(made, tmp_path, workers=1, start=START + timedelta(days=YEAR), look_seconds=10) as crew:
        await fill(crew)
        await crew.stop(0)
        crew.jump(days=-YEAR)
        await crew.man(0)
        told: Any = crew.apps[0]
        assert [round(each.by_seconds / 86_400) for each in told.told] == [YEAR]
        assert now_of(crew, 0) == pytest.approx(START.timestamp() + 2, abs=5)

        await crew.advance(minutes=59)
        assert "delayed" not in await effects(crew.apps[0])
        await crew.advance(minutes=4)
        assert [what for what in await effects(crew.apps[0]) if not what.startswith("cron")] == EVERYTHING

        await crew.stop(0)
        await crew.man(0)
        assert crew.apps[0].told == [], "told again"  # type: ignore[attr-defined]
        await crew.advance(hours=20)
        assert "next day" not in await effects(crew.apps[0])
        await crew.advance(hours=6)
        assert "next day" in await effects(crew.apps[0])


@pytest.mark.fault("F09")
@virtual
async def test_a_clock_that_is_set_right_soon_after_the_start_moves_nothing(tmp_path: Path) -> None:
    """As on a machine that has no clock of its own and asks for the time once it is up."""
    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await fill(crew)
        await crew.stop(0)
        crew.jump(days=-YEAR)
        await crew.man(0)
        await crew.advance(seconds=20)
        crew.jump(days=YEAR)
        await crew.advance(hours=3)
        found = await effects(crew.apps[0])
        assert set(EVERYTHING) <= set(found)
        assert "next day" not in found
