"""The routes: which event calls which agent, what each passes on, and that disorder and repeats change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing import TestApp
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages
from penstock_systems.appstore.app import AppEnriched, ClustersReady, DesignDone, FragmentationDone, RankingsUpdated
from penstock_systems.appstore.evaluate import demand
from tests.systems.appstore.conftest import START, Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, insert_apps, insert_keywords

ALL = stages  # their handlers are there once they are imported
NOW = f"{START:%Y-%m-%d %H:%M:%S}"
MARKETS, APPS = range(1, 6), range(1, 41)
FOUND = """
select agent, subject_type, subject_id, score, explanation, inputs_hash
from agent_ledger
order by agent, subject_type, subject_id, inputs_hash
"""


async def fill(it: Pipeline) -> None:
    """Five markets of eight apps each; the fifth belongs to one app."""
    rows = [{"track_id": each, "rating_count": 100 + each % 7, "average_rating": 4.0} for each in APPS]
    rows[-1]["rating_count"] = 10**8
    await insert_apps(it, *({**row, "enrichment_source": "scraper", "track_name": "App"} for row in rows))
    times = {"first_seen_at": NOW, "computed_at": NOW}
    for each in MARKETS:
        row = {"id": each, "lineage_id": each, "name": f"Market {each}", "demand": 50.0, "competitiveness": 30.0}
        await insert(it, "market_clusters", {**row, **times})
    members = [{"cluster_id": (each - 1) // 8 + 1, "track_id": each, "weight": 1.0} for each in APPS]
    await insert(it, "cluster_apps", *members)
    await insert_keywords(it, *(f"word {each}" for each in MARKETS))
    ranks = [{"keyword": f"word {(each - 1) // 8 + 1}", "track_id": each, "rank": (each - 1) % 8 + 1} for each in APPS]
    await insert(it, "crawl_rankings", *({**row, "crawled_at": NOW} for row in ranks))


def sent(running: TestApp, kind: type) -> list[Any]:
    events = {each.id: each.payload for each in running.delivered(shared.events)}
    return [event for event in events.values() if type(event) is kind]


async def facts(it: Pipeline) -> tuple[list[Any], ...]:
    """Everything that the agents wrote."""
    return (
        await it.sql(FOUND),
        await it.sql("select track_id, competitiveness_score from app_registry order by track_id"),
        await it.sql("select keyword, demand from crawl_keywords order by keyword"),
        await it.sql("select id, fragmentation from market_clusters order by id"),
        await it.sql("select id, cluster_id, title, body, made_by from design_concepts order by id"),
        await it.sql("select agent, key, value from agent_memory order by agent, key"),
    )


@pytest.mark.spec("B4-01", "B4-02", "G2-17", "G2-18", "B4-06")
async def test_ready_markets_are_scored_analyzed_designed_for_and_passed_on(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it)
        await it.running.send(shared.events, ClustersReady(cluster_ids=[3, 1, 5, 404]))
        await it.running.advance(minutes=2)

        assert sent(it.running, FragmentationDone) == [FragmentationDone(cluster_ids=[3, 1, 5])]
        assert sent(it.running, DesignDone) == [DesignDone(cluster_ids=[3, 1, 5])]
        scored = await it.sql("select track_id from app_registry where competitiveness_score is not null")
        assert sorted(row.track_id for row in scored) == [*range(1, 9), *range(17, 25), *range(33, 41)]
        concepts = await it.sql("select cluster_id from design_concepts order by cluster_id")
        assert [row.cluster_id for row in concepts] == [1, 3]


@pytest.mark.spec("B4-02")
async def test_nothing_is_passed_on_where_nothing_was_analyzed(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await it.running.send(shared.events, ClustersReady(cluster_ids=[404, 405]))
        await it.running.send(shared.events, FragmentationDone(cluster_ids=[404]))
        await it.running.advance(minutes=2)
        assert len(it.running.delivered(shared.events)) == 2
        assert await it.running.dead(shared.events) == []


@pytest.mark.spec("B4-02", "B4-04", "B4-05", "G2-19")
async def test_apps_go_to_competitiveness_and_keywords_to_demand(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await fill(it)
        await it.running.send(shared.events, AppEnriched(track_ids=[1, 2, 3]))
        await it.running.send(shared.events, RankingsUpdated(keywords=["word 1"]))
        await it.running.advance(minutes=1)
        rows = await it.sql(FOUND)
        assert [(row.agent, row.subject_id) for row in rows] == [
            ("competitiveness", "1"), ("competitiveness", "2"), ("competitiveness", "3"), ("demand", "word 1"),
        ]  # fmt: skip


EVENTS: list[AppEnriched | RankingsUpdated | ClustersReady] = [
    *(AppEnriched(track_ids=[each, each + 20, each]) for each in range(1, 21)),
    *(RankingsUpdated(keywords=[f"word {each}", "word 1"]) for each in MARKETS),
    *(ClustersReady(cluster_ids=[each]) for each in MARKETS),
]


@pytest.mark.spec("B4-03", "G2-16", "G2-19")
@pytest.mark.parametrize("how", ["shuffled", "duplicated", "both"])
async def test_in_any_order_and_however_often_the_agents_find_the_same(pipeline: Opened, how: str, seed: int) -> None:
    async with crawling(pipeline) as it:
        await fill(it)
        for event in EVENTS:
            await it.running.send(shared.events, event)
        await it.running.advance(minutes=10)
        expected = await facts(it)
        assert len(expected[0]) == 40 + 5 + 5 + 4

    shuffled, duplicated = how in ("shuffled", "both"), how in ("duplicated", "both")
    async with TestApp(shared.app, seed=seed, start=START, shuffled=shuffled, duplicated=duplicated) as running:
        it = Pipeline(running, it.store)
        for name in shared.app.crons.tasks:
            await shared.app.crons.pause(name)
        for name in shared.app.controllers.names():
            await shared.app.controllers.operate(name, "stop")
        await fill(it)
        for event in reversed(EVENTS) if how == "both" else EVENTS:
            await running.send(shared.events, event)
        await running.advance(minutes=10)
        assert await facts(it) == expected
        assert await running.dead(shared.events) == []


@pytest.mark.spec("B4-03", "G2-16")
async def test_a_route_that_fails_is_tried_again_alone_and_dies_alone(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(keywords: object) -> object:
        raise OSError("the agent fails")

    async with crawling(pipeline) as it:
        await fill(it)
        monkeypatch.setattr(demand, "weigh", broken)
        await it.running.send(shared.events, RankingsUpdated(keywords=["word 1"]))
        await it.running.send(shared.events, AppEnriched(track_ids=[1]))
        await it.running.advance(minutes=10)
        assert [row.agent for row in await it.sql(FOUND)] == ["competitiveness"]
        [letter] = await it.running.dead(shared.events)
        assert letter.reason == "exhausted"
