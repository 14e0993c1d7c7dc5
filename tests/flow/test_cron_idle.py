"""A task without work rests: its look costs no more than itself, and leaves a data point that says so."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.runtime.events import TickWasIdle
from penstock.testing import TestApp, virtual
from tests.flow.crons import EVERY_MINUTE, START, statuses
from tests.flow.shop import EFFECT


@pytest.mark.spec("A4-17")
@virtual
async def test_a_task_without_work_is_idle_and_does_not_run() -> None:
    app = ps.App("shop")
    idle: list[TickWasIdle] = []
    app.events.subscribe(idle.append, to=TickWasIdle)
    ran: list[str] = []

    async def something_to_do() -> bool:
        return await app.db.value("select 1 from effects where what = 'work' limit 1") is not None

    @app.cron(EVERY_MINUTE, reason="orders must not wait", when=something_to_do)
    async def crawl() -> None:
        ran.append("ran")

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=2)
        assert (ran, await statuses(app, "crawl")) == ([], ["idle", "idle"])
        assert [event.task for event in idle] == ["crawl", "crawl"]

        async with shop.unit():
            app.db.write(EFFECT, what="work")
        await shop.advance(minutes=1)
        assert (ran, await statuses(app, "crawl")) == (["ran"], ["idle", "idle", "done"])


@pytest.mark.spec("A4-08", "A4-09")
@virtual
async def test_an_idle_run_leaves_one_data_point_with_four_zeros_and_says_so_in_the_run_log() -> None:
    app = ps.App("shop")
    points = app.metrics("platform_metrics")

    async def something_to_do() -> bool:
        return False

    @app.cron(EVERY_MINUTE, reason="orders must not wait", when=something_to_do)
    async def crawl() -> None: ...

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=1)
        [point] = await points.query(
            "select blob1, blob2, blob3, blob4, double1, double2, double3, double4, double5 from points where index1 = 'shop'"
        )
        assert tuple(point) == ("shop", "cron", "crawl_idle", None, 0.0, 0.0, 0.0, 0.0, None)

        [run] = await app.db.rows("select task, status, phase, rows_read, rows_written from pipeline_log")
        assert tuple(run) == ("crawl", "idle", "crawl_idle", 0, 0)
