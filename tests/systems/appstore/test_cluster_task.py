"""The clustering task: what it reads, writes and tells, in which order, and what a death in the middle leaves."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import stages as stages  # what reacts to events is there once this is imported
from penstock_systems.appstore.cluster import crawled, libraries, saving, standing, task
from penstock_systems.appstore.crawl.rankings import CHANGED_AT
from penstock_systems.appstore.scores import competitiveness
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert, insert_apps, insert_keywords, run_task, write

THEMES = {
    "sleep": ("sleep", "sleep sounds", "white noise", "snore", "rain noise", "lullaby"),
    "money": ("budget", "expense tracker", "bills", "savings", "wallet", "money planner"),
    "plants": ("plants", "garden", "watering", "flower identify", "leaf", "botany"),
}
APPS = 12  # a theme


async def fill(it: Pipeline, themes: Sequence[str] = tuple(THEMES), *, ratings: int = 1_000) -> None:
    """Keywords of a theme share its apps, each in an order of its own."""
    keywords, apps, rankings = [], [], []
    for name in themes:
        number = list(THEMES).index(name)
        ids = [1_000 * (number + 1) + at for at in range(APPS)]
        apps += [
            {
                "track_id": id,
                "track_name": f"{name} {id}",
                "rating_count": ratings * (APPS - at),
                "average_rating": 3.0,
                "developer_id": id,
                "primary_genre": name,
            }
            for at, id in enumerate(ids)
        ]
        for at, keyword in enumerate(THEMES[name]):
            keywords.append({"keyword": keyword, "status": "searched", "demand": 60.0 + at})
            ranked = ids[at:] + ids[:at]
            rankings += [
                {"keyword": keyword, "track_id": id, "rank": rank, "crawled_at": "2026-01-01 00:00:00"}
                for rank, id in enumerate(ranked[:8], 1)
            ]
    await insert_apps(it, *apps)
    await insert_keywords(it, *keywords)
    await insert(it, "crawl_rankings", *rankings)
    await changed(it)


async def changed(it: Pipeline) -> None:
    """Note that a ranking changed, as the crawl does."""
    now = await shared.db.now()
    async with it.running.unit():
        shared.db.upsert("crawl_state", {"name": CHANGED_AT, "value": now, "updated_at": now}, key="name")


@asynccontextmanager
async def clustering(pipeline: Opened, **given: Any) -> AsyncIterator[Pipeline]:
    """With the tasks at rest, and nobody who reacts to what is told: this is about one stage."""
    async with crawling(pipeline, **given) as it:
        it.running.answering(shared.events)
        yield it


def by_the_article(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "settings", msgspec.structs.replace(shared.settings, scores="article"))


async def markets(it: Pipeline) -> dict[int, Any]:
    rows = await it.sql(
        "select id, lineage_id, name, opportunity_score, demand, competitiveness, fragmentation, apps, keywords, "
        "computed_at from market_clusters where ended_at is null order by id limit 1000"
    )
    return {row.id: row for row in rows}


async def keywords_of(it: Pipeline) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for row in await it.sql("select cluster_id, keyword from cluster_keywords order by cluster_id, keyword limit 1000"):
        found.setdefault(row.cluster_id, set()).add(row.keyword)
    return found


def told(it: Pipeline) -> list[list[int]]:
    """The markets of each event that was delivered."""
    payloads = [attempt.payload for attempt in it.running.delivered(shared.events)]
    return [payload.cluster_ids for payload in payloads if isinstance(payload, shared.ClustersReady)]


@pytest.mark.spec("B5-01", "B8-T16", "B8-T17", "B8-T18")
async def test_keywords_and_apps_are_laid_out_in_markets(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        assert await run_task(it, "cluster") == "done"
        assert sorted(map(sorted, (await keywords_of(it)).values())) == sorted(map(sorted, THEMES.values()))
        found = await markets(it)
        assert len(found) == 3
        assert {row.apps for row in found.values()} == {APPS}
        assert {row.keywords for row in found.values()} == {6}
        apps = await it.sql("select cluster_id, track_id, weight from cluster_apps order by track_id limit 100")
        assert len(apps) == 3 * APPS
        assert len({(row.cluster_id, row.track_id // 1_000) for row in apps}) == 3
        assert max(row.weight for row in apps) == 1.0
        assert min(row.weight for row in apps) > 0.0


@pytest.mark.spec("B5-03")
async def test_a_market_is_scored_by_what_is_known_of_its_keywords_and_apps(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_the_article(monkeypatch)
    async with clustering(pipeline) as it:
        await fill(it)
        await write(it, "update app_registry set competitiveness_score = 40")
        await run_task(it, "cluster")
        market = (await markets(it))[1]
        assert market.demand == 62.5
        assert market.competitiveness == 40.0
        shares = [1_000 * (APPS - at) for at in range(APPS)]
        dispersed = 100 * (1 - sum((each / sum(shares)) ** 2 for each in shares))
        assert market.fragmentation == pytest.approx(dispersed, abs=1e-3)
        assert market.opportunity_score == pytest.approx(0.4 * 62.5 + 0.35 * 60 + 0.25 * dispersed, abs=1e-3)


async def test_what_no_agent_has_scored_yet_is_scored_by_the_same_formula(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        before = (await markets(it))[1]
        scores = await it.sql("select track_id, rating_count, average_rating from app_registry limit 100")
        for row in scores:
            value = competitiveness(row.rating_count, row.average_rating, None)
            await write(
                it,
                "update app_registry set competitiveness_score = :value where track_id = :id",
                value=value,
                id=row.track_id,
            )
        await changed(it)
        await run_task(it, "cluster")
        after = (await markets(it))[1]
        assert after.competitiveness == before.competitiveness


@pytest.mark.spec("B5-01", "A4-10")
async def test_it_is_idle_while_no_ranking_has_changed_since_the_last_run(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        assert await run_task(it, "cluster") == "idle"
        await fill(it, ["sleep"])
        assert await run_task(it, "cluster") == "done"
        assert await run_task(it, "cluster") == "idle"
        await it.running.advance(hours=6)
        await changed(it)
        assert await run_task(it, "cluster") == "done"


@pytest.mark.spec("B5-01", "A4-10")
async def test_one_keyword_with_other_rankings_is_enough_for_a_run(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        ends = []
        for more in (0, 1, 0, 1):  # of 18 keywords, every six hours
            if more:
                await changed(it)
            ends.append(await run_task(it, "cluster"))
            await it.running.advance(hours=6)
        assert ends == ["done", "done", "idle", "done"]


@pytest.mark.spec("B5-05")
async def test_the_best_markets_are_reported_and_the_best_comes_first(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "TOP", 2)
    by_the_article(monkeypatch)
    async with clustering(pipeline) as it:
        await fill(it)
        await write(it, "update crawl_keywords set demand = 95 where keyword in ('leaf', 'garden', 'plants', 'botany')")
        await run_task(it, "cluster")
        found = await markets(it)
        best = sorted(found, key=lambda id: (-found[id].opportunity_score, id))[:2]
        assert told(it) == [best]
        assert "botany" in (await keywords_of(it))[best[0]]


@pytest.mark.spec("B5-05")
async def test_where_there_is_no_market_nothing_is_reported(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await insert_keywords(it, "alone")
        await insert(it, "crawl_rankings", {"keyword": "alone", "track_id": 1, "rank": 1, "crawled_at": "2026-01-01"})
        await changed(it)
        assert await run_task(it, "cluster") == "done"
        assert await markets(it) == {}
        assert told(it) == []


@pytest.mark.spec("B5-07", "B7-02")
async def test_it_clusters_then_lends_priority_then_tells_and_logs_what_it_did(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    order: list[str] = []
    for name in ("save", "reprioritise", "_tell"):
        monkeypatch.setattr(task, name, noting(order, name, getattr(task, name)))
    caplog.set_level(logging.INFO, "penstock_systems.appstore")
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        assert order == ["save", "reprioritise", "_tell"]
        [line] = [record for record in caplog.records if record.message == "cluster.finished"]
        facts = line.__dict__["facts"]
        assert (facts["clusters_found"], facts["clusters_new"], facts["clusters_told"]) == (3, 3, 3)
        steps = await it.sql("select name, status, counts from pipeline_steps order by started_at, name")
        assert {row.name for row in steps} == {"read", "compute", "save", "reprioritise"}
        [run] = await it.sql("select name, status, error from pipelines")
        assert (run.name, run.status, run.error) == ("cluster", "done", None)


def noting(order: list[str], name: str, function: Any) -> Any:
    def noted(*given: Any, **named: Any) -> Any:
        order.append(name)
        return function(*given, **named)

    return noted


@pytest.mark.spec("B5-04", "B8-T19", "B8-T20")
async def test_a_market_keeps_its_id_and_its_history_over_runs(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        first = await keywords_of(it)
        await insert_keywords(it, {"keyword": "sleep timer", "status": "searched"})
        await insert(
            it,
            "crawl_rankings",
            *(
                {"keyword": "sleep timer", "track_id": 1_000 + at, "rank": at + 1, "crawled_at": "2026-01-01 06:00:00"}
                for at in range(8)
            ),
        )
        await changed(it)
        await run_task(it, "cluster")
        second = await keywords_of(it)
        [grown] = [id for id in first if "sleep" in first[id]]
        assert second == first | {grown: first[grown] | {"sleep timer"}}
        lineages = await it.sql(
            "select lineage_id, cluster_id, run_at, overlap from cluster_lineages where cluster_id = :id order by run_at",
            id=grown,
        )
        assert [row.lineage_id for row in lineages] == [grown, grown]
        assert [row.overlap for row in lineages] == [0.0, pytest.approx(6 / 7, abs=1e-3)]
        snapshots = await it.sql(
            "select snapshot_at, keywords, opportunity_score from cluster_snapshots where cluster_id = :id "
            "order by snapshot_at",
            id=grown,
        )
        assert [row.keywords for row in snapshots] == [6, 7]


@pytest.mark.spec("B5-04")
async def test_a_market_whose_keywords_are_gone_ends_and_keeps_its_snapshots(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        [plants] = [id for id, words in (await keywords_of(it)).items() if "botany" in words]
        await write(it, "delete from crawl_rankings where track_id >= 3000")
        await changed(it)
        await run_task(it, "cluster")
        assert plants not in await markets(it)
        assert plants not in await keywords_of(it)
        assert await it.sql("select 1 from cluster_apps where cluster_id = :id limit 1", id=plants) == []
        [ended] = await it.sql("select ended_at from market_clusters where id = :id", id=plants)
        assert ended.ended_at is not None
        assert len(await it.sql("select 1 from cluster_snapshots where cluster_id = :id", id=plants)) == 1


@pytest.mark.spec("B5-02")
async def test_a_second_run_over_the_same_rankings_writes_no_member_again(pipeline: Opened) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        await write(it, "update crawl_keywords set typed = 0, typed_due = null")
        before = await everything(it)
        await changed(it)
        await run_task(it, "cluster")
        [saved] = await it.sql("select counts from pipeline_steps where name = 'save' order by started_at desc limit 1")
        assert msgspec.json.decode(saved.counts)["rows"] == 3 * 3  # a market, its snapshot and its lineage
        assert {name: rows for name, rows in (await everything(it)).items() if name in MEMBERS} == {
            name: rows for name, rows in before.items() if name in MEMBERS
        }


MEMBERS = ("cluster_keywords", "cluster_apps", "cluster_relations")
TABLES = {
    "market_clusters": "select id, lineage_id, name, opportunity_score, apps, keywords, first_seen_at, computed_at, "
    "ended_at from market_clusters order by id limit 1000",
    "cluster_keywords": "select cluster_id, keyword, weight from cluster_keywords order by cluster_id, keyword limit 1000",
    "cluster_apps": "select cluster_id, track_id, weight from cluster_apps order by cluster_id, track_id limit 1000",
    "cluster_relations": "select a, b, kind, weight from cluster_relations order by a, b, kind limit 1000",
    "cluster_lineages": "select cluster_id, run_at, lineage_id, overlap from cluster_lineages order by cluster_id, run_at "
    "limit 1000",
    "cluster_snapshots": "select cluster_id, snapshot_at, opportunity_score, apps, keywords from cluster_snapshots "
    "order by cluster_id, snapshot_at limit 1000",
    "priority_boosts": "select kind, subject, boost, base from priority_boosts order by kind, subject limit 1000",
}


async def everything(it: Pipeline) -> dict[str, list[tuple[Any, ...]]]:
    """Sorted here: two databases may sort text differently."""
    return {name: sorted(map(tuple, await it.sql(sql)), key=repr) for name, sql in TABLES.items()}


async def split_merged_and_ended(it: Pipeline) -> None:
    """Half of one market's keywords rank other apps from now on, two markets share theirs."""
    await write(it, "delete from crawl_rankings where keyword in ('sleep', 'sleep sounds', 'white noise')")
    lists = {keyword: range(5_000, 5_008) for keyword in ("sleep", "sleep sounds", "white noise")}
    lists |= {keyword: range(2_000, 2_008) for keyword in THEMES["plants"]}
    await write(it, "delete from crawl_rankings where track_id >= 3000 and track_id < 4000")
    await insert(
        it,
        "crawl_rankings",
        *(
            {"keyword": keyword, "track_id": id, "rank": rank, "crawled_at": "2026-01-01 06:00:00"}
            for keyword, ids in lists.items()
            for rank, id in enumerate(ids, 1)
        ),
    )
    await changed(it)


