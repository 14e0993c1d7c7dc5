"""The cycle as a whole: no task harms another, its time is bounded, what it found is told, and it repeats exactly."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock.testing import run
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import outside
from penstock_systems.appstore.crawl import budget, convergence, untold
from penstock_systems.appstore.crawl import cycle as running
from penstock_systems.appstore.store.facts import Found
from penstock_systems.standins.appstore import Fault, Manners
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.crawling import (
    THEN,
    Scripted,
    crawling,
    cycle,
    found,
    insert,
    insert_apps,
    insert_keywords,
    run_task,
    write,
)

COMPLETE = {"enrichment_source": "scraper", "enriched_at": THEN, "ranked_at": THEN, "iap_scraped_at": THEN}


def sent(monkeypatch: pytest.MonkeyPatch) -> list[shared.RankingsUpdated]:
    """What the cycle sends, while it is sent all the same."""
    messages: list[shared.RankingsUpdated] = []
    send_all = shared.events.send_all

    def noted(items: Any, **more: Any) -> list[str]:
        messages.extend(items)
        return send_all(items, **more)

    monkeypatch.setattr(shared.events, "send_all", noted)
    return messages


@pytest.mark.spec("B2-07", "G2-04", "B2-05")
async def test_a_failing_primary_task_harms_neither_those_beside_it_nor_the_telling(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with crawling(pipeline, charts=True) as it:
        Scripted(monkeypatch, it).usual = [found(1)]
        messages = sent(monkeypatch)

        async def broken(*_: object) -> None:
            raise ZeroDivisionError("the scan is broken")

        monkeypatch.setattr(running, "scan_charts", broken)
        await insert_keywords(it, {"keyword": "calm", "depth": 3})
        await insert_apps(it, {"track_id": 9, "track_name": "Rest", **COMPLETE, "ranked_at": None})
        stats = await cycle(it)

        assert stats["phase"] == "category_scan"
        assert stats["errors"] == ["category_scan: ZeroDivisionError: the scan is broken"]
        assert stats["error"] == "category_scan: ZeroDivisionError: the scan is broken"
        assert stats["keywords_searched"] == 2  # calm, and rest for the app
        assert len(messages) == 1


@pytest.mark.spec("B2-07")
async def test_with_the_charts_of_the_store_down_keywords_are_still_searched(pipeline: Opened) -> None:
    down = Manners(limits={}, latency_seconds={}, faults=(Fault("error", endpoint="chart"),))
    async with crawling(pipeline, charts=True, manners=down) as it:
        await insert_keywords(it, *(keyword for market in it.store.truth().markets for keyword in market.keywords))
        stats = await cycle(it)
        assert stats["categories_scanned"] == 0
        assert stats["keywords_searched"] > 10
        assert stats["apps_discovered"] > 10


@pytest.mark.spec("B2-05")
async def test_a_failing_side_task_leaves_the_primary_and_the_others_alone(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline, charts=True) as it:

        async def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("the search is broken")

        monkeypatch.setattr(running, "map_keywords", broken)
        await insert_keywords(it, "calm")
        await insert_apps(
            it, {"track_id": 9, "iap_scraped_at": None, "enrichment_source": "scraper", "ranked_at": THEN}
        )
        stats = await cycle(it)
        assert stats["categories_scanned"] == 3
        assert stats["enrichment"]["purchases_checked"] == 1
        assert stats["errors"] == ["keyword_mapping: ZeroDivisionError: the search is broken"]


def test_outside_the_platform_a_cycle_may_work_until_the_next_one_begins() -> None:
    assert budget.WINDOW == budget.WHOLE
    assert budget.PLATFORM.cut < budget.WHOLE.begin


@pytest.mark.spec("B2-08")
async def test_a_slow_store_ends_the_cycle_in_its_time_and_the_rest_is_there_for_the_next(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "WINDOW", budget.PLATFORM)
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)

        async def slow(term: str, limit: int = 25) -> list[Found]:
            store.asked.append((it.running.now.timestamp(), term))
            await asyncio.sleep(7)
            return [found(1)]

        monkeypatch.setattr(outside.store, "search", slow)
        await insert_keywords(it, *({"keyword": f"k{number:03d}", "depth": 3} for number in range(100)))
        began = it.running.now.timestamp() + 1
        stats = await cycle(it)

        assert (await it.sql("select finished_at from crawl_log"))[0][0] <= "2026-01-01 00:00:31"
        assert max(at for at, _ in store.asked) - began < 25
        # Groups began at 0, 8, 16 and 24 seconds; the last of them was cut off, and lost nothing.
        assert stats["keywords_searched"] == 30
        assert (stats["held_back"], stats["error"]) == ("The time limit of the cycle is reached.", None)
        rows = await it.sql("select status, attempts from crawl_keywords")
        assert sorted({tuple(row) for row in rows}) == [("pending", 0), ("searched", 0)]
        assert sum(row.status == "pending" for row in rows) == 70
        assert (await cycle(it))["keywords_searched"] == 30


@pytest.mark.spec("B2-08")
async def test_outside_the_platform_a_cycle_works_until_the_next_one_begins(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:

        async def slow(term: str, limit: int = 25) -> list[Found]:
            await asyncio.sleep(27)
            return [found(1)]

        monkeypatch.setattr(outside.store, "search", slow)
        await insert_keywords(it, *({"keyword": f"k{number:03d}", "depth": 3} for number in range(200)))
        began = it.running.now
        assert (await cycle(it))["keywords_searched"] == 100
        assert 270 < (it.running.now - began).total_seconds() < 300


@pytest.mark.spec("B2-08")
async def test_no_search_begins_after_25_seconds_even_if_it_would_end_in_time(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "WINDOW", budget.PLATFORM)
    async with crawling(pipeline) as it:

        async def slow(term: str, limit: int = 25) -> list[Found]:
            await asyncio.sleep(2.2)
            return [found(1)]

        monkeypatch.setattr(outside.store, "search", slow)
        await insert_keywords(it, *({"keyword": f"k{number:03d}", "depth": 3} for number in range(100)))
        stats = await cycle(it)
        # Groups of ten begin every 3.2 s. The ninth would begin at 25.6 s and end at 27.8 s, before the cycle is cut.
        assert stats["keywords_searched"] == 80


@pytest.mark.spec("B2-08")
async def test_a_chart_that_never_comes_is_given_up_and_stays_due(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "WINDOW", budget.PLATFORM)
    async with crawling(pipeline, charts=True) as it:

        async def endless(*_: object, **__: object) -> list[Found]:
            await asyncio.sleep(3_600)
            return []

        monkeypatch.setattr(outside.store, "chart", endless)
        assert (await cycle(it))["categories_scanned"] == 0
        assert (await it.sql("select finished_at from crawl_log"))[0][0] <= "2026-01-01 00:00:31"
        assert (await it.sql("select count(*) from category_scans where next_scan_at = ''"))[0][0] == 93


@pytest.mark.spec("B2-29", "G2-46", "B4-01")
async def test_events_carry_five_hundred_keywords_at_most_and_there_is_none_without_any(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        Scripted(monkeypatch, it)
        messages = sent(monkeypatch)
        await insert_keywords(it, "finds nothing")
        assert (await cycle(it))["keywords_searched"] == 1
        assert messages == []

        left = [f"left {number}" for number in range(1_201)]
        value = msgspec.json.encode(left).decode()
        await insert(it, "crawl_state", {"name": untold.NAME, "value": value, "updated_at": THEN})
        await cycle(it)
        assert [len(message.keywords) for message in messages] == [500, 500, 201]
        assert [keyword for message in messages for keyword in message.keywords] == left
        assert (await it.running.counts(shared.events)).sent == 3
        assert await it.sql("select value from crawl_state where name = :name", name=untold.NAME) == []


@pytest.mark.parametrize("value", ["", "{", "[1]"])
async def test_a_state_of_the_crawl_that_cannot_be_read_is_begun_anew(pipeline: Opened, value: str) -> None:
    async with crawling(pipeline) as it:
        names = (untold.NAME, convergence.STATE)
        await insert(it, "crawl_state", *({"name": name, "value": value, "updated_at": THEN} for name in names))
        assert await untold.left() == []
        assert (await convergence.load()).searches == 0


@pytest.mark.spec("B2-29", "A2-09")
async def test_a_worker_that_dies_in_the_middle_loses_a_group_and_no_event(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.usual = [found(1)]
        messages = sent(monkeypatch)
        deaths = [25]

        async def deadly(term: str, limit: int = 25) -> list[Found]:
            if len(store.asked) == deaths[0]:
                deaths[0] = -1
                it.running.die()
            return await store.search(term, limit)

        monkeypatch.setattr(outside.store, "search", deadly)
        await insert_keywords(it, *({"keyword": f"k{number:02d}", "depth": 3} for number in range(40)))
        await it.running.advance(seconds=1)
        await shared.app.crons.trigger("crawl")
        await it.running.drain()

        assert it.running.workers_started == 2
        told = [keyword for message in messages for keyword in message.keywords]
        assert sorted(told) == [f"k{number:02d}" for number in range(40)]
        asked = [term for _, term in store.asked]
        assert 40 <= len(asked) <= 50  # the two groups that were saved were not searched again
        assert set(asked[:20]).isdisjoint(asked[20:])
        assert (await it.running.counts(shared.events)).sent == 1


@pytest.mark.spec("B2-28", "B2-01", "A10-04", "B7-01")
async def test_a_cycle_leaves_a_row_in_its_log_a_data_point_and_a_summary(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with crawling(pipeline) as it:
        caplog.set_level(logging.INFO, "penstock_systems.appstore")
        written: list[dict[str, Any]] = []
        monkeypatch.setattr(running.points, "write", lambda **point: written.append(point))
        Scripted(monkeypatch, it).usual = [found(1), found(2)]
        await insert_keywords(it, {"keyword": "calm", "depth": 3}, {"keyword": "rest", "depth": 3})
        await run_task(it, "crawl")

        [row] = await it.sql("select id, phase, stats, started_at, finished_at, error from crawl_log")
        assert (row.phase, row.error) == ("keyword_mapping", None)
        assert msgspec.json.decode(row.stats) == {
            "phase": "keyword_mapping",
            "categories_scanned": 0,
            "apps_discovered": 2,
            "apps_ranked": 0,
            "keywords_searched": 2,
            "rankings_added": 4,
            "keywords_completed": 0,
            "enrichment": {"purchases_checked": 0, "waiting": False},
            "keywords_with_new_rankings": ["calm", "rest"],
            "held_back": None,
            "errors": [],
        }
        assert written == [
            {"blobs": ("pipeline", "cron", "keyword_mapping"), "doubles": (2.0, 4.0, 2.0, 0.0), "index": "pipeline"}
        ]
        [line] = [record for record in caplog.records if record.message == "crawl.finished"]
        assert line.facts["keywords_searched"] == 2  # type: ignore[attr-defined]
        [run] = await it.sql("select status, phase from pipeline_log where task = 'crawl'")
        assert tuple(run) == ("done", "keyword_mapping")

        assert await run_task(it, "crawl") == "idle"
        assert [point["blobs"][2] for point in written] == ["keyword_mapping", "crawl_idle"]
        assert (await it.sql("select count(*) from crawl_log"))[0][0] == 1


@pytest.mark.spec("B1-07")
async def test_the_crawl_runs_by_itself_every_five_minutes_until_there_is_nothing_to_do(pipeline: Opened) -> None:
    async with pipeline(apps=60, markets=2) as it:
        await write(it, "update category_scans set priority = 'paused' where id > 4")
        for name in shared.app.crons.tasks:
            if name != "crawl":
                await shared.app.crons.pause(name)
        for name in shared.app.controllers.names():
            await shared.app.controllers.operate(name, "stop")
        assert shared.app.crons.tasks["crawl"].rule.expression == "*/5 * * * *"
        await it.running.advance(minutes=11)
        runs = await it.sql("select status from pipeline_log where task = 'crawl' order by created_at")
        assert [run.status for run in runs] == ["done", "done"]
        assert (await it.sql("select count(*) from category_scans where scanned_at is not null"))[0][0] == 4


CONTENT = (
    "select track_id, track_name, rating_count, first_seen_at, last_seen_at, data_source from app_registry",
    "select keyword, source, source_keyword, depth, status, app_count, known_count, next_search_at from crawl_keywords",
    "select keyword, track_id, rank, crawled_at from crawl_rankings",
    "select id, scanned_at, apps_found, attempts, next_scan_at from category_scans",
    "select id, phase, stats, error from crawl_log",
    "select name, value from crawl_state",
)


def test_the_same_seed_gives_the_same_database_to_the_byte(pipeline: Opened, seed: int) -> None:
    contents: list[list[Any]] = []

    async def crawl_for_a_while() -> None:
        async with crawling(pipeline, charts=True, apps=400, markets=5, manners=Manners()) as it:
            for _ in range(3):
                await cycle(it)
                await it.running.advance(minutes=5)
            contents.append([sorted(map(tuple, await it.sql(sql)), key=repr) for sql in CONTENT])

    for _ in range(2):
        run(crawl_for_a_while, seed=seed)
    assert len(contents[0][2]) > 100
    assert contents[0] == contents[1]


@pytest.mark.spec("B1-03")
async def test_a_cycle_writes_no_table_that_is_not_its_own(pipeline: Opened) -> None:
    async with crawling(pipeline, charts=True, apps=400, markets=5) as it:
        for _ in range(2):
            await cycle(it)
        usage = await shared.db.usage()
        statements = [
            spent.statement for spent in usage.statements if spent.task == "cron.crawl:crawl" and spent.rows_written
        ]
        own = (
            "app_registry developers crawl_keywords crawl_rankings crawl_seeds crawl_log crawl_state category_scans"
            " chart_positions chart_position_history keyword_cache"
        ).split()
        assert statements
        for statement in statements:
            assert any(f" {table} " in f"{statement} " for table in own), statement


async def test_a_refused_search_is_reported_in_words_that_a_person_can_read(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        Scripted(monkeypatch, it).usual = ps.Throttled("W" * 5_000)
        await insert_keywords(it, "calm")
        stats = await cycle(it)
        assert stats["errors"] == []
        assert stats["held_back"] == "W" * 300
