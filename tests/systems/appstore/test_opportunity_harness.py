"""The harness: which markets are looked into, once, and never more than three at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import health
from penstock_systems.appstore import stages as stages  # what reacts to events is there once this is imported
from penstock_systems.appstore.opportunity import agents, harness, research
from penstock_systems.appstore.opportunity.choosing import LEAST, MOVED, TOP, Candidate, is_news, task_id, worthwhile
from penstock_systems.appstore.opportunity.facts import MarketFacts
from tests.extent import sampled
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, leap, write

NOW = "2026-01-01 00:00:00"


async def plant(it: Pipeline, *scores: float, lineages: Sequence[int] | None = None) -> None:
    """Markets 1, 2, 3 ... with a few apps each."""
    lines = lineages or range(1, len(scores) + 1)
    markets, apps, members, words = [], [], [], []
    for id, (score, lineage) in enumerate(zip(scores, lines, strict=True), 1):
        markets.append(
            {
                "id": id,
                "lineage_id": lineage,
                "name": f"Market {id}",
                "opportunity_score": score,
                "demand": 60.0,
                "competitiveness": 40.0,
                "fragmentation": 80.0,
                "apps": 4,
                "keywords": 1,
                "first_seen_at": NOW,
                "computed_at": NOW,
            }
        )
        for at in range(4):
            track_id = 100 * id + at
            named = {"track_id": track_id, "track_name": f"App {track_id}", "rating_count": 900 - 100 * at}
            apps.append(named | {"average_rating": 3.5, "first_seen_at": NOW, "last_seen_at": NOW})
            members.append({"cluster_id": id, "track_id": track_id, "weight": 1.0 - at / 10})
        words.append({"cluster_id": id, "keyword": f"word {id}", "weight": 1.0})
    await insert(it, "market_clusters", *markets)
    await insert(it, "app_registry", *apps)
    await insert(it, "cluster_apps", *members)
    await insert(it, "cluster_keywords", *words)


async def tell(it: Pipeline, *ids: int) -> None:
    async with it.running.unit():
        shared.events.send(shared.DesignDone(cluster_ids=list(ids)))


async def tasks(it: Pipeline) -> dict[str, str]:
    rows = await it.sql("select id, status from research_tasks order by id limit 1000")
    return {row.id: row.status for row in rows}


@asynccontextmanager
async def harnessed(pipeline: Opened) -> AsyncIterator[Pipeline]:
    async with crawling(pipeline) as it:
        yield it


# -- choosing -------------------------------------------------------------------------------------------------


@pytest.mark.slow("postgres")
def test_the_best_are_looked_into_and_at_most_twenty_of_them() -> None:
    many = [Candidate(id, id, 60.0 + id) for id in range(1, 31)]
    chosen = worthwhile(many)
    assert [each.cluster_id for each in chosen] == list(range(30, 30 - TOP, -1))


@pytest.mark.spec("B6-01")
@pytest.mark.slow("postgres")
def test_markets_from_seventy_up_are_looked_into_and_where_fewer_than_ten_are_the_best_ten() -> None:
    few = [Candidate(id, id, 72.0 - id) for id in range(1, 31)]
    assert [each.cluster_id for each in worthwhile(few)] == list(range(1, LEAST + 1))
    some = [Candidate(id, id, 70.0 if id <= 13 else 69.9) for id in range(1, 31)]
    assert [each.cluster_id for each in worthwhile(some)] == list(range(1, 14))


@pytest.mark.slow("postgres")
def test_a_market_whose_score_has_moved_is_looked_into_again_on_another_day() -> None:
    assert is_news(60.0 + MOVED, 60.0, same_day=False)
    assert is_news(60.0 - MOVED, 60.0, same_day=False)
    assert not is_news(60.0 + MOVED, 60.0, same_day=True)
    assert not is_news(60.1, 60.0, same_day=False)
    assert is_news(70.0, 69.9, same_day=False)  # it has become good


@pytest.mark.slow("postgres")
def test_of_a_lineage_only_the_best_market_is_looked_into() -> None:
    family = [Candidate(1, 7, 80.0), Candidate(2, 7, 90.0), Candidate(3, 8, 75.0), Candidate(4, 9, 71.0)]
    assert [each.cluster_id for each in worthwhile(family)] == [2, 3, 4]
    assert task_id(family[1], "2026-01-01") == "market-7-2026-01-01"


# -- at work --------------------------------------------------------------------------------------------------


@pytest.mark.spec("B4-02", "G2-18")
async def test_markets_that_are_worth_it_are_looked_into_once_however_often_they_are_reported(pipeline: Opened) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0, 80.0, 75.0, 99.0)
        await write(it, "update market_clusters set franchise = 'blokoria' where id = 4")
        for _ in range(3):
            await tell(it, 1, 2, 3, 4)
        await it.running.advance(minutes=1)
        await tell(it, 4, 3, 2, 1)
        await it.running.advance(hours=1)
        expected = {f"market-{id}-2026-01-01": "done" for id in (1, 2, 3)}
        assert await tasks(it) == expected
        runs = await shared.app.workflows.list(research.NAME)
        assert {run.id: run.state for run in runs} == dict.fromkeys(expected, "complete")


async def test_a_lineage_is_looked_into_again_after_seven_days_and_not_before(pipeline: Opened) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0, 80.0, 75.0)
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=10)
        await leap(it, days=6)
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=10)
        assert len(await tasks(it)) == 3
        await leap(it, days=1, hours=1)
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=10)
        assert len(await tasks(it)) == 6


async def test_a_part_that_split_off_belongs_to_what_was_looked_into(pipeline: Opened) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0, 80.0, 75.0, 85.0, lineages=[1, 2, 3, 1])
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=10)
        await tell(it, 4)
        await it.running.advance(minutes=10)
        assert sorted(await tasks(it)) == [f"market-{id}-2026-01-01" for id in (1, 2, 3)]


class Slow:
    """A first step that waits until it is let go, and counts how many do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.most = self.begun = 0
        self._load = research.load
        monkeypatch.setattr(research, "load", self.load)

    async def load(self, cluster_id: int) -> MarketFacts | None:
        self.now += 1
        self.begun += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(60)
        self.now -= 1
        return await self._load(cluster_id)