async def test_hostile_keywords_are_members_like_others_and_do_no_harm_in_a_name(pipeline: Opened) -> None:
    hostile = [
        "=cmd|' /c calc'!a0",
        "<script>alert(1)</script>",
        "abc\u202edcba\u2066",
        "عادات يومية",
        "👩‍👩‍👧 🇯🇵",
        "w" * 300,
    ]
    async with clustering(pipeline) as it:
        await insert_keywords(it, *({"keyword": each, "status": "searched"} for each in hostile))
        await insert_apps(it, *({"track_id": id, "rating_count": 10} for id in range(1, 9)))
        await insert(
            it,
            "crawl_rankings",
            *(
                {"keyword": keyword, "track_id": id, "rank": id, "crawled_at": "2026-01-01 00:00:00"}
                for keyword in hostile
                for id in range(1, 9)
            ),
        )
        await changed(it)
        await run_task(it, "cluster")
        found = await keywords_of(it)
        assert set().union(*found.values()) == set(hostile)
        for market in (await markets(it)).values():
            assert not set("\u202e\u2066\n\x1b") & set(market.name)
            assert 0 < len(market.name) <= 90


@pytest.mark.fault("F03")
@pytest.mark.spec("B5-02", "B5-04")
async def test_a_death_in_the_middle_of_a_run_changes_nothing_in_the_end(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "ROWS_A_UNIT", 10)
    ends = []
    for nth in (0, 3, 5, 7, 9):
        async with clustering(pipeline) as it:
            await fill(it)
            await run_task(it, "cluster")
            await split_merged_and_ended(it)
            if nth:
                await it.running.crash(at="commit.after", nth=nth)
            await run_task(it, "cluster")
            assert it.running.workers_started == (2 if nth else 1)
            ends.append(await everything(it))
            assert len(told(it)) == 2
    assert any(row[-1] is not None for row in ends[0]["market_clusters"])
    assert any(row[2] == "split" for row in ends[0]["cluster_relations"])
    assert any(row[2] == "merge" for row in ends[0]["cluster_relations"])
    for end in ends[1:]:
        assert end == ends[0]


