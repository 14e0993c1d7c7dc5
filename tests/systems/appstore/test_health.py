"""How the pipeline fares: a stage is healthy if what goes in still comes out, not because it made something long ago."""

from __future__ import annotations

import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore import health
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, insert_apps
from tests.web.outside import outside

NAMES = ["crawl", "enrich", "evaluate", "cluster", "opportunity"]
THEN, NOW = "2026-01-01 06:00:00", "2026-01-08 06:00:00"


async def fill(it: Pipeline, *, late: str | None = None) -> None:
    """Every stage has made something now, but for the one that has made nothing for a week."""
    at = dict.fromkeys(NAMES, NOW) | ({late: THEN} if late else {})
    times = {"started_at": at["crawl"], "finished_at": at["crawl"]}
    await insert(it, "crawl_log", {"id": "1", "phase": "category_scan", "stats": "{}", **times})
    await insert_apps(it, {"track_id": 1, "enrichment_source": "scraper", "enriched_at": at["enrich"]})
    scored = {"agent": "competitiveness", "version": "1", "subject_type": "app", "subject_id": "1"}
    said = {"explanation": "", "inputs": "{}", "inputs_hash": "1"}
    await insert(it, "agent_ledger", {"id": "1", **scored, **said, "created_at": at["evaluate"]})
    run = {"lineage_id": 1, "cluster_id": 1, "overlap": 1.0, "run_at": at["cluster"]}
    await insert(it, "cluster_lineages", run)
    judged = {"cluster_id": 1, "lineage_id": 1, "name": "a", "verdict": "build", "score": 70.0, "reason": "b"}
    made = {"facts": "{}", "made_by": "c", "run_id": "d", "created_at": at["opportunity"]}
    await insert(it, "opportunity_evaluations", {"id": "1", **judged, **made})


@pytest.mark.spec("A14-08")
async def test_a_pipeline_in_which_every_stage_keeps_up_is_healthy(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it)

        found = await health.stages()

        assert list(found) == NAMES
        assert all(stage["healthy"] for stage in found.values()), found
        assert found["enrich"]["latest"] == NOW
        assert found["opportunity"]["count"] == 1


@pytest.mark.spec("A14-08", "G2-40")
@pytest.mark.parametrize("late", NAMES[1:])
async def test_a_stage_that_made_something_only_long_ago_is_not_healthy(pipeline: Opened, late: str) -> None:
    async with crawling(pipeline) as it:
        await fill(it, late=late)

        found = await health.stages()

        assert [name for name, stage in found.items() if not stage["healthy"]] == [late]


@pytest.mark.slow("postgres")
@pytest.mark.spec("A14-08")
async def test_a_pipeline_that_has_made_nothing_is_not_healthy_and_can_be_asked(pipeline: Opened) -> None:
    async with crawling(pipeline):
        assert not any(stage["healthy"] for stage in (await health.stages()).values())
        assert await health.crawl_status() == {"apps": 0, "keywords": 0, "rankings": 0, "last_cycle": None}


@pytest.mark.spec("A14-08", "G7-05")
async def test_status_and_pipeline_test_are_routes_that_need_a_token_and_cache_their_answer(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it)
        async with outside(it.running) as client:
            for path in ("/v1/crawl/status", "/v1/pipeline-test"):
                assert (await client.get(path, token=None)).status == 401
                assert (await client.get(path, token="queues")).status == 403
            status = (await client.get("/v1/crawl/status", token="all")).result
            healthy = (await client.get("/v1/pipeline-test", token="all")).result
            async with it.running.unit():
                shared.db.write("delete from opportunity_evaluations")
            cached = (await client.get("/v1/pipeline-test", token="all")).result
            await it.running.advance(seconds=health.CACHE_SECONDS + 1)
            later = (await client.get("/v1/pipeline-test", token="all")).result

    assert status["apps"] == 1
    assert (healthy["pipeline_healthy"], list(healthy["stages"])) == (True, NAMES)
    assert cached == healthy
    assert later["pipeline_healthy"] is False


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A14-08", "A8-21")
async def test_asking_reads_few_rows_however_many_there_are(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it)
        await insert_apps(
            it, *({"track_id": id, "enrichment_source": "scraper", "enriched_at": NOW} for id in range(2, 3_000))
        )
        before = (await shared.db.usage()).total.rows_read

        await health.stages()
        await health.crawl_status()

        assert (await shared.db.usage()).total.rows_read - before < 100