@pytest.mark.spec("B6-04", "B8-T43", "B8-T45")
async def test_never_more_than_three_are_looked_into_at_once_and_the_best_come_first(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    async with harnessed(pipeline) as it:
        await plant(it, *(71.0 + id for id in range(1, 9)))
        await tell(it, *range(1, 9))
        await it.running.advance(seconds=30)
        running = [id for id, status in (await tasks(it)).items() if status == "running"]
        assert running == [f"market-{id}-2026-01-01" for id in (6, 7, 8)]
        [cycle] = await it.sql("select id, status, wanted, started, finished_at from harness_cycles")
        assert (cycle.status, cycle.wanted, cycle.started, cycle.finished_at) == ("running", 8, 3, None)
        await it.running.advance(minutes=10)
        assert slow.most == harness.PARALLEL == 3
        assert set((await tasks(it)).values()) == {"done"}
        [cycle] = await it.sql("select id, status, wanted, started, finished_at from harness_cycles")
        assert (cycle.status, cycle.wanted, cycle.started) == ("done", 8, 8)
        assert cycle.finished_at is not None
        log = await it.sql("select subject, result, processor, cycle_id from harness_processor_log limit 100")
        assert sorted(row.result for row in log) == ["done"] * 8 + ["started"] * 8
        told = (await health.pipeline_test())["research"]
        assert (told["last_cycle"]["status"], told["last_cycle"]["started"]) == ("done", 8)
        assert len(told["lately"]) == 5
        assert {each["result"] for each in told["lately"]} <= {"started", "done"}
        assert {(row.processor, row.cycle_id) for row in log} == {("batch-research", cycle.id)}


@pytest.mark.spec("B6-04")
async def test_a_whole_list_is_looked_into_one_after_the_other(pipeline: Opened) -> None:
    """Each is begun when another has ended. That they follow from each other must not be taken for a loop."""
    async with harnessed(pipeline) as it:
        await plant(it, *(71.0 + id for id in range(TOP)))
        await tell(it, *range(1, TOP + 1))
        await it.running.advance(minutes=10)
        assert list((await tasks(it)).values()) == ["done"] * TOP
        [cycle] = await it.sql("select status, wanted, started from harness_cycles")
        assert (cycle.status, cycle.wanted, cycle.started) == ("done", TOP, TOP)


@pytest.mark.spec("B6-04")
async def test_a_run_that_an_operator_ends_frees_its_place(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0, 80.0, 75.0, 72.0)
        with monkeypatch.context() as stuck:
            stuck.setattr(research, "load", forever)
            await tell(it, 1, 2, 3, 4)
            await it.running.advance(minutes=1)
            for id in (1, 2, 3):
                await research.batch_research[f"market-{id}-2026-01-01"].terminate()
        await it.running.advance(minutes=40)
        assert await tasks(it) == {
            "market-1-2026-01-01": "failed",
            "market-2-2026-01-01": "failed",
            "market-3-2026-01-01": "failed",
            "market-4-2026-01-01": "done",
        }
        assert (await it.sql("select status from harness_cycles"))[0].status == "done"


async def forever(cluster_id: int) -> None:
    await asyncio.sleep(1e6)


async def test_a_market_that_ends_before_it_is_looked_into_fails_and_may_be_tried_another_day(pipeline: Opened) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0, 80.0, 75.0)
        await write(it, "update market_clusters set demand = null where id = 1")
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=5)
        assert (await tasks(it))["market-1-2026-01-01"] == "failed"
        await write(it, "update market_clusters set demand = 50 where id = 1")
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=5)
        assert len(await tasks(it)) == 3, "not twice on one day"
        await leap(it, days=1)
        await tell(it, 1, 2, 3)
        await it.running.advance(minutes=5)
        assert (await tasks(it))["market-1-2026-01-02"] == "done"


