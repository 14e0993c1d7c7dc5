"""Ceilings: over what a task, or the whole app, may use in a month, tasks are skipped with one alert until the next."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.usage import Measure
from penstock.runtime.events import CeilingReached
from penstock.testing import TestApp, virtual
from tests.flow.crons import RUNS, START, statuses
from tests.flow.shop import EFFECT, Listing

EVERYTHING = "select what from effects"


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

    @app.cron("0 * * * *", reason="hourly", ceiling=ps.Ceiling(rows_read=1_000))
    async def costly() -> None:
        await app.db.rows(EVERYTHING)

    @app.cron("0 * * * *", reason="hourly", ceiling=ps.Ceiling(rows_read=1_000_000))
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
async def test_a_ceiling_of_the_whole_app_in_the_settings_skips_every_task() -> None:
    app = ps.App("shop", config=parse("[ceiling]\nrows_read = 500", "penstock.toml"))

    @app.cron("0 * * * *", reason="hourly")
    async def costly() -> None:
        await app.db.rows(EVERYTHING)

    @app.cron("30 * * * *", reason="hourly")
    async def modest() -> None: ...

    async with TestApp(app, start=START) as shop:
        async with shop.unit():
            app.db.write_many(EFFECT, [{"what": str(number)} for number in range(400)])
        await shop.advance(hours=4)
        assert await statuses(app, "costly") == ["done", "done", "ceiling", "ceiling"]
        assert (await statuses(app, "modest"))[-1] == "ceiling"
        [*_, last] = await app.db.rows(RUNS, task="modest")
        assert re.fullmatch(r"\d+ of 500 rows read this month, the whole app", last.error)


class Idler(ps.Object):
    async def idle(self) -> None:
        await asyncio.sleep(60)


@pytest.mark.spec("A4-12")
@pytest.mark.parametrize("unit, most", [("queue_operations", 30), ("object_seconds", 50), ("requests", 5), ("usd", 9)])
@virtual
async def test_whatever_is_metered_can_have_a_ceiling(unit: str, most: float) -> None:
    app = ps.App("shop", config=parse(f"[ceiling]\n{unit} = {most}", "penstock.toml"))
    listings, idlers = app.queue("listings", Listing), app.object(Idler)

    @listings.handler(Listing)
    async def handle(_listing: Listing) -> None: ...

    @app.cron("0 * * * *", reason="hourly")
    async def crawl() -> None: ...

    async with TestApp(app, start=START) as shop:
        await shop.advance(hours=1)
        if unit == "queue_operations":
            for _ in range(20):
                await shop.send(listings, Listing(name="a"))
        elif unit == "object_seconds":
            await idlers["main"].idle()
        elif unit == "requests":
            (await app._opened()).meter.add("http", Measure("penstock:requests", 5, 0, 0, 0, 0, 0.0))
        else:  # a dollar a thousand million rows read, and twelve and a half a million requests to objects
            (await app._opened()).meter.add("t", Measure("select 1", 1, 5_000_000_000, 0, 0, 0, 0.0))
            (await app._opened()).meter.add("t", Measure("penstock:object_requests", 400_000, 0, 0, 0, 0, 0.0))
        await shop.advance(hours=1)
        assert await statuses(app, "crawl") == ["done", "ceiling"]


@virtual
async def test_a_ceiling_in_usd_is_reached_too() -> None:
    app = ps.App("shop")

    @app.cron("0 * * * *", reason="hourly", ceiling=ps.Ceiling(usd=0.000_001))
    async def costly() -> None:
        for number in range(400):
            app.db.write(EFFECT, what=str(number))

    async with TestApp(app, start=START) as shop:
        await shop.advance(hours=2)
        assert await statuses(app, "costly") == ["done", "ceiling"]
        [first, _] = await app.db.rows(RUNS, task="costly")
        assert first["rows_written"] >= 400
