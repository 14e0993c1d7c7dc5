"""What the pipeline declares: its names, how long pages are kept, what it loads, what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock as ps
from penstock.model.prices import GROSS, cost
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages
from penstock_systems.appstore.cluster import task
from penstock_systems.appstore.cluster.task import TOP
from penstock_systems.appstore.crawl import cycle
from penstock_systems.appstore.enrich.controller import PARALLEL, controllers
from penstock_systems.appstore.settings import Settings
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.crawling import NEVER, THEN, crawling, insert_apps

assert stages.app is shared.app
HOURS = 3
APPS = 2_000
HEAVY = ("selectolax", "scipy", "numpy", "graspologic_native", "rich", "uvicorn")


@pytest.mark.slow("postgres")
@pytest.mark.spec("B1-04", "A15-22")
def test_the_app_its_file_its_cache_and_its_points_have_their_names() -> None:
    assert shared.app.name == "pipeline-api"
    assert shared.app.database == "pipeline-db.db"
    assert shared.app.migrations.name == "migrations"
    assert shared.html_cache.path.name == "pipeline-html-cache"
    assert shared.html_cache.expiries == (ps.Expiry("app/", days=30),)
    assert shared.SERVICE == "pipeline"
    assert {points.name for points in (cycle.points, task.points)} == {"platform_metrics"}
    assert Settings.of({}) == Settings()


@pytest.mark.parametrize("base", ["http://127.0.0.1:8788", "http://localhost:80", "https://10.0.0.5", "http://[::1]"])
def test_an_address_that_the_client_would_refuse_is_refused_at_the_start(base: str) -> None:
    with pytest.raises(ps.BadConfig, match=r"bases.itunes = .* is not public.*--standins"):
        Settings.of({"appstore": {"bases": {"itunes": base}}})
    assert Settings.of({"appstore": {"bases": {"itunes": "https://itunes.example"}}}).bases.itunes


@pytest.mark.slow("postgres")
@pytest.mark.spec("G2-43")
def test_how_many_messages_come_together_and_how_many_handlers_run_are_set_apart() -> None:
    settings = {name: queue.settings for name, queue in shared.app.queues.items()}
    events, wishes = settings["pipeline-events"], settings["pipeline-enrichment"]
    assert (events.batch, wishes.batch) == (10, 10)
    assert events.parallel != wishes.parallel == 4
    usual = ps.App("other").queue("other", dict, batch=7)
    assert (usual.settings.batch, usual.settings.parallel) == (7, events.parallel)


@pytest.mark.slow("postgres")
@pytest.mark.spec("B1-05", "B1-07")
def test_queues_and_crons_have_their_names_and_numbers() -> None:
    settings = {name: queue.settings for name, queue in shared.app.queues.items()}
    events, wishes = settings["pipeline-events"], settings["pipeline-enrichment"]
    assert (events.batch, events.batch_wait_seconds, events.retry.retries) == (10, 5.0, 3)
    assert (wishes.batch, wishes.batch_wait_seconds) == (10, 5.0)
    assert set(shared.events.handlers) == set(shared.events.accepts or ()), "every event has a route"
    assert set(shared.wishes.handlers) == set(shared.wishes.accepts or ())
    assert shared.app.crons.tasks["cluster"].ceiling == ps.Ceiling(rows_read=1_000_000_000)
    assert {name: task.rule.expression for name, task in shared.app.crons.tasks.items()} == {
        "crawl": "*/5 * * * *",
        "cluster": "0 */6 * * *",
        "daily": "0 6 * * *",
    }


@pytest.mark.spec("B1-06", "B5-05")
async def test_objects_the_workflow_and_the_controller_are_there_under_their_names(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        introduced = await it.sql("select class, tag from penstock_classes where tag is not null order by tag")
        assert [tuple(row) for row in introduced] == [("EnrichmentController", "v1"), ("OpportunityHarness", "v2")]
        assert await controllers["main"].status() == await shared.app.controllers.status("enrichment")
        assert shared.app.workflows.names() == ["batch-research"]
        assert shared.app.controllers.names() == ["enrichment"]
    assert (PARALLEL, TOP) == (8, 200)


@pytest.mark.only_on("sqlite")  # PostgreSQL's estimate of rows read is too high on tables it has not looked at yet
@pytest.mark.spec("B1-09")
async def test_a_month_in_which_little_happens_costs_less_than_a_dollar_though_nothing_is_free(
    pipeline: Opened,
) -> None:
    async with crawling(pipeline, apps=20, markets=1) as it:
        known = {"enriched_at": THEN, "next_enrich_at": NEVER, "enrichment_source": "scraper", "ranked_at": THEN}
        rows = ({"track_id": 10**6 + number, "iap_scraped_at": THEN, **known} for number in range(APPS))
        await insert_apps(it, *rows)
        for name in shared.app.crons.tasks:
            await shared.app.crons.resume(name)
        await shared.app.controllers.operate("enrichment", "start")
        await it.running.advance(hours=1)
        before = (await shared.db.usage()).total
        await it.running.advance(hours=HOURS)
        after = (await shared.db.usage()).total

        # In three hours the crawl looks 36 times; an estimate may be a few times too high.
        assert after.rows_read - before.rows_read < 2 * APPS, "nothing goes through all apps, so a million cost no more"
        spent = cost(after, GROSS).usd - cost(before, GROSS).usd
        assert after.queue_operations >= before.queue_operations + 12 * HOURS, "the crawl has looked for work"
        assert after.object_requests > before.object_requests, "so has the enrichment"
        assert 0 < spent * 30 * 24 / HOURS < 1.0


IDLE = """
import asyncio, sys
from penstock.testing import TestApp, run
from penstock_systems.appstore import stages

async def main():
    async with TestApp(stages.app) as running:
        for name in stages.app.crons.tasks:
            await stages.app.crons.pause(name)
        await running.advance(minutes=10)
        assert (await stages.app.controllers.status("enrichment"))["last_tick_at"] is not None

run(main)
print(*sys.modules)
"""


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A6-39")
def test_a_controller_without_work_loads_nothing_heavy() -> None:
    ended = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 0, ended.stderr
    assert "penstock_systems.appstore.enrich.controller" in ended.stdout.split()
    assert [name for name in HEAVY if name in ended.stdout.split()] == []
