"""What is due: one definition for the look and for the cycle, a row for each look, and no cycle for the work of others."""

from __future__ import annotations

from itertools import product

import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.crawl.gaps import (
    Gaps,
    assess,
    beside,
    many_without_purchases,
    primary,
    something_to_crawl,
)
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import (
    NEVER,
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

ENRICHED = {"enrichment_source": "scraper", "enriched_at": THEN}
COMPLETE = {**ENRICHED, "ranked_at": THEN, "iap_scraped_at": THEN}


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B2-03", "B2-05", "G2-05")
def test_one_task_is_primary_and_every_other_that_is_needed_runs_beside_it() -> None:
    for charts, keywords, unranked in product((False, True), repeat=3):
        gaps = Gaps(charts=charts, keywords=keywords, unranked=unranked)
        first = "category_scan" if charts else "keyword_mapping" if keywords else "ranking_fill" if unranked else None
        needed = {"keyword_mapping"} if keywords else set()
        needed |= {"ranking_fill"} if unranked else set()

        assert primary(gaps) == first
        assert set(beside(gaps)) == needed - {first}


async def charts_due(it: Pipeline) -> None:
    await write(it, "update category_scans set next_scan_at = '' where id = 5")


async def keyword_pending(it: Pipeline) -> None:
    await insert_keywords(it, "sleep")


async def keyword_due_again(it: Pipeline) -> None:
    await insert_keywords(it, {"keyword": "sleep", "status": "searched", "next_search_at": THEN})


async def keyword_waited(it: Pipeline) -> None:
    await insert_keywords(it, {"keyword": "sleep", "status": "waiting", "attempts": 2, "next_search_at": THEN})


async def seed_named(it: Pipeline) -> None:
    await insert(it, "crawl_seeds", {"keyword": "Sleep!", "created_at": THEN})


async def app_unranked(it: Pipeline) -> None:
    await insert_apps(it, {"track_id": 5, "track_name": "Sleep Sounds", **COMPLETE, "ranked_at": None})


async def app_without_purchases(it: Pipeline) -> None:
    await insert_apps(it, {"track_id": 5, **COMPLETE, "iap_scraped_at": None})


async def keywords_untold(it: Pipeline) -> None:
    await insert(it, "crawl_state", {"name": "unannounced", "value": '["sleep"]', "updated_at": THEN})


OURS = [
    charts_due,
    keyword_pending,
    keyword_due_again,
    keyword_waited,
    seed_named,
    app_unranked,
    app_without_purchases,
    keywords_untold,
]


@pytest.mark.spec("A4-10", "G2-03", "B2-02", "B7-01")
@pytest.mark.parametrize("kind", OURS)
async def test_each_kind_of_work_alone_begins_a_cycle_that_gets_it_done(
    pipeline: Opened, kind: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        Scripted(monkeypatch, it).usual = [found(5, "Sleep Sounds")]
        assert not await something_to_crawl()
        await kind(it)  # type: ignore[operator]
        assert await something_to_crawl()

        for _ in range(3):  # what one cycle finds the next one may have to do
            await cycle(it)
            await write(it, "delete from crawl_keywords where depth > 0 or source = 'category_scan'")

        assert not await something_to_crawl()


@pytest.mark.spec("A4-10", "G2-03", "B3-01", "G7-09")
async def test_the_work_of_others_and_what_is_not_due_yet_begin_no_cycle(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(it, {"track_id": 1}, {"track_id": 2, "enrichment_source": "itunes", "enriched_at": THEN})
        await insert_apps(it, {"track_id": 3, **COMPLETE}, {"track_id": 4, "next_enrich_at": THEN, **COMPLETE})
        await insert_keywords(
            it,
            {"keyword": "later", "status": "searched", "next_search_at": NEVER},
            {"keyword": "never", "status": "failed"},
        )
        # A chart of the second tier is due after fourteen days, not after the seven of the first; a paused one never.
        await write(it, "update category_scans set next_scan_at = '2026-01-01 00:10:00' where priority = 'medium'")
        await write(it, "update category_scans set priority = 'paused', next_scan_at = '' where priority = 'low'")

        assert (await assess()) == Gaps(unenriched=True)
        assert not await something_to_crawl()
        assert await cycle(it) == {}
        assert [row.status for row in await it.sql("select status from pipeline_log where task = 'crawl'")] == ["idle"]


@pytest.mark.spec("A4-08", "B2-02", "G2-02", "B1-08")
async def test_an_idle_cycle_on_a_full_database_reads_no_more_rows_than_it_has_looks(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(it, *({"track_id": number, **COMPLETE} for number in range(1, 5_001)))
        await insert_keywords(
            it,
            *({"keyword": f"k{n}", "status": "searched", "next_search_at": NEVER} for n in range(5_000)),
        )
        seeds = ({"keyword": f"s{n}", "created_at": THEN, "planted_at": THEN} for n in range(2_000))
        await insert(it, "crawl_seeds", *seeds)
        assert await run_task(it, "crawl") == "idle"  # the first time it also asks for its plans

        assert await run_task(it, "crawl") == "idle"

        runs = await it.sql(
            "select status, phase, rows_read from pipeline_log where task = 'crawl' order by created_at"
        )
        assert [run.phase for run in runs] == ["crawl_idle", "crawl_idle"]
        assert runs[-1].rows_read <= 80  # eight looks; the plans of each are tested by themselves


@pytest.mark.spec("A4-11", "B2-02", "B2-06")
async def test_whether_many_apps_lack_their_purchases_is_counted_to_five_hundred_and_one(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(it, *({"track_id": n, **COMPLETE, "iap_scraped_at": None} for n in range(1, 501)))
        assert not await many_without_purchases()
        await insert_apps(it, *({"track_id": n, **COMPLETE, "iap_scraped_at": None} for n in range(501, 3_000)))
        assert await many_without_purchases()

        engine = await shared.app._opened()
        before = engine.meter.read_by("")
        assert await many_without_purchases()
        assert engine.meter.read_by("") - before <= 501
