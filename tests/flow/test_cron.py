"""Cron tasks: each due time runs once, whoever looks and whoever dies; what fails, rests or costs too much harms no other."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import penstock as ps
from penstock.config import Config
from penstock.model.errors import BadApp, NoSuchSchedule, PenstockError
from penstock.model.schedule import CatchUp
from penstock.runtime.events import CeilingReached, TickFailed, TickWasIdle
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.flow.crew import Crew
from tests.flow.shop import EFFECT, effects

START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
EVERY_MINUTE = "* * * * *"
RUNS = "select task, status, phase, missed, error, rows_written from pipeline_log where task = :task order by created_at, id"


async def busy() -> bool:
    """There is always something to do."""
    return False


async def statuses(app: ps.App, task: str) -> list[str]:
    return [row["status"] for row in await app.db.rows(RUNS, task=task)]


def counting_app(expression: str = EVERY_MINUTE, *, seconds: float = 0.0, **settings: object) -> ps.App:
    """Its task `crawl` notes each due time once it has worked for so long."""
    app = ps.App("shop")

    @app.cron(expression, why="charts move", unless=busy, **settings)  # type: ignore[arg-type]
    async def crawl(tick: ps.Tick) -> None:
        await asyncio.sleep(seconds)
        app.db.write(EFFECT, what=tick.scheduled_at.strftime("%d %H:%M"))

    return app


@pytest.mark.spec("A4-02")
@virtual
async def test_a_task_runs_at_each_due_time_and_is_told_which_one_it_is() -> None:
    app = ps.App("shop")
    seen: list[tuple[datetime, str, int]] = []

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def crawl(tick: ps.Tick) -> None:
        seen.append((tick.scheduled_at, tick.expression, tick.missed))

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=10)

    base = START.replace(second=0)
    assert seen == [(base + timedelta(minutes=5), "*/5 * * * *", 0), (base + timedelta(minutes=10), "*/5 * * * *", 0)]


# Where a process ends by itself, or other processes come in: see the tests of those.
ELSEWHERE = {"send.after_commit", "pull.after_commit", "drain.begun", "return.before", "return.after"}


@pytest.mark.spec("A2-09")
@pytest.mark.fault("F05")
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", [point for point in CRASH_POINTS if point not in ELSEWHERE])
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
async def test_a_thousand_due_times_have_one_message_each_although_workers_die_around_them() -> None:
    app = counting_app()
    async with TestApp(app, start=START) as shop:
        for turn in range(20):
            await shop.crash(at=("commit.fired", "commit.before", "commit.after", "commit.claimed")[turn % 4])
            await shop.advance(minutes=50)
        assert shop.workers_started == 21
        assert (await shop.counts(app.queues["cron.crawl"])).sent == 1_000
        assert len(set(await effects(app))) == len(await effects(app)) == 1_000


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


@pytest.mark.spec("A4-05")
@virtual
async def test_a_run_that_takes_longer_than_its_pace_is_never_overlapped_and_the_skip_is_logged() -> None:
    app = ps.App("shop")
    running = most = 0

    @app.cron(EVERY_MINUTE, why="charts move", unless=busy)
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
        [state] = await app.crons.listed()
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
            app.cron(EVERY_MINUTE, why="charts move", unless=busy, overlap="queue")(slow)
        elif how == "catch up":
            app.cron("0 * * * *", why="hourly", catch_up="all")(slow)
        else:
            app.cron("*/5 * * * *", why="charts move slowly")(slow)
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

    async with Crew(made, tmp_path, workers=1, start=START) as crew:
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
async def test_a_run_that_makes_up_for_others_is_told_how_many(tmp_path: Path) -> None:
    missed: list[int] = []

    def made() -> ps.App:
        app = ps.App("shop")

        @app.cron("0 * * * *", why="hourly")
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

        @app.cron("0 * * * *", why="hourly", catch_up="all")
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


@pytest.mark.spec("A4-07", "A4-17")
@virtual
async def test_a_task_that_fails_is_logged_leaves_no_effect_and_runs_again_at_the_next_fire(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = ps.App("shop")
    failed: list[TickFailed] = []
    app.events.subscribe(failed.append, to=TickFailed)

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def bad(tick: ps.Tick) -> None:
        app.db.write(EFFECT, what="of a run that failed")
        tick.phase = "fetching"
        raise OSError("the store is away")

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def good(tick: ps.Tick) -> None:
        app.db.write(EFFECT, what=f"good {tick.scheduled_at:%H:%M}")

    async with TestApp(app, start=START) as shop:
        with caplog.at_level(logging.ERROR, "penstock.cron"):
            await shop.advance(minutes=10)

        rows = await app.db.rows(RUNS, task="bad")
        assert [(row["status"], row["phase"], row["error"]) for row in rows] == [
            ("failed", "fetching", "OSError: the store is away")
        ] * 2
        assert await effects(app) == ["good 12:05", "good 12:10"]
        assert [event.task for event in failed] == ["bad", "bad"]
        assert len([record for record in caplog.records if record.name == "penstock.cron"]) == 2
        assert (await shop.counts(app.queues["cron.bad"])).dead == 0


@pytest.mark.spec("A4-07", "A4-17")
@pytest.mark.parametrize("how", ["probe", "commit", "wall", "death", "cancelled"])
@virtual
async def test_however_a_run_fails_the_log_says_so_and_the_next_fire_comes(how: str) -> None:
    app = ps.App("shop")
    runs = 0

    async def probe() -> bool:
        if how == "probe":
            raise OSError("no such table")
        return False

    @app.cron("*/5 * * * *", why="charts move slowly", unless=probe, wall=60)
    async def bad() -> None:
        nonlocal runs
        runs += 1
        if how == "commit":
            app.db.write("insert into no_such_table (what) values (1)")
        elif how == "wall":
            await asyncio.sleep(120)
        elif how == "death":
            shop.die()
        elif how == "cancelled":
            raise asyncio.CancelledError

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=14)

        rows = await app.db.rows(RUNS, task="bad")
        assert [row["status"] for row in rows] == ["failed", "failed"]
        assert all(row["error"] for row in rows)
        expected = {"probe": 0, "death": 6}
        assert runs == expected.get(how, 2)


@virtual
async def test_a_task_that_fails_has_sent_no_dead_letter_back() -> None:
    app = ps.App("shop")
    queue = app.queue("listings", retries=0)

    class Listing(ps.Event, type="cron.listing"):
        name: str

    @queue.on(Listing)
    async def handle(_listing: Listing) -> None:
        raise OSError("no")

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def sweep() -> None:
        for letter in await app.dead.list():
            await app.dead.fixed(letter, Listing(name="mended"))
        raise OSError("and then it failed")

    async with TestApp(app, start=START) as shop:
        await shop.send(queue, Listing(name="a"))
        await shop.advance(minutes=6)
        assert await statuses(app, "sweep") == ["failed"]
        assert (await shop.counts(queue)).dead == 1


@pytest.mark.spec("A4-17")
@virtual
async def test_a_task_without_work_is_idle_and_does_not_run() -> None:
    app = ps.App("shop")
    idle: list[TickWasIdle] = []
    app.events.subscribe(idle.append, to=TickWasIdle)
    ran: list[str] = []

    async def nothing_to_do() -> bool:
        return await app.db.value("select 1 from effects where what = 'work' limit 1") is None

    @app.cron(EVERY_MINUTE, why="orders must not wait", unless=nothing_to_do)
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


@pytest.mark.spec("A4-12", "A4-13")
@virtual
async def test_over_its_ceiling_a_task_is_skipped_with_one_alert_and_runs_again_next_month() -> None:
    app = ps.App("shop")
    reached: list[CeilingReached] = []
    app.events.subscribe(reached.append, to=CeilingReached)
    alerts: list[ps.Alert] = []

    @app.on_alert
    async def page(alert: ps.Alert) -> None:
        alerts.append(alert)

    @app.cron("0 * * * *", why="hourly", ceiling=ps.rows(1_000))
    async def costly() -> None:
        await app.db.rows("select what from effects")

    @app.cron("0 * * * *", why="hourly", ceiling=ps.rows(1_000_000))
    async def modest() -> None:
        await app.db.rows("select what from effects limit 1")

    start = datetime(2026, 3, 31, 12, 30, tzinfo=UTC)
    async with TestApp(app, start=start) as shop:
        async with shop.unit():
            app.db.write_many(EFFECT, [{"what": str(number)} for number in range(400)])
        await shop.advance(hours=8)
        assert await statuses(app, "costly") == ["done"] * 3 + ["ceiling"] * 5
        assert await statuses(app, "modest") == ["done"] * 8
        assert [event.task for event in reached] == ["costly"]

        await shop.restart()
        await shop.kill()
        await shop.advance(hours=2)
        assert [event.task for event in reached] == ["costly"], "told again after a restart"
        assert [alert.kind for alert in alerts] == ["ceiling.reached"]

        await shop.advance(hours=3)
        assert (await statuses(app, "costly"))[-2:] == ["done", "done"]


@pytest.mark.spec("A4-13")
@virtual
async def test_a_ceiling_of_the_whole_app_skips_every_task() -> None:
    app = ps.App("shop")
    app.crons.spending.system = ps.rows(500)

    @app.cron("0 * * * *", why="hourly")
    async def costly() -> None:
        await app.db.rows("select what from effects")

    async with TestApp(app, start=START) as shop:
        async with shop.unit():
            app.db.write_many(EFFECT, [{"what": str(number)} for number in range(400)])
        await shop.advance(hours=3)
        assert (await statuses(app, "costly"))[-1] == "ceiling"


@virtual
async def test_a_ceiling_in_usd_is_reached_too() -> None:
    app = ps.App("shop")

    @app.cron("0 * * * *", why="hourly", ceiling=ps.usd(0.000_001))
    async def costly() -> None:
        for number in range(400):
            app.db.write(EFFECT, what=str(number))

    async with TestApp(app, start=START) as shop:
        await shop.advance(hours=2)
        assert await statuses(app, "costly") == ["done", "ceiling"]
        [first, _] = await app.db.rows(RUNS, task="costly")
        assert first["rows_written"] >= 400


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
        assert [state.paused for state in await app.crons.listed()] == [True]

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


@pytest.mark.spec("A4-04")
@virtual
async def test_a_run_waits_for_what_was_registered_and_commits_with_it() -> None:
    app = ps.App("shop")

    async def beside(name: str) -> None:
        await asyncio.sleep(20)
        app.db.write(EFFECT, what=name)

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def crawl(tick: ps.Tick) -> None:
        tick.wait_until(beside("a"))
        tick.wait_until(beside("b"))
        app.db.write(EFFECT, what="task")

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=4, seconds=40)
        assert await effects(app) == []
        await shop.advance(seconds=15)
        assert await effects(app) == ["a", "b", "task"]


@pytest.mark.spec("A4-04")
@virtual
async def test_a_failure_in_what_was_registered_is_the_runs_and_nothing_of_it_is_kept() -> None:
    app = ps.App("shop")

    async def fail() -> None:
        await asyncio.sleep(10)
        raise OSError("beside")

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            app.db.write(EFFECT, what="on its way out")

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def crawl(tick: ps.Tick) -> None:
        tick.wait_until(fail())
        tick.wait_until(stubborn())

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=7)
        assert await statuses(app, "crawl") == ["failed"]
        assert await effects(app) == []


@pytest.mark.spec("A4-04")
@virtual
async def test_a_stray_task_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    app = ps.App("shop")
    strays: list[asyncio.Task[None]] = []

    @app.cron("*/5 * * * *", why="charts move slowly")
    async def crawl() -> None:
        strays.append(asyncio.ensure_future(asyncio.sleep(1_000)))

        async def leaked() -> None:
            await asyncio.sleep(1_000)

        strays.append(asyncio.ensure_future(leaked()))

    async with TestApp(app, start=START) as shop:
        with caplog.at_level(logging.WARNING, "penstock.cron"):
            await shop.advance(minutes=5)
        assert any("leaked" in record.message for record in caplog.records)
        for stray in strays:
            stray.cancel()


@pytest.mark.spec("A4-15")
def test_a_cron_needs_a_reason_and_a_frequent_one_a_look_for_work() -> None:
    app = ps.App("shop")

    async def task() -> None: ...

    with pytest.raises(TypeError, match="why"):
        app.cron("0 * * * *")  # type: ignore[call-arg]
    with pytest.raises(BadApp, match="why="):
        app.cron("0 * * * *", why=" ")(task)
    with pytest.raises(BadApp, match="unless="):
        app.cron(EVERY_MINUTE, why="orders must not wait")(task)
    app.cron(EVERY_MINUTE, why="orders must not wait", unless=busy)(task)


@pytest.mark.spec("A4-02")
def test_the_cloudflare_profile_has_three_crons_and_refuses_a_fourth_by_name() -> None:
    app = ps.App("shop", config=Config(profile="cloudflare"))

    async def task() -> None: ...

    for number in range(3):
        app.cron("0 * * * *", why="hourly", name=f"task{number}")(task)
    with pytest.raises(BadApp, match="one_more"):
        app.cron("0 * * * *", why="hourly", name="one_more")(task)


def test_what_cannot_be_a_task_is_refused_where_it_is_declared() -> None:
    app = ps.App("shop")

    async def task() -> None: ...

    with pytest.raises(PenstockError, match="61"):
        app.cron("61 * * * *", why="never")(task)
    with pytest.raises(BadApp, match="async"):
        app.cron("0 * * * *", why="hourly")(lambda: None)  # type: ignore[type-var]
    app.cron("0 * * * *", why="hourly")(task)
    with pytest.raises(BadApp, match="two cron tasks"):
        app.cron("0 * * * *", why="hourly")(task)
