"""The trial: ten apps are followed through all five stages, and a stage that is cut off is named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.runtime.events import MessageWasLarge
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages, trial
from penstock_systems.appstore.cluster import task
from penstock_systems.appstore.crawl import cycle
from tests.extent import sampled
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling
from tests.systems.appstore.test_cluster_task import fill

assert stages.app is shared.app
NAMES = ["crawl", "enrich", "evaluate", "cluster", "opportunity"]


async def tried(it: Pipeline) -> list[Any]:
    return await shared.app.trial.follow(lambda seconds: it.running.advance(seconds=seconds), lambda _: None)


@pytest.mark.slow("postgres")
@pytest.mark.spec("A13-04", "A13-05", "G2-18", "B1-01", "B7-01", "B7-02")
async def test_ten_apps_come_through_all_five_stages(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    large: list[MessageWasLarge] = []
    for queue in shared.app.queues.values():
        monkeypatch.setattr(queue, "_warned", set())  # large ones are told of once, and another test may have seen that
    leave = shared.app.events.subscribe(large.append, to=MessageWasLarge)
    async with pipeline(apps=160, markets=3) as it:
        followed = await tried(it)
    leave()

    assert shared.app.requires_trial, "the pipeline is let loose without a trial"
    assert [each.stage for each in followed] == NAMES
    assert all(each.passed for each in followed), followed
    assert followed[0].items == 10
    assert large == [], "a message carries what it should refer to"


async def nothing(*_: object, **__: object) -> None:
    return None


@pytest.mark.slow("postgres")
@pytest.mark.spec("A13-05", "G2-18", "G2-40")
@sampled("cut", NAMES, every=5)
async def test_a_stage_that_is_cut_off_fails_by_its_name(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    async with pipeline(apps=100, markets=2) as it:
        match cut:
            case "crawl":
                monkeypatch.setattr(cycle, "scan_charts", nothing)
            case "enrich":
                await shared.app.controllers.operate("enrichment", "stop")
            case "evaluate":
                monkeypatch.delitem(shared.events.handlers, "app-enriched")
            case "cluster":
                monkeypatch.setattr(task, "_run", nothing)
            case "opportunity":
                monkeypatch.delitem(shared.events.handlers, "design-done")

        followed = await tried(it)

        assert [each.stage for each in followed] == NAMES[: NAMES.index(cut) + 1]
        assert [each.stage for each in followed if not each.passed] == [cut]


async def test_a_first_start_clusters_as_soon_as_there_is_something_to_cluster(pipeline: Opened) -> None:
    """And not at the next six-hour mark, because nothing had been searched when it began."""
    async with crawling(pipeline) as it:
        pushing = asyncio.create_task(trial.cluster([]))
        await it.running.advance(minutes=5)
        assert await it.sql("select id from pipelines") == []
        await fill(it)
        await it.running.advance(minutes=1)
        await pushing
        await it.running.drain()
        assert [row.status for row in await it.sql("select status from pipelines")] == ["done"]