async def test_a_run_that_fails_says_why_and_the_next_one_makes_up_for_it(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        with monkeypatch.context() as broken:
            broken.setattr(task, "reprioritise", failing)
            await it.running.advance(seconds=1)
            await shared.app.crons.trigger("cluster")
            await it.running.drain()
        [run] = await it.sql("select status, error from pipelines")
        assert (run.status, run.error) == ("failed", "ConnectionError: no answer")
        assert told(it) == []
        assert await run_task(it, "cluster") == "done"
        assert len(told(it)) == 1


async def failing(*_: Any, **__: Any) -> None:
    raise ConnectionError("no answer")


def test_without_its_libraries_it_names_the_extra() -> None:
    with pytest.raises(ps.BadConfig, match=r"no_such_library.*pip install 'penstock\[cluster\]'"):
        libraries._needed("no_such_library.part")


# -- feedback -------------------------------------------------------------------------------------------------


async def priorities(it: Pipeline) -> tuple[dict[int, int], dict[str, int]]:
    apps = await it.sql("select track_id, enrich_priority from app_registry order by track_id limit 1000")
    words = await it.sql("select keyword, priority from crawl_keywords order by keyword limit 1000")
    return {row.track_id: row.enrich_priority for row in apps}, {row.keyword: row.priority for row in words}


@pytest.mark.spec("B5-06", "G2-29")
async def test_a_good_market_lends_priority_to_its_apps_and_keywords(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_the_article(monkeypatch)
    async with clustering(pipeline) as it:
        await fill(it, ["sleep", "money"])
        await write(it, "update crawl_keywords set demand = 100 where keyword in ('sleep', 'snore', 'lullaby')")
        await write(it, "update app_registry set competitiveness_score = case when track_id < 2000 then 5 else 90 end")
        await write(
            it, "update crawl_keywords set demand = 95 where keyword in ('rain noise', 'white noise', 'sleep sounds')"
        )
        await write(it, "update app_registry set enrich_priority = 95 where track_id = 1000")
        await write(it, "update crawl_keywords set priority = 48 where keyword = 'snore'")
        await run_task(it, "cluster")
        [step] = await it.sql("select counts from pipeline_steps where name = 'reprioritise'")
        assert msgspec.json.decode(step.counts)["apps"] == 12
        apps, words = await priorities(it)
        assert {id: priority for id, priority in apps.items() if id >= 2_000} == dict.fromkeys(range(2_000, 2_012), 0)
        assert apps[1_000] == 100
        assert {apps[id] for id in range(1_001, 1_012)} == {10}
        assert words["snore"] == 50
        assert words["sleep"] == 5
        assert words["wallet"] == 0
        for _ in range(20):
            await changed(it)
            await run_task(it, "cluster")
        assert await priorities(it) == (apps, words)
        await write(it, "update app_registry set competitiveness_score = 90")
        for _ in range(6):
            await changed(it)
            await run_task(it, "cluster")
        apps, words = await priorities(it)
        assert apps[1_000] == 95
        assert {apps[id] for id in range(1_001, 1_012)} == {0}
        assert (words["snore"], words["sleep"]) == (48, 0)
        assert await it.sql("select subject from priority_boosts limit 1") == []


async def test_rows_are_saved_in_units_of_bounded_size(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A market that is larger than a unit is written in several."""
    monkeypatch.setattr(saving, "ROWS_A_UNIT", 7)
    units: list[int] = []
    write_unit = saving._write

    async def counted(writes: Sequence[saving.Write]) -> None:
        units.append(len(writes))
        await write_unit(writes)

    monkeypatch.setattr(saving, "_write", counted)
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        assert {len(words) for words in (await keywords_of(it)).values()} == {6}
        assert len(units) > 3


async def test_what_is_read_a_page_at_a_time_is_read_whole(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with clustering(pipeline) as it:
        await fill(it)
        await run_task(it, "cluster")
        await write(it, "update market_clusters set ended_at = '2026-01-01 00:00:00' where id = 3")
        near = {(1, 2): 0.5, (2, 1): 0.5, (2, 3): 0.25}
        rows = ({"a": a, "b": b, "kind": "neighbour", "weight": weight} for (a, b), weight in near.items())
        await insert(it, "cluster_relations", *rows, {"a": 3, "b": 1, "kind": "split", "weight": 1.0})
        whole = await crawled.crawled()

        for module in (crawled, standing):
            monkeypatch.setattr(module, "PAGE_ROWS", 5)
        paged, markets = await crawled.crawled(), await standing.standing()

        assert repr(paged) == repr(whole)  # a figure that is not known equals nothing, not even itself
        assert len(whole.places.rank) == 3 * 6 * 8
        assert markets.lineages == {1: 1, 2: 2}
        assert markets.first_free == 4
        assert {id: set(words) for id, words in markets.keywords.items()} == await keywords_of(it)
        stored = await it.sql("select cluster_id, track_id, weight from cluster_apps limit 1000")
        assert {tuple(row) for row in stored} == {
            (id, app, weight) for id in (1, 2, 3) for app, weight in markets.apps.of(id).items()
        }
        assert markets.apps.of(4) == {}
        assert markets.neighbours == near


async def test_an_app_without_genre_or_developer_is_read_as_one_whose_genre_and_developer_are_unknown(
    pipeline: Opened,
) -> None:
    async with clustering(pipeline) as it:
        await insert_apps(it, {"track_id": 1}, {"track_id": 2, "primary_genre": "Games", "developer_id": 7})

        registry = (await crawled.crawled()).registry

        assert list(registry.track_id) == [1, 2]
        assert (list(registry.genre), list(registry.developer)) == ([-1, 0], [-1, 7])


async def test_what_is_not_known_of_an_app_or_a_keyword_is_no_figure_of_it(pipeline: Opened) -> None:
    known = {"average_rating": 4.5, "rating_velocity_7d": 2.0, "competitiveness_score": 40.0, "enrich_priority": 7}
    dates = {"release_date": "2026-01-02T08:00:00Z", "version_released_at": "soon"}
    async with clustering(pipeline) as it:
        await insert_apps(it, {"track_id": 1})
        await insert_apps(it, {"track_id": 2, "reviews_read": 9, "reviews_unhappy": 3, **known, **dates})
        await insert_keywords(it, {"keyword": "a", "status": "pending", "titles": 3})
        await insert_keywords(it, {"keyword": "b", "status": "searched", "demand": 50.0, "typed": 2, "priority": 5})

        found = await crawled.crawled()

        registry, words = found.registry, found.keywords
        assert [list(figures)[1] for figures in (registry.stars, registry.velocity, registry.score)] == [4.5, 2.0, 40.0]
        assert all(math.isnan(figures[0]) for figures in (registry.stars, registry.velocity, registry.score))
        assert (list(registry.released), list(registry.updated)) == ([0, date(2026, 1, 2).toordinal()], [0, 0])
        assert (list(registry.reviews), list(registry.unhappy)) == ([0, 9], [0, 3])
        assert (registry.priority_of(2), registry.priority_of(3)) == (7, None)
        assert (words.demand, words.typed, words.waiting) == ({"b": 50.0}, {"b": 2}, {"a": 3})
        assert words.priority == {"a": 0, "b": 5}


@pytest.mark.only_on("sqlite")  # PostgreSQL estimates the rows that were read
@pytest.mark.spec("G2-36", "A4-12")
async def test_a_clustering_is_skipped_over_the_rows_that_its_runs_have_read_and_not_over_a_guess(
    pipeline: Opened, request: pytest.FixtureRequest
) -> None:
    cron = shared.app.crons.tasks["cluster"]
    request.addfinalizer(partial(object.__setattr__, cron, "ceiling", cron.ceiling))

    async def ended(ceiling: int) -> Any:
        object.__setattr__(cron, "ceiling", ps.Ceiling(rows_read=ceiling))  # it is frozen
        await changed(it)
        await it.running.advance(seconds=1)
        await shared.app.crons.trigger("cluster")
        await it.running.drain()
        return (await it.sql("select status, error from pipeline_log where task = 'cluster' order by created_at"))[-1]

    async with crawling(pipeline) as it:
        await fill(it, ["sleep"])
        assert (await ended(100_000)).status == "done"
        reached = await ended(100)
        assert reached.status == "ceiling"
        read = int(reached.error.partition(" of ")[0].replace(",", ""))
        assert 100 < read < 5_000  # a guess for each run would be half a million
        assert (await ended(read)).status == "ceiling"
        assert (await ended(read + 1)).status == "done"
        assert (await ended(read + 1)).status == "ceiling"  # what that run read counts as well