@pytest.mark.fault("F03")
@sampled("nth", [1, 3, 6, 9], every=2)
async def test_a_death_anywhere_loses_no_market_and_doubles_none(pipeline: Opened, nth: int) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0, 80.0, 75.0, 74.0)
        await tell(it, 1, 2, 3, 4)
        await it.running.crash(at="commit.after", nth=nth)
        await it.running.advance(hours=1)
        assert it.running.workers_started == 2
        assert await tasks(it) == {f"market-{id}-2026-01-01": "done" for id in (1, 2, 3, 4)}
        evaluations = await it.sql("select id, cluster_id from opportunity_evaluations order by id limit 100")
        assert [row.cluster_id for row in evaluations] == [1, 2, 3, 4]


# -- money ----------------------------------------------------------------------------------------------------


class Paid:
    """Stands between the analyst and the model: `spent` are the budgets that are, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *spent: ps.BudgetSpent) -> None:
        self.left = list(spent)
        self.asked = 0
        self._hear = agents.hear
        monkeypatch.setattr(agents, "hear", self.hear)

    async def hear(self, *given: Any, **named: Any) -> agents.Heard | None:
        self.asked += 1
        if self.left:
            raise self.left.pop(0)
        return await self._hear(*given, **named)


@pytest.mark.spec("B6-03")
async def test_where_the_budget_of_the_day_is_spent_the_run_waits_for_the_next_day(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0)
        morning = it.running.now.replace(hour=0, minute=0, second=0, microsecond=0, day=2)
        paid = Paid(monkeypatch, ps.BudgetSpent("no more today", budget="day", until=morning))
        await tell(it, 1)
        await it.running.advance(minutes=5)
        await leap(it, hours=23)
        assert await tasks(it) == {"market-1-2026-01-01": "running"}
        assert paid.asked == 1
        await leap(it, hours=1)
        assert await tasks(it) == {"market-1-2026-01-01": "done"}
        assert paid.asked == 1 + len(agents.AGENTS)


@pytest.mark.spec("B6-03")
async def test_where_its_own_budget_is_spent_the_run_ends_and_its_task_says_so(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harnessed(pipeline) as it:
        await plant(it, 90.0)
        Paid(monkeypatch, ps.BudgetSpent("this run has cost enough", budget="run", until=None))
        await tell(it, 1)
        await it.running.advance(minutes=5)
        assert await tasks(it) == {"market-1-2026-01-01": "budget_exceeded"}
        assert await research.batch_research["market-1-2026-01-01"].result() == "budget_exceeded"
        assert await it.sql("select id from opportunity_evaluations limit 1") == []
        assert (await it.sql("select status from harness_cycles"))[0].status == "done"
