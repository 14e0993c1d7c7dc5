"""Runs of one task never overlap unless they may, and what passed while nothing ran is made up for as asked."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

import penstock as ps
from penstock.model.schedule import CatchUp
from penstock.testing import TestApp, virtual
from tests.flow.crew import Crew
from tests.flow.crons import EVERY_MINUTE, START, always, counting_app, statuses
from tests.flow.shop import effects


@pytest.mark.spec("A4-05")
@virtual
async def test_a_run_that_takes_longer_than_its_pace_is_never_overlapped_and_the_skip_is_logged() -> None:
    app = ps.App("shop")
    running = most = 0

    @app.cron(EVERY_MINUTE, reason="charts move", when=always)
    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(90)
        running -= 1

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=3, seconds=10)

        assert most == 1
        assert await statuses(app, "slow") == ["done", "skipped", "due"]
        [state] = await app.crons.list()
        assert state.next_at == int(START.replace(minute=4, second=0).timestamp() * 1_000_000)


@pytest.mark.spec("A4-05")
@virtual
async def test_a_skip_is_logged_although_nothing_else_happens_at_that_moment() -> None:
    app = counting_app(seconds=200)
    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=3)
        await shop.kill()
        await shop.advance(seconds=1)
        assert await statuses(app, "crawl") == ["due", "skipped", "skipped"]


@virtual
async def test_runs_that_queue_follow_one_another() -> None:
    app = counting_app(seconds=90, overlap="queue")
    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=3, seconds=31)
        assert await effects(app) == ["01 12:01", "01 12:02"][:2][: len(await effects(app))]
        await shop.advance(minutes=2)
        assert (await effects(app))[:3] == ["01 12:01", "01 12:02", "01 12:03"]


@pytest.mark.spec("A4-05")
@pytest.mark.parametrize(
    "how",
    [
        "queue",
        "catch up",
        "trigger",
    ],
)
@virtual
async def test_two_workers_do_not_run_one_task_beside_itself(how: str, tmp_path: Path) -> None:
    running = most = ended = 0

    def made() -> ps.App:
        app = ps.App("shop")

        async def slow() -> None:
            nonlocal running, most, ended
            running += 1
            most = max(most, running)
            await asyncio.sleep(90)
            running -= 1
            ended += 1

        if how == "queue":
            app.cron(EVERY_MINUTE, reason="charts move", when=always, overlap="queue")(slow)
        elif how == "catch up":
            app.cron("0 * * * *", reason="hourly", catch_up="all")(slow)
        else:
            app.cron("*/5 * * * *", reason="charts move slowly")(slow)
        return app

    async with Crew(made, tmp_path, workers=2, start=START) as crew:
        if how == "catch up":
            await crew.stop(0)
            await crew.stop(1)
            await crew.advance(hours=4)
            await crew.man(0)
            await crew.man(1)
        elif how == "trigger":
            await crew.inside(0, lambda: crew.apps[0].crons.trigger("slow"))
            await crew.inside(0, lambda: crew.apps[0].crons.trigger("slow"))
        await crew.advance(minutes=6, seconds=10)

        assert (most, ended >= 2) == (1, True)


@virtual
async def test_runs_that_may_overlap_do() -> None:
    app = counting_app(seconds=170, overlap="allow")
    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=3)
        assert (await shop.counts(app.queues["cron.crawl"])).leased == 3


@pytest.mark.spec("A4-06")
@pytest.mark.fault("F11")
@pytest.mark.parametrize("catch_up, made_up_for", [("once", 1), ("skip", 0), ("all", 72)])
@virtual
async def test_after_three_days_down_as_much_is_made_up_for_as_was_asked(
    catch_up: CatchUp, made_up_for: int, tmp_path: Path
) -> None:
    def made() -> ps.App:
        return counting_app("0 * * * *", catch_up=catch_up)

    async with Crew(made, tmp_path, workers=1, start=START, look_seconds=10) as crew:
        await crew.advance(hours=1)
        assert len(await effects(crew.apps[0])) == 1
        await crew.stop(0)
        await crew.advance(days=3, minutes=5)
        await crew.man(0)
        await crew.advance(minutes=20)

        ran = await effects(crew.apps[0])
        assert len(ran) == 1 + made_up_for
        if made_up_for:
            assert ran[-1] == "04 13:00"
        await crew.advance(minutes=45)
        assert len(await effects(crew.apps[0])) == 2 + made_up_for


@pytest.mark.spec("A4-06")
@virtual
async def test_a_run_that_makes_up_for_others_knows_how_many(tmp_path: Path) -> None:
    missed: list[int] = []

    def made() -> ps.App:
        app = ps.App("shop")

        @app.cron("0 * * * *", reason="hourly")
        async def crawl(tick: ps.Tick) -> None:
            missed.append(tick.missed)

        return app

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await crew.advance(hours=1)
        await crew.stop(0)
        await crew.advance(hours=3)
        await crew.man(0)
        await crew.advance(minutes=1)
        assert missed == [0, 2]


@pytest.mark.fault("F11")
@virtual
async def test_runs_that_are_made_up_for_do_not_come_all_at_once_nor_beside_each_other(tmp_path: Path) -> None:
    began: list[float] = []

    def made() -> ps.App:
        app = ps.App("shop")

        @app.cron("0 * * * *", reason="hourly", catch_up="all")
        async def crawl() -> None:
            began.append(asyncio.get_running_loop().time())

        return app

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await crew.advance(seconds=1)
        await crew.stop(0)
        await crew.advance(hours=10)
        await crew.man(0)
        await crew.advance(minutes=1)
        assert len(began) == 10
        assert all(after - before >= 0.999 for before, after in pairwise(began))
