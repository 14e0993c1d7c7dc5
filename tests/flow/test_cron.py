"""Cron tasks: each due time runs once, whoever looks and whoever dies."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

import penstock as ps
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.extent import EVERYTHING, sampled
from tests.flow.crew import Crew
from tests.flow.crons import START, counting_app, statuses
from tests.flow.shop import EFFECT, effects


@pytest.mark.spec("A4-02")
@virtual
async def test_a_task_runs_at_each_due_time_and_knows_which_one_it_is() -> None:
    app = ps.App("shop")
    seen: list[tuple[datetime, str, int]] = []

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def crawl(tick: ps.Tick) -> None:
        seen.append((tick.scheduled_at, tick.expression, tick.missed))

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=10)

    base = START.replace(second=0)
    assert seen == [(base + timedelta(minutes=5), "*/5 * * * *", 0), (base + timedelta(minutes=10), "*/5 * * * *", 0)]


@pytest.mark.spec("A4-12")
@virtual
async def test_the_run_log_counts_the_rows_of_each_task_although_they_end_in_one_commit() -> None:
    app = ps.App("shop")
    rows = {"alpha": 1, "beta": 4, "gamma": 2}

    def declare(name: str, count: int) -> None:
        @app.cron("*/5 * * * *", name=name, reason="charts move slowly")
        async def task() -> None:
            for _ in range(count):
                app.db.write(EFFECT, what=name)

    for name, count in rows.items():
        declare(name, count)
    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=5)

        found = await app.db.rows("select task, rows_written from pipeline_log order by task")
        assert {row["task"]: row["rows_written"] for row in found} == rows


# Where a process ends by itself, or other processes come in: see the tests of those.
ELSEWHERE = {
    *("send.after_commit", "pull.after_commit", "drain.begun", "return.before", "return.after"),
    *("step.before", "step.after", "step.saved"),
}


@pytest.mark.spec("A2-09")
@pytest.mark.fault("F05")
@pytest.mark.parametrize("nth", [1, 2, 3])
@sampled("point", [point for point in CRASH_POINTS if point not in ELSEWHERE], every=3)
@virtual
async def test_each_due_time_has_one_effect_although_the_worker_dies(point: str, nth: int) -> None:
    app = counting_app(seconds=5.0)
    async with TestApp(app, start=START) as shop:
        await shop.crash(at=point, nth=nth)
        await shop.advance(minutes=5)

        assert shop.workers_started == 2, "nobody died"
        assert await effects(app) == [f"01 12:0{minute}" for minute in (1, 2, 3, 4, 5)]
        assert await statuses(app, "crawl") == ["done"] * 5


@pytest.mark.fault("F05")
@virtual
async def test_hundreds_of_due_times_have_one_message_each_although_workers_die_around_them() -> None:
    app = counting_app()
    turns = 20 if EVERYTHING else 8
    async with TestApp(app, start=START) as shop:
        for turn in range(turns):
            await shop.crash(at=("commit.fired", "commit.before", "commit.after", "commit.claimed")[turn % 4])
            await shop.advance(minutes=50)
        assert shop.workers_started == 1 + turns
        assert (await shop.counts(app.queues["cron.crawl"])).sent == 50 * turns
        assert len(set(await effects(app))) == len(await effects(app)) == 50 * turns


@pytest.mark.fault("F12")
@virtual
async def test_of_three_workers_on_one_file_one_fires_each_due_time(tmp_path: Path) -> None:
    async with Crew(counting_app, tmp_path, workers=3, start=START) as crew:
        await crew.advance(minutes=5)
        crew.pause(0)
        await crew.advance(minutes=2)
        crew.resume(0)
        await crew.advance(minutes=3)

        app = crew.apps[1]
        assert await effects(app) == [f"01 12:{minute:02}" for minute in range(1, 11)]
        assert await statuses(app, "crawl") == ["done"] * 10


@pytest.mark.fault("F05", "F12")
@pytest.mark.parametrize("point", ["commit.fired", "commit.before", "commit.after", "handler.after"])
@virtual
async def test_when_one_of_two_workers_dies_the_other_runs_its_tick_once(point: str, tmp_path: Path) -> None:
    async with Crew(counting_app, tmp_path, workers=2, start=START) as crew:
        crew.crash(0, at=point)
        crew.crash(1, at=point, nth=1_000)
        await crew.advance(minutes=4)

        assert await effects(crew.apps[1]) == [f"01 12:0{minute}" for minute in range(1, 5)]


@virtual
async def test_a_clock_that_once_showed_next_year_does_not_keep_a_task_waiting_until_then(tmp_path: Path) -> None:
    async with Crew(counting_app, tmp_path, workers=1, start=START + timedelta(days=365)) as crew:
        await crew.advance(minutes=2)
        assert len(await effects(crew.apps[0])) == 2
        await crew.stop(0)
        crew.jump(days=-365)
        await crew.man(0)
        await crew.advance(minutes=5)
        assert len(await effects(crew.apps[0])) >= 5
