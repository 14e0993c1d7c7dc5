"""However a run fails, it leaves no effect, the log says why, and the next fire comes; what runs beside is a part of it."""

from __future__ import annotations

import asyncio
import logging
from time import thread_time
from typing import Any

import pytest

import penstock as ps
from penstock.config import parse
from penstock.runtime.events import TickFailed
from penstock.testing import TestApp, virtual
from tests.flow.crons import RUNS, START, statuses
from tests.flow.shop import EFFECT, effects


class Ordered(ps.Event, type="ordered"):
    number: int


@pytest.mark.spec("A4-07", "A4-17")
@virtual
async def test_a_task_that_fails_is_logged_leaves_no_effect_and_runs_again_at_the_next_fire() -> None:
    app = ps.App("shop")
    failed: list[TickFailed] = []
    app.events.subscribe(failed.append, to=TickFailed)

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def bad(tick: ps.Tick) -> None:
        app.db.write(EFFECT, what="of a run that failed")
        tick.phase = "fetching"
        raise OSError("the store is away")

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def good(tick: ps.Tick) -> None:
        app.db.write(EFFECT, what=f"good {tick.scheduled_at:%H:%M}")

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=10)

        rows = await app.db.rows(RUNS, task="bad")
        assert [(row["status"], row["phase"], row["error"]) for row in rows] == [
            ("failed", "fetching", f"OSError: the store is away at {failed[0].facts()['place']}")
        ] * 2
        assert await effects(app) == ["good 12:05", "good 12:10"]
        assert [event.task for event in failed] == ["bad", "bad"]
        assert all('raise OSError("the store is away")' in (event.traceback or "") for event in failed)
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
        return True

    @app.cron("*/5 * * * *", reason="charts move slowly", when=probe, timeout=60)
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
async def test_a_task_that_holds_the_processor_for_longer_than_its_profile_allows_has_failed() -> None:
    limits = "[limits]\ncron_invocation = {timeout_seconds = 30, cpu_timeout_seconds = 0.02}"
    app = ps.App("shop", config=parse(limits, "penstock.toml"))

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def reckon() -> None:
        for _ in range(5):
            until = thread_time() + 0.015
            while thread_time() < until:
                pass
            await asyncio.sleep(1)
        app.db.write(EFFECT, what="of a run that was cancelled")

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=6)

        [row] = await app.db.rows(RUNS, task="reckon")
        assert row["status"] == "failed"
        assert row["error"].startswith("CpuTimeout: ")
        assert await effects(app) == []


@virtual
async def test_a_task_that_fails_has_sent_no_dead_letter_back() -> None:
    app = ps.App("shop")
    queue: ps.Queue[Any] = app.queue("listings", retries=0)

    class Listing(ps.Event, type="cron.listing"):
        name: str

    @queue.handler(Listing)
    async def handle(_listing: Listing) -> None:
        raise OSError("no")

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def sweep() -> None:
        for letter in await app.dead.list():
            await app.dead.repair(letter, Listing(name="mended"))
        raise OSError("and then it failed")

    async with TestApp(app, start=START) as shop:
        await shop.send(queue, Listing(name="a"))
        await shop.advance(minutes=6)
        assert await statuses(app, "sweep") == ["failed"]
        assert (await shop.counts(queue)).dead == 1


@pytest.mark.spec("A4-04", "F-40", "G3-15")
@virtual
async def test_a_run_waits_for_what_was_registered_and_commits_with_it() -> None:
    app = ps.App("shop")

    async def beside(name: str) -> None:
        await asyncio.sleep(20)
        app.db.write(EFFECT, what=name)

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def crawl(tick: ps.Tick) -> None:
        tick.wait_until(beside("a"))
        tick.wait_until(beside("b"))
        await beside("awaited")
        app.db.write(EFFECT, what="task")

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=4, seconds=40)
        assert await effects(app) == []
        await shop.advance(seconds=15)
        assert sorted(await effects(app)) == ["a", "awaited", "b", "task"]


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

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def crawl(tick: ps.Tick) -> None:
        tick.wait_until(fail())
        tick.wait_until(stubborn())

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=7)
        assert await statuses(app, "crawl") == ["failed"]
        assert await effects(app) == []


@pytest.mark.spec("A4-04", "F-40")
@virtual
async def test_a_stray_task_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    app = ps.App("shop")
    strays: list[asyncio.Task[None]] = []

    @app.cron("*/5 * * * *", reason="charts move slowly")
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


@pytest.mark.spec("A4-04")
@virtual
async def test_what_others_start_meanwhile_is_not_its_stray(caplog: pytest.LogCaptureFixture) -> None:
    app = ps.App("shop")
    orders = app.queue("orders", Ordered)

    async def long() -> None:
        await asyncio.sleep(100)

    @orders.handler
    async def handle(order: Ordered) -> None:
        await asyncio.gather(long(), long())

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def crawl() -> None:
        async with app.unit():
            orders.send(Ordered(number=1))
        await asyncio.sleep(10)

    async with TestApp(app, start=START) as shop:
        with caplog.at_level(logging.WARNING, "penstock.cron"):
            await shop.advance(minutes=7)
        assert len(shop.delivered(orders)) == 1
        assert [record.message for record in caplog.records if "running" in record.message] == []
