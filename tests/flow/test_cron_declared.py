"""What is declared is what fires: a task with its reason, changed, paused, triggered, or refused where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.config import Config
from penstock.model.errors import BadApp, NoSuchSchedule, PenstockError
from penstock.testing import TestApp, virtual
from tests.flow.crew import Crew
from tests.flow.crons import EVERY_MINUTE, START, always, counting_app
from tests.flow.shop import effects


@virtual
async def test_a_task_is_triggered_by_hand_once_and_its_schedule_stays() -> None:
    app = counting_app("0 * * * *")
    async with TestApp(app, start=START) as shop:
        await app.crons.trigger("crawl")
        await shop.advance(seconds=1)
        assert await effects(app) == ["01 12:00"]
        await shop.advance(hours=1)
        assert await effects(app) == ["01 12:00", "01 13:00"]
        with pytest.raises(NoSuchSchedule, match="crawl"):
            await app.crons.trigger("crowl")


@virtual
async def test_a_paused_task_rests_and_what_it_missed_is_not_made_up_for() -> None:
    app = counting_app()
    async with TestApp(app, start=START) as shop:
        await app.crons.pause("crawl")
        await shop.advance(minutes=10)
        assert await effects(app) == []
        assert [state.paused for state in await app.crons.list()] == [True]

        await app.crons.resume("crawl")
        await shop.advance(minutes=1)
        assert await effects(app) == ["01 12:11"]
        for verb in (app.crons.pause, app.crons.resume):
            with pytest.raises(NoSuchSchedule):
                await verb("nobody")


@virtual
async def test_a_pause_outlives_a_restart() -> None:
    app = counting_app()
    async with TestApp(app, start=START) as shop:
        await app.crons.pause("crawl")
        await shop.restart()
        await shop.advance(minutes=3)
        assert await effects(app) == []


@virtual
async def test_a_changed_expression_takes_over_and_the_old_one_fires_no_more(tmp_path: Path) -> None:
    expressions = ["0 * * * *", "30 * * * *"]

    def made() -> ps.App:
        return counting_app(expressions.pop(0))

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
        await crew.advance(minutes=10)
        await crew.stop(0)
        await crew.man(0)
        await crew.advance(hours=2)
        assert await effects(crew.apps[0]) == ["01 12:30", "01 13:30"]


@pytest.mark.spec("A4-15", "F-01")
def test_a_frequent_cron_needs_a_condition_and_no_cron_needs_a_reason() -> None:
    app = ps.App("shop")

    async def task() -> None: ...

    with pytest.raises(BadApp, match="when="):
        app.cron(EVERY_MINUTE, reason="orders must not wait")(task)
    app.cron(EVERY_MINUTE, reason="orders must not wait", when=always)(task)
    app.cron("0 * * * *", name="hourly")(task)


@pytest.mark.spec("A4-02", "A15-13")
def test_the_cloudflare_profile_has_three_crons_and_refuses_a_fourth_by_name() -> None:
    app = ps.App("shop", config=Config(profile="cloudflare"))

    async def task() -> None: ...

    for number in range(3):
        app.cron("0 * * * *", reason="hourly", name=f"task{number}")(task)
    with pytest.raises(BadApp, match="one_more"):
        app.cron("0 * * * *", reason="hourly", name="one_more")(task)


def test_what_cannot_be_a_task_is_refused_where_it_is_declared() -> None:
    app = ps.App("shop")

    async def task() -> None: ...

    with pytest.raises(PenstockError, match="61"):
        app.cron("61 * * * *", reason="never")(task)
    with pytest.raises(BadApp, match="async"):
        app.cron("0 * * * *", reason="hourly")(lambda: None)  # type: ignore[type-var]
    app.cron("0 * * * *", reason="hourly")(task)
    with pytest.raises(BadApp, match="two cron tasks"):
        app.cron("0 * * * *", reason="hourly")(task)


@pytest.mark.spec("A4-03", "G2-41")
@virtual
async def test_a_schedule_above_no_task_is_named_before_anything_runs() -> None:
    app = ps.App("shop")
    hourly = app.cron("0 * * * *", reason="hourly")

    @hourly
    async def crawl() -> None: ...

    app.cron("0 6 * * *", reason="nothing follows")
    with pytest.raises(BadApp, match=r"'0 6 \* \* \*'.*decorates no function"):
        async with TestApp(app, start=START):
            pass
