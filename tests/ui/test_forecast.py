"""What is said of the future comes true within a fifth, on loads that are planted."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

import penstock as ps
from penstock.config import Config, DashboardConfig
from penstock.testing import TestApp, virtual
from penstock.views.view import micros_of
from tests.ui.visiting import Visit, visiting


class Job(ps.Command, type="job.wanted"):
    seconds: float


def loaded_app(*, parallel: int, rate: float | None = None) -> ps.App:
    config = Config(dashboard=DashboardConfig(hosts=("shop.example",)))
    app = ps.App("loaded", config=config, migrations="none")
    jobs = app.queue("jobs", Job, parallel=parallel, rate=rate)

    @jobs.handler
    async def work(job: Job) -> None:
        await asyncio.sleep(job.seconds)

    @app.cron("0 * * * *", name="nightly", reason="a planted load")
    async def nightly() -> None:
        async with app.unit():
            jobs.send_batch([ps.Outgoing(payload=Job(seconds=0.1)) for _ in range(300)])

    return app


# Handlers at once, starts a second, messages, seconds of each.
LOADS = [(4, None, 3_000, 2.0), (1, None, 400, 4.0), (8, 2.5, 2_000, 0.5)]


@pytest.mark.parametrize("parallel, rate, messages, seconds", LOADS)
@virtual
async def test_a_queue_is_empty_about_when_its_page_says(
    parallel: int, rate: float | None, messages: int, seconds: float
) -> None:
    app = loaded_app(parallel=parallel, rate=rate)
    async with TestApp(app, start=datetime.fromisoformat("2026-01-01T00:05:00Z")) as shop, visiting(shop) as visit:
        async with shop.unit():
            for _ in range(messages):
                app.queues["jobs"].send(Job(seconds=seconds))
        await shop.advance(minutes=4)
        forecast = (await visit.json("/queues/jobs"))["forecast"]
        now = shop.now
        said = (micros_of(forecast["empty_at"]) / 1_000_000) - now.timestamp()
        took = await _until_empty(shop, visit)

    assert said == pytest.approx(took, rel=0.2)


async def _until_empty(shop: TestApp, visit: Visit) -> float:
    began = shop.now
    while (await shop.counts(shop.app.queues["jobs"])).ready or (await shop.counts(shop.app.queues["jobs"])).leased:
        await shop.advance(seconds=5)
    return (shop.now - began).total_seconds()


@virtual
async def test_the_page_says_how_much_the_next_run_of_a_task_adds() -> None:
    app = loaded_app(parallel=8)
    async with TestApp(app, start=datetime.fromisoformat("2026-01-01T00:05:00Z")) as shop:
        await shop.advance(hours=2, minutes=10)
        async with visiting(shop) as visit:
            (coming,) = (await visit.json("/queues/jobs?coming=1"))["forecast"]["coming"]

    assert coming["task"] == "nightly"
    assert coming["messages"] == pytest.approx(300, rel=0.2)
    assert coming["at"].startswith("2026-01-01T03:00")
