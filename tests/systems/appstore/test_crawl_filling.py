"""Ranking fill and purchases: what the crawl adds to apps that were enriched."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore import outside
from penstock_systems.appstore.crawl.purchases import Checked
from penstock_systems.appstore.store.facts import Found, PageFacts, Purchase
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import THEN, Scripted, crawling, cycle, found, insert_apps, insert_keywords

COMPLETE = {"enrichment_source": "scraper", "enriched_at": THEN, "ranked_at": THEN, "iap_scraped_at": THEN}
UNRANKED = {**COMPLETE, "ranked_at": None}
UNCHECKED = {**COMPLETE, "iap_scraped_at": None}
CHECKED = "select track_id, in_app_purchases, iap_scraped_at, iap_scrape_status from app_registry order by track_id"


# -- ranking fill -----------------------------------------------------------------------------------------


@pytest.mark.spec("B2-24", "B2-03", "B2-20")
async def test_an_app_without_a_rank_is_searched_for_by_its_five_best_keywords(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["calm sleep"] = [found(8, "Night Owls"), found(5, "Calm Sleep Meditation")]
        app = {"track_id": 5, "track_name": "Calm Sleep Meditation", "subtitle": "Relax and Breathe", **UNRANKED}
        await insert_apps(it, app)
        await insert_keywords(
            it, {"keyword": "relax breathe", "status": "searched", "next_search_at": "2027-01-01 00:00:00"}
        )
        stats = await cycle(it)

        assert (stats["phase"], stats["apps_ranked"], stats["keywords_searched"]) == ("ranking_fill", 1, 5)
        # Somebody has searched for the second one already.
        assert sorted(term for _, term in store.asked) == [
            "calm breathe",
            "calm relax",
            "calm sleep",
            "calm sleep meditation",
            "sleep meditation",
        ]
        listed = await it.sql("select keyword, depth, status from crawl_keywords where source = 'ranking_fill'")
        assert len(listed) == 13
        assert {row.depth for row in listed} == {3}  # they lead no further: nothing is made of the owls
        assert sum(row.status == "pending" for row in listed) == 8
        assert await it.sql("select keyword, rank from crawl_rankings where track_id = 5") == [("calm sleep", 2)]


@pytest.mark.spec("B2-24")
async def test_an_app_that_ranks_for_nothing_is_marked_as_tried_and_one_without_words_too(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        await insert_apps(
            it, {"track_id": 5, "track_name": "Zzyzx", **UNRANKED}, {"track_id": 6, "track_name": "!!!", **UNRANKED}
        )
        stats = await cycle(it)
        assert (stats["apps_ranked"], len(store.asked)) == (0, 1)
        assert await it.sql("select track_id from app_registry where ranked_at is null") == []
        assert not await cycle(it)


@pytest.mark.spec("B2-24")
async def test_ten_apps_a_cycle_the_best_known_first(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        await insert_apps(
            it,
            *(
                {"track_id": n, "track_name": f"zebra{chr(97 + n)}", "rating_count": n, **UNRANKED}
                for n in range(1, 13)
            ),
        )
        await cycle(it)
        assert [term for _, term in store.asked] == [f"zebra{chr(97 + n)}" for n in range(12, 2, -1)]
        left = await it.sql("select track_id from app_registry where ranked_at is null order by track_id")
        assert [row.track_id for row in left] == [1, 2]


@pytest.mark.spec("B2-24")
async def test_an_app_whose_searches_were_refused_keeps_its_place(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        Scripted(monkeypatch, it).usual = ps.Throttled("not now")
        await insert_apps(it, {"track_id": 5, "track_name": "Calm Sleep", **UNRANKED})
        await cycle(it)
        assert await it.sql("select track_id from app_registry where ranked_at is null") == [(5,)]
        states = await it.sql("select status, attempts from crawl_keywords")
        assert {tuple(row) for row in states} == {("pending", 0)}


@pytest.mark.spec("B2-05", "B2-24")
async def test_beside_keyword_mapping_no_keyword_is_searched_twice(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)
        store.answers["calm sleep"] = [found(5, "Calm Sleep")]
        await insert_apps(it, {"track_id": 5, "track_name": "Calm Sleep", **UNRANKED})
        await insert_keywords(it, "calm sleep", "other")
        await cycle(it)
        terms = [term for _, term in store.asked]
        assert sorted(terms) == ["calm sleep", "other", "sleep"]
        assert await it.sql("select track_id from app_registry where ranked_at is null") == []


# -- purchases --------------------------------------------------------------------------------------------


def paging(monkeypatch: pytest.MonkeyPatch, it: Pipeline, answers: dict[int, Any]) -> list[tuple[float, int]]:
    asked: list[tuple[float, int]] = []

    async def page(track_id: int, refresh: bool = False) -> PageFacts:
        asked.append((it.running.now.timestamp(), track_id))
        answer = answers.get(track_id, ())
        if isinstance(answer, Exception):
            raise answer
        return PageFacts(track_id=track_id, purchases=tuple(answer))

    monkeypatch.setattr(outside.store, "page", page)
    return asked


@pytest.mark.spec("B2-25", "G2-46")
async def test_purchases_are_kept_as_a_list_and_none_at_all_as_a_stamp(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        many = [Purchase(f"Pack {n}", "$1.99", 1.99) for n in range(300)]
        paging(
            monkeypatch,
            it,
            {
                1: [Purchase("Pro <b>", "$4.99", 4.99), Purchase("Tip", "free", None)],
                3: many,
                4: ps.Gone("404"),
                5: ps.Unparsable("no page", reason="bad_shape"),
            },
        )
        await insert_apps(it, *({"track_id": n, **UNCHECKED} for n in range(1, 6)))
        stats = await cycle(it)

        assert (stats["phase"], stats["enrichment"]["purchases_checked"]) == ("adaptive", 5)
        rows = {row.track_id: row for row in await it.sql(CHECKED)}
        assert rows[1].in_app_purchases == (
            '[{"name":"Pro <b>","price":"$4.99","amount":4.99},{"name":"Tip","price":"free","amount":null}]'
        )
        assert (rows[2].in_app_purchases, rows[2].iap_scrape_status) == (None, "none")
        assert rows[3].in_app_purchases.count("Pack") == 100
        assert [rows[n].iap_scrape_status for n in range(1, 6)] == ["found", "none", "found", "gone", "unparsable"]
        assert None not in {row.iap_scraped_at for row in rows.values()}
        assert not await cycle(it)  # nothing is picked again


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B2-25")
def test_what_is_known_of_an_apps_purchases() -> None:
    checked = Checked(track_id=1, scrape_status="found", iaps=(Purchase("Pro", "$4.99"),))
    assert checked.has_iaps
    assert not Checked(track_id=1, scrape_status="none").has_iaps


@pytest.mark.spec("B2-06", "B2-25", "A15-24")
@pytest.mark.parametrize("gap, most", [(500, 10), (501, 20)])
async def test_a_large_gap_is_filled_in_larger_portions_three_at_a_time(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, gap: int, most: int
) -> None:
    async with crawling(pipeline) as it:
        asked = paging(monkeypatch, it, {})
        await insert_apps(it, *({"track_id": n, "rating_count": n, **UNCHECKED} for n in range(1, gap + 1)))
        await cycle(it)
        assert [track_id for _, track_id in asked] == list(range(gap, gap - most, -1))  # the best known first
        times = sorted({at for at, _ in asked})
        assert [sum(at == time for at, _ in asked) for time in times] == [3] * (most // 3) + [most % 3]
        assert {round(later - earlier, 3) for earlier, later in pairwise(times)} == {1.5}


@pytest.mark.spec("B2-25")
async def test_a_refusal_leaves_apps_unstamped_and_a_single_bad_page_does_not_stay_at_the_head(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        paging(monkeypatch, it, {1: ps.Unavailable("500"), 4: ps.Throttled("403")})
        await insert_apps(it, *({"track_id": n, "rating_count": -n, **UNCHECKED} for n in range(1, 9)))
        stats = await cycle(it)
        rows = {row.track_id: row.iap_scrape_status for row in await it.sql(CHECKED)}
        # The first three: one page is broken. Of the next three one was refused, and then nobody asks any more.
        assert rows == {1: "failed", 2: "none", 3: "none", 4: None, 5: "none", 6: "none", 7: None, 8: None}
        assert stats["errors"] == ["purchases: Unavailable: 500", "purchases: Throttled: 403"]


@pytest.mark.spec("B2-25")
async def test_when_no_page_can_be_had_none_is_called_bad(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crawling(pipeline) as it:
        paging(monkeypatch, it, {n: ps.Unavailable("503") for n in range(1, 9)})
        await insert_apps(it, *({"track_id": n, **UNCHECKED} for n in range(1, 9)))
        await cycle(it)
        assert {row.iap_scraped_at for row in await it.sql(CHECKED)} == {None}


async def test_purchases_come_from_the_stand_ins_own_pages(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        apps = [it.store.catalogue.app(n) for n in range(40)]
        sold = [app for app in apps if it.store.catalogue.sold(app.index, 0, "us")][:10]
        await insert_apps(it, *({"track_id": app.track_id, **UNCHECKED} for app in sold))
        await cycle(it)
        rows = {row.track_id: row.iap_scrape_status for row in await it.sql(CHECKED)}
        assert rows == {app.track_id: "found" if app.purchases else "none" for app in sold}


# -- the end of a cycle -----------------------------------------------------------------------------------


async def test_no_app_is_searched_for_after_the_last_moment_of_a_cycle_and_it_keeps_its_place(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = Scripted(monkeypatch, it)

        async def slow(term: str, limit: int = 25) -> list[Found]:
            await asyncio.sleep(40)
            return await store.search(term, limit)

        monkeypatch.setattr(outside.store, "search", slow)
        apps = (
            {"track_id": n, "track_name": f"zebra{chr(97 + n)}", "rating_count": n, **UNRANKED} for n in range(1, 11)
        )
        await insert_apps(it, *apps)

        assert (await cycle(it))["keywords_searched"] == 7  # the seventh ends after 286 s

        left = await it.sql("select track_id from app_registry where ranked_at is null order by track_id")
        assert [row.track_id for row in left] == [1, 2, 3]


async def test_no_purchases_are_looked_for_after_the_last_moment_of_a_cycle(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        paging(monkeypatch, it, {})
        page = outside.store.page

        async def slow(track_id: int, refresh: bool = False) -> PageFacts:
            await asyncio.sleep(95)
            return await page(track_id, refresh)

        monkeypatch.setattr(outside.store, "page", slow)
        await insert_apps(it, *({"track_id": n, "rating_count": n, **UNCHECKED} for n in range(1, 11)))

        assert (await cycle(it))["enrichment"]["purchases_checked"] == 9  # the third portion ends after 288 s

        left = await it.sql("select track_id from app_registry where iap_scraped_at is null")
        assert [row.track_id for row in left] == [1]
