"""Keyword mapping: how pending keywords are searched, what an answer leaves behind, and the life of a keyword."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore.crawl.convergence import Window
from penstock_systems.appstore.crawl.rankings import harvest
from penstock_systems.appstore.crawl.searching import Hit
from penstock_systems.appstore.store.facts import Found
from penstock_systems.standins.appstore import Limit, Manners
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
    leap,
    write,
)

RANKS = "select keyword, track_id, rank, crawled_at from crawl_rankings order by keyword, rank"
LIFE = (
    "select status, attempts, last_error, last_searched_at, next_search_at from crawl_keywords where keyword = :keyword"
)


@pytest.mark.spec("B2-21", "B1-02")
async def test_a_hundred_keywords_are_ten_groups_with_a_second_between_them(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        await insert_keywords(it, *(f"keyword {number:03d}" for number in range(130)))
        stats = await cycle(it)

        assert (stats["phase"], stats["keywords_searched"]) == ("keyword_mapping", 100)
        groups = Counter(at for at, _ in store.asked)
        assert list(groups.values()) == [10] * 10
        times = sorted(groups)
        assert [round(later - earlier, 3) for earlier, later in pairwise(times)] == [1.0] * 9
        assert (await it.sql("select count(*) from crawl_keywords where status = 'pending'"))[0][0] == 30


@pytest.mark.spec("B2-05", "G2-05")
async def test_beside_a_scan_of_charts_fifty_keywords_are_searched(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline, charts=True) as it:
        Scripted(monkeypatch, it)
        await insert_keywords(it, *({"keyword": f"keyword {number:03d}", "priority": 9} for number in range(80)))
        stats = await cycle(it)
        assert (stats["phase"], stats["categories_scanned"], stats["keywords_searched"]) == ("category_scan", 3, 50)


@pytest.mark.spec("B2-21", "G2-22")
async def test_keywords_are_taken_by_priority_and_then_the_oldest(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        await insert_keywords(
            it,
            {"keyword": "new", "created_at": "2025-12-03 00:00:00", "priority": 0},
            {"keyword": "b old", "created_at": "2025-12-01 00:00:00", "priority": 0},
            {"keyword": "a old", "created_at": "2025-12-01 00:00:00", "priority": 0},
            {"keyword": "urgent", "created_at": "2025-12-04 00:00:00", "priority": 5},
        )
        await cycle(it)
        assert [term for _, term in store.asked] == ["urgent", "a old", "b old", "new"]


@pytest.mark.spec("B2-22", "G2-24", "G2-14", "B2-01")
async def test_an_answer_leaves_apps_ranks_keywords_and_a_searched_keyword(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["calm"] = [found(7, "Deep Rest"), found(5, "Calm Sleep", ratings=12, developer_id=3)]
        await insert_apps(it, {"track_id": 7, "enriched_at": THEN})
        await insert_keywords(it, {"keyword": "calm", "depth": 1})
        stats = await cycle(it)

        assert [tuple(row)[:3] for row in await it.sql(RANKS)] == [("calm", 7, 1), ("calm", 5, 2)]
        [keyword] = await it.sql(
            "select status, app_count, known_count, attempts, last_searched_at, next_search_at, depth"
            " from crawl_keywords where keyword = 'calm'"
        )
        assert tuple(keyword)[:4] == ("searched", 2, 1, 0)
        assert keyword.last_searched_at.startswith("2026-01-01 00:00")
        assert keyword.next_search_at.startswith("2026-01-31 00:00")
        [app] = await it.sql(
            "select track_name, rating_count, enriched_at, data_source from app_registry where track_id = 5"
        )
        assert tuple(app) == ("Calm Sleep", 12, None, "search")  # it waits to be enriched
        # Only titles that are new lead further: the others did so when they were found.
        made = await it.sql("select keyword, source, source_keyword, depth from crawl_keywords where depth > 1")
        assert sorted(map(tuple, made)) == [("calm sleep", "search", "calm", 2), ("sleep", "search", "calm", 2)]
        assert {name: stats[name] for name in ("keywords_searched", "apps_discovered", "rankings_added")} == {
            "keywords_searched": 1,
            "apps_discovered": 1,
            "rankings_added": 2,
        }
        assert stats["keywords_with_new_rankings"] == ["calm"]
        assert await it.sql("select value from crawl_state where name = 'rankings_changed_at'")


@pytest.mark.spec("B2-22", "G2-25")
async def test_an_app_that_left_the_answer_loses_its_rank_and_may_be_looked_for_again(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["calm"] = [found(1), found(2), found(3)]
        store.answers["rest"] = [found(2)]
        await insert_keywords(it, {"keyword": "calm", "depth": 3}, {"keyword": "rest", "depth": 3})
        await cycle(it)

        store.answers["calm"] = [found(3), found(4)]
        await write(it, "update crawl_keywords set status = 'pending' where keyword = 'calm'")
        await it.running.advance(hours=2)
        stats = await cycle(it)

        assert [tuple(row)[:3] for row in await it.sql(RANKS)] == [("calm", 3, 1), ("calm", 4, 2), ("rest", 2, 1)]
        assert stats["rankings_added"] == 1
        ranked = await it.sql("select track_id from app_registry where ranked_at is not null order by track_id")
        assert [row.track_id for row in ranked] == [2, 3, 4]  # 1 ranks for nothing any more


@pytest.mark.spec("B2-21", "B2-23", "G2-26")
async def test_a_search_that_fails_stops_no_other_and_does_not_stay_at_the_head(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.usual = [found(1)]
        store.answers["a broken"] = ps.Unparsable("This is no answer.", reason="bad_shape")
        store.answers["b down"] = ps.Unavailable("Answered with 500.")
        store.answers["c odd"] = RuntimeError("surprise\0")
        await insert_keywords(it, "a broken", "b down", "c odd", *(f"k{number}" for number in range(15)))
        stats = await cycle(it)

        assert stats["keywords_searched"] == 15
        assert len(stats["errors"]) == 3
        for keyword, error in (("a broken", "Unparsable"), ("b down", "Unavailable"), ("c odd", "RuntimeError")):
            [row] = await it.sql(LIFE, keyword=keyword)
            assert (row.status, row.attempts) == ("waiting", 1)
            assert row.last_error.startswith(error)
            assert row.next_search_at.startswith("2026-01-01 01:00")


@pytest.mark.spec("B2-23", "G2-26")
async def test_after_five_failures_with_ever_longer_waits_a_keyword_has_failed(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["broken"] = ps.Unparsable("This is no answer.", reason="bad_shape")
        await insert_keywords(it, "broken")
        waits = []
        for hours in (0, 1, 2, 4, 8):
            await leap(it, hours=hours, minutes=1)
            assert await cycle(it)
            [row] = await it.sql(LIFE, keyword="broken")
            waits.append((row.status, row.attempts))
            assert not await cycle(it)  # it is not due before its time
        assert waits == [("waiting", 1), ("waiting", 2), ("waiting", 3), ("waiting", 4), ("failed", 5)]
        assert len(store.asked) == 5
        await leap(it, days=400)
        assert not await cycle(it)


@pytest.mark.spec("B2-23")
async def test_a_searched_keyword_is_searched_again_after_thirty_days_and_a_success_forgives_failures(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        await insert_keywords(it, {"keyword": "calm", "attempts": 4, "last_error": "once"})
        await cycle(it)
        [row] = await it.sql(LIFE, keyword="calm")
        assert (row.status, row.attempts, row.last_error) == ("searched", 0, None)
        await leap(it, days=29)
        assert not await cycle(it)
        await leap(it, days=1, minutes=1)
        assert (await cycle(it))["keywords_searched"] == 1
        assert len(store.asked) == 2


@pytest.mark.spec("B2-21")
async def test_when_the_pace_pushes_back_keywords_stay_pending_uncharged_and_the_rest_waits(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["k04"] = ps.Throttled("itunes-search takes no more for 30 s.", retry_after=30)
        await insert_keywords(it, *(f"k{number:02d}" for number in range(30)))
        stats = await cycle(it)

        assert len(store.asked) == 5  # the rest of its group is not even sent
        assert stats["keywords_searched"] == 4
        assert (stats["held_back"], stats["error"]) == ("itunes-search takes no more for 30 s.", None)
        [row] = await it.sql(LIFE, keyword="k04")
        assert tuple(row) == ("pending", 0, None, None, None)
        assert (await it.sql("select count(*) from crawl_keywords where status = 'pending'"))[0][0] == 26


@pytest.mark.spec("B2-21")
async def test_a_search_asks_for_25_results_and_keeps_them_all(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.usual = [found(number) for number in range(1, 41)]
        await insert_keywords(it, "calm")
        await cycle(it)
        assert [tuple(row) for row in await it.sql("select max(rank), count(*) from crawl_rankings")] == [(25, 25)]


@pytest.mark.spec("B2-21", "B2-08")
async def test_a_real_limit_on_searches_loses_no_keyword_and_charges_none(pipeline: Opened) -> None:
    strict = Manners(limits={"search": Limit(20)}, latency_seconds={"search": 0.25}, faults=())
    async with crawling(pipeline, manners=strict) as it:
        await insert_keywords(it, *(f"budget {number:02d}" for number in range(60)))
        searched = 0
        for _ in range(3):
            searched += (await cycle(it)).get("keywords_searched", 0)
            await it.running.advance(minutes=5)
        assert 20 <= searched <= 60
        rows = await it.sql("select status, attempts from crawl_keywords where source = 'test'")
        assert {row.attempts for row in rows} == {0}
        assert Counter(row.status for row in rows) == Counter({"searched": searched, "pending": 60 - searched})


@pytest.mark.spec("B2-23")
async def test_when_no_request_gets_through_it_is_the_stores_fault_and_no_keyword_pays(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.usual = ps.Unavailable("Answered with 503.")
        await insert_keywords(it, *(f"k{number:02d}" for number in range(30)))
        stats = await cycle(it)
        assert len(store.asked) == 10
        assert stats["errors"] == ["search: Answered with 503."]
        assert {tuple(row)[:2] for row in await it.sql("select status, attempts from crawl_keywords")} == {
            ("pending", 0)
        }


@pytest.mark.spec("B2-27")
async def test_seeds_that_a_person_names_become_keywords_once(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.usual = ps.Throttled("not now")
        await insert_keywords(it, {"keyword": "known", "status": "searched", "next_search_at": "2027-01-01 00:00:00"})
        for seed in ("  Budget-Planner! ", "budget planner", "睡眠", "?!", "known"):
            await insert(it, "crawl_seeds", {"keyword": seed, "created_at": THEN})
        await cycle(it)

        rows = await it.sql(
            "select keyword, source, depth, status, priority from crawl_keywords order by priority, keyword"
        )
        assert sorted(map(tuple, rows)) == [
            ("budget planner", "seed", 0, "pending", 10),
            ("known", "test", 0, "searched", 10),
            ("睡眠", "seed", 0, "pending", 10),
        ]
        assert (await it.sql("select count(*) from crawl_seeds where planted_at is null"))[0][0] == 0


@pytest.mark.spec("B8-T28")
async def test_what_was_answered_within_the_hour_is_not_asked_for_again(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["calm"] = [found(2), found(1)]
        await insert_keywords(it, {"keyword": "calm", "depth": 3})
        await cycle(it)
        again = "update crawl_keywords set status = 'pending', next_search_at = null"
        await write(it, again)
        await it.running.advance(minutes=50)
        stats = await cycle(it)
        assert (len(store.asked), stats["keywords_searched"]) == (1, 0)
        [row] = await it.sql(LIFE, keyword="calm")
        assert row.status == "searched"
        assert await it.sql("select value from keyword_cache") == [("[2,1]",)]

        await write(it, again)
        await it.running.advance(minutes=20)
        await cycle(it)
        assert len(store.asked) == 2


async def test_an_answer_that_cannot_be_saved_fails_alone(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["bad"] = [found(1, "half a character \ud800")]
        store.answers["good"] = [found(2)]
        await insert_keywords(it, {"keyword": "bad", "depth": 3}, {"keyword": "good", "depth": 3})
        stats = await cycle(it)
        assert stats["keywords_searched"] == 1
        assert [tuple(row)[:3] for row in await it.sql(RANKS)] == [("good", 2, 1)]
        [row] = await it.sql(LIFE, keyword="bad")
        assert (row.status, row.attempts) == ("waiting", 1)
        assert row.last_error.startswith("BadParameter")


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B2-22", "B2-26")
def test_within_a_group_an_app_is_new_once_and_each_rank_counts_for_its_keyword() -> None:
    made = harvest(
        [
            Hit("a", [found(1, "Red Lamps"), found(2, "Blue Lamps", rank=4)]),
            Hit("b", [found(2, "Blue Lamps")]),
            Hit("c", []),
        ],
        before={"b": {2, 9}, "c": {8}},
        known={1},
        leads_on={"a": True, "b": True, "c": True},
        letters="latin",
        now=THEN,
    )
    assert (made.discovered, made.added) == (1, 2)
    assert made.derived == [("a", ["lamps", "blue lamps"]), ("b", []), ("c", [])]
    assert [(each["keyword"], each["track_id"], each["rank"]) for each in made.ranks] == [
        ("a", 1, 1),
        ("a", 2, 4),
        ("b", 2, 1),
    ]
    assert made.dropped == [("b", 9), ("c", 8)]
    assert [known for _, known in made.counts] == [1, 1, 0]
    assert made.changed == ["a", "b", "c"]


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B2-26")
def test_titles_lead_no_further_at_depth_three_or_when_nearly_all_is_known() -> None:
    window = Window()

    def converged(searches: int, *, found: int, known: int) -> bool:
        for _ in range(searches):
            window.add(found=found, known=known)
        return window.is_converged

    assert [window.leads_on(depth) for depth in range(5)] == [True, True, True, False, False]
    assert not converged(999, found=20, known=20)  # a thousand searches, not fewer
    assert converged(1, found=20, known=20)
    assert not window.leads_on(0)
    assert not converged(100, found=20, known=0)  # something new appeared
    assert converged(1_100, found=20, known=19)
    assert window.searches <= 1_100
    assert not converged(2_000, found=100, known=94)


@pytest.mark.spec("B2-26")
async def test_a_closed_world_is_crawled_to_its_end(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word finds the apps that have it in their title: a world of forty apps, reached from one seed."""
    colours = ["amber", "green", "black", "white", "ivory"]
    things = ["table", "chair", "plate", "spoon", "knife", "glass", "clock", "frame"]
    world = [found(n, f"{colours[n % 5]} {things[n // 5]}") for n in range(40)]
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)

        async def search(term: str, limit: int = 25) -> list[Found]:
            store.asked.append((0.0, term))
            return [app for app in world if set(term.split()) & set((app.title or "").split())][:limit]

        monkeypatch.setattr("penstock_systems.appstore.outside.store.search", search)
        await insert(it, "crawl_seeds", {"keyword": "amber", "created_at": THEN})
        cycles = 0
        while await cycle(it):
            cycles += 1
            assert cycles < 20
        assert await shared.db.count("app_registry") == 40
        terms = [term for _, term in store.asked]
        assert len(terms) == len(set(terms)) == await shared.db.count("crawl_keywords")
        assert max(row.depth for row in await it.sql("select depth from crawl_keywords")) <= 3
