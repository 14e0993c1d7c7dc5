"""What is saved about one app: all of it together, bounded, and nothing known is replaced by nothing."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import msgspec
import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.enrich import asking
from penstock_systems.appstore.enrich.controller import enrich
from penstock_systems.appstore.store.facts import Purchase, Ratings, Version
from tests.systems.appstore.conftest import START, Opened
from tests.systems.appstore.crawling import crawling, insert, insert_apps
from tests.systems.appstore.enriching import APP, GONE, REFUSED, Store, found, page, review, row_of, store

__all__ = ["store"]
NOW = f"{START:%Y-%m-%d %H:%M:%S}"
HOSTILE = "=cmd|' /C calc'!A0 <script>alert(1)</script> \u05d0\u05d1\u05d2 👩‍👩‍👧 '; drop table x; --"


@pytest.mark.spec("B3-05", "B3-10", "G2-44")
async def test_everything_that_the_store_says_has_its_column(pipeline: Opened, store: Store) -> None:
    store.lookup = found(
        title="Pocket Ledger", developer_id=90, developer_website="https://labs.example", score=4.6, ratings=8421,
        genre="Finance", price=1.99, formatted_price="$1.99", version="3.4", version_released="2025-12-20 08:00:00",
        release_notes="Fixes.", content_rating="4+", languages=("EN", "DE"), description="Count your money.",
    )  # fmt: skip
    store.page = page(
        subtitle="Budgets made easy", similar=(found(801), found(802)), more_by_developer=(found(803),),
        purchases=(Purchase("Pro", "$29.99", 29.99),), screenshots=("https://x.example/1.png",),
        versions=(Version("3.4", "2025-12-19 00:00:00", "More."), Version("3.3")),
    )  # fmt: skip
    store.ratings = Ratings(10, (1, 0, 2, 3, 4))
    store.reviews = (review(1), review(2, rating=1, title="Scam", body="Lost my money", version="3.3"))
    async with crawling(pipeline) as it:
        await insert_apps(it, {"track_id": APP, "data_source": "chart"})

        verdict = await enrich(APP)

        assert (verdict.source, verdict.attempts, verdict.error) == ("scraper", 0, None)
        row = await row_of(it)
        assert row.asdict() == {
            "track_id": APP, "track_name": "Pocket Ledger", "seller_name": "Example Labs", "average_rating": 4.6,
            "rating_count": 8421, "primary_genre": "Finance", "price": 1.99, "formatted_price": "$1.99",
            "description": "Count your money.", "version": "3.4", "content_rating": "4+", "languages": '["EN","DE"]',
            "developer_id": 90, "subtitle": "Budgets made easy", "screenshots": '["https://x.example/1.png"]',
            "rating_histogram": "[1,0,2,3,4]", "iap_scraped_at": NOW, "iap_scrape_status": "found",
            "in_app_purchases": '[{"name":"Pro","price":"$29.99","amount":29.99}]', "similar_apps": "[801,802]",
            "data_source": "chart", "last_seen_at": NOW, "enriched_at": NOW, "enrichment_source": "scraper",
            "enrich_priority": 0, "enrich_attempts": 0, "next_enrich_at": "2026-01-31 00:00:00", "enrich_error": None,
        }  # fmt: skip
        others = await it.sql(
            "select track_id, data_source, enriched_at, next_enrich_at from app_registry where track_id > 800"
        )
        assert sorted(map(tuple, others)) == [(each, "similar", None, None) for each in (801, 802, 803)]
        reviews = await it.sql(
            "select review_id, track_id, rating, sentiment, version, edited from app_reviews order by review_id"
        )
        assert list(map(tuple, reviews)) == [("r1", APP, 5, 1.0, None, 0), ("r2", APP, 1, -1.0, "3.3", 0)]
        versions = await it.sql(
            "select version, released_at, notes from app_version_history where track_id = :id order by version", id=APP
        )
        assert list(map(tuple, versions)) == [("3.3", None, None), ("3.4", "2025-12-19 00:00:00", "More.")]
        developers = await it.sql("select developer_id, name, website, portfolio_at from developers")
        assert list(map(tuple, developers)) == [(90, "Example Labs", "https://labs.example", None)]
        mentioned = await it.sql("select keyword from app_keyword_mentions where track_id = :id", id=APP)
        assert {"pocket ledger", "ledger", "budgets"} <= {each.keyword for each in mentioned}


@pytest.mark.spec("B3-05", "B3-06")
async def test_what_is_not_said_replaces_nothing_that_is_known(pipeline: Opened, store: Store) -> None:
    async with crawling(pipeline) as it:
        store.lookup = found(title="Old", score=4.0, ratings=10, description="Known", developer_id=9)
        store.page = page(subtitle="Sub", purchases=(Purchase("Pro", "$1"),), similar=(found(801),))
        await enrich(APP)
        store.lookup, store.page = found(title=None, developer=None), GONE
        await enrich(APP)

        row = await row_of(it)
        assert (row.track_name, row.seller_name, row.average_rating, row.rating_count) == (
            "Old", "Example Labs", 4.0, 10
        )  # fmt: skip
        assert (row.description, row.subtitle, row.similar_apps) == ("Known", "Sub", "[801]")
        assert (row.iap_scrape_status, row.enrichment_source) == ("found", "itunes")


async def test_the_date_of_a_version_comes_from_the_look_up_where_the_page_lacks_it_and_mends_an_old_row(
    pipeline: Opened, store: Store
) -> None:
    async def dates() -> list[tuple[Any, ...]]:
        return list(map(tuple, await it.sql("select version, released_at from app_version_history order by version")))

    async with crawling(pipeline) as it:
        store.lookup = found(version="3.4")
        store.page = page(versions=(Version("3.4"), Version("3.3")))
        await enrich(APP)
        assert await dates() == [("3.3", None), ("3.4", None)]

        store.lookup = found(version="3.4", version_released="2025-12-20 08:00:00")
        store.page = page(versions=(Version("3.4"), Version("3.3", "2025-11-01 00:00:00")))
        await enrich(APP)
        assert await dates() == [("3.3", "2025-11-01 00:00:00"), ("3.4", "2025-12-20 08:00:00")]


async def test_the_category_of_a_page_in_another_language_replaces_none_that_is_known(
    pipeline: Opened, store: Store
) -> None:
    async with crawling(pipeline) as it:
        store.lookup, store.page = found(), page(genre="Finanzen")
        await enrich(APP)
        assert (await row_of(it)).primary_genre == "Finanzen"
        store.lookup = found(genre="Finance")
        await enrich(APP)
        store.lookup = found()
        await enrich(APP)
        assert (await row_of(it)).primary_genre == "Finance"


@pytest.mark.spec("B3-04")
async def test_a_histogram_is_asked_for_only_where_the_page_shows_none(pipeline: Opened, store: Store) -> None:
    async with crawling(pipeline) as it:
        store.ratings = Ratings(10, (1, 0, 2, 3, 4))
        store.page = page(ratings=Ratings(15, (1, 2, 3, 4, 5)))
        await enrich(APP)
        assert (store.count("ratings"), (await row_of(it)).rating_histogram) == (0, "[1,2,3,4,5]")
        store.page = page()
        await enrich(APP)
        assert (store.count("ratings"), (await row_of(it)).rating_histogram) == (1, "[1,0,2,3,4]")
        store.page = GONE
        await enrich(APP)
        assert store.count("ratings") == 2


@pytest.mark.spec("B3-05")
async def test_a_page_without_purchases_says_so_and_one_that_was_not_read_says_nothing(
    pipeline: Opened, store: Store
) -> None:
    async with crawling(pipeline) as it:
        store.page = GONE
        await enrich(APP)
        row = await row_of(it)
        assert (row.in_app_purchases, row.iap_scraped_at, row.iap_scrape_status) == (None, None, None)

        store.page = page(purchases=(Purchase("Pro", "$1"),))
        await enrich(APP)
        store.page = page()
        await enrich(APP)
        row = await row_of(it)
        assert (row.in_app_purchases, row.iap_scraped_at, row.iap_scrape_status) == (None, NOW, "none")


@pytest.mark.spec("B3-10")
async def test_apps_that_a_page_leads_to_are_never_overwritten(pipeline: Opened, store: Store) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(
            it, {"track_id": 801, "track_name": "Mine", "rating_count": 5, "enriched_at": NOW, "description": "Long"}
        )
        store.page = page(similar=(found(801, title="Theirs", ratings=9), found(APP), found(802), found(802)))
        await enrich(APP)

        row = await row_of(it, 801)
        assert (row.track_name, row.rating_count, row.enriched_at, row.description) == ("Mine", 5, NOW, "Long")
        assert (await row_of(it)).enriched_at == NOW
        assert (await row_of(it, 802)).data_source == "similar"


@pytest.mark.spec("B3-05", "G2-46")
async def test_texts_are_cut_and_lists_are_bounded(pipeline: Opened, store: Store) -> None:
    long = HOSTILE * 200
    many = tuple(f"https://x.example/{number}" for number in range(900))
    store.lookup = found(description=long, languages=many, release_notes=long, version="9")
    store.page = page(
        similar=tuple(found(10_000 + number, description=long) for number in range(900)),
        purchases=tuple(Purchase(f"P{number}", "$1") for number in range(900)),
        screenshots=many,
        versions=tuple(Version(f"1.{number}", None, long) for number in range(900)),
    )
    store.reviews = tuple(review(number, title=long, body=long) for number in range(900))
    async with crawling(pipeline) as it:
        await enrich(APP)

        row = await row_of(it)
        assert 1_900 < len(row.description) <= 2_000
        lists = [row.languages, row.screenshots, row.similar_apps, row.in_app_purchases]
        assert [len(json.loads(each)) for each in lists] == [50, 50, 50, 100]
        [reviews] = await it.sql("select count(*) as n, max(length(body)) as longest from app_reviews")
        assert reviews.n <= 500
        assert reviews.longest <= 2_000
        [versions] = await it.sql("select count(*) as n, max(length(notes)) as longest from app_version_history")
        assert (versions.n, versions.longest <= 2_000) == (50, True)
        assert await shared.db.count("app_registry") <= 101


async def test_hostile_texts_are_kept_as_they_are(pipeline: Opened, store: Store) -> None:
    store.lookup = found(title=HOSTILE, developer=HOSTILE, description=HOSTILE, developer_id=1)
    store.page = page(subtitle=HOSTILE, purchases=(Purchase(HOSTILE, HOSTILE),), similar=(found(801, title=HOSTILE),))
    store.reviews = (review(1, title=HOSTILE, body=HOSTILE),)
    async with crawling(pipeline) as it:
        await enrich(APP)
        row = await row_of(it)
        assert (row.track_name, row.seller_name, row.description, row.subtitle) == (HOSTILE,) * 4
        assert json.loads(row.in_app_purchases)[0]["name"] == HOSTILE
        assert (await row_of(it, 801)).track_name == HOSTILE


async def test_a_review_that_came_back_later_was_edited_and_an_older_one_changes_nothing(
    pipeline: Opened, store: Store
) -> None:
    async with crawling(pipeline) as it:
        for rating, at in ((5, "2025-12-01 00:00:00"), (1, "2025-12-09 00:00:00"), (3, "2025-12-05 00:00:00")):
            store.reviews = (review(1, rating=rating, title="", body="", updated=at),)
            await enrich(APP)
        [row] = await it.sql("select rating, sentiment, edited, reviewed_at from app_reviews")
        assert tuple(row) == (1, -1.0, 1, "2025-12-09 00:00:00")


@pytest.mark.spec("B3-05")
async def test_reviews_of_the_page_stand_in_for_a_feed_that_is_not_believed(pipeline: Opened, store: Store) -> None:
    store.page = page(reviews=(review(7),))
    store.reviews, store.believed = (), False
    async with crawling(pipeline) as it:
        await enrich(APP)
        store.page = page(703, reviews=(review(8),))
        store.reviews = REFUSED
        await enrich(703)
        store.page = page(704, reviews=(review(9),))
        store.reviews, store.believed = (review(10),), True
        await enrich(704)
        reviews = await it.sql("select review_id from app_reviews order by review_id")
        assert [row.review_id for row in reviews] == ["r10", "r7", "r8"]


@pytest.mark.parametrize(
    "pages, kept",
    [
        ([50, 50, 50, 50], 150),
        ([50, 49, 50], 99),
        ([0], 0),
        ([50, REFUSED], 50),
    ],
)
async def test_as_many_pages_of_reviews_are_read_as_are_wanted_and_there(
    pipeline: Opened, store: Store, monkeypatch: pytest.MonkeyPatch, pages: list[Any], kept: int
) -> None:
    monkeypatch.setattr(asking, "settings", msgspec.structs.replace(shared.settings, review_pages=3))
    left, number = iter(pages), count()

    def answer(_: int) -> Any:
        size = next(left)
        return size if isinstance(size, Exception) else [review(next(number)) for _ in range(size)]

    store.reviews = answer
    async with crawling(pipeline) as it:
        await enrich(APP)
        assert len(await it.sql("select review_id from app_reviews")) == kept


async def test_an_app_without_ratings_is_not_asked_for_reviews(pipeline: Opened, store: Store) -> None:
    store.lookup = found(ratings=0)
    async with crawling(pipeline):
        await enrich(APP)
        assert store.count("reviews") == 0


async def test_words_that_an_app_no_longer_uses_are_forgotten(pipeline: Opened, store: Store) -> None:
    async with crawling(pipeline) as it:
        for title in ("Budget Planner", "Money Coach"):
            store.lookup = found(title=title)
            await enrich(APP)
        rows = await it.sql("select keyword from app_keyword_mentions where field = 'title'")
        assert {row.keyword for row in rows} == {"money coach", "money", "coach"}


async def test_words_that_an_app_still_uses_are_not_written_again(pipeline: Opened, store: Store) -> None:
    mentioned = "select coalesce(sum(rows_written), 0) as rows from penstock_usage where statement like :like limit 1"
    async with crawling(pipeline) as it:
        written = []
        for title in ("Budget Planner", "Budget Planner", "Budget Keeper"):
            store.lookup = found(title=title)
            await enrich(APP)
            await shared.db.usage()  # what is still in memory is saved
            [row] = await it.sql(mentioned, like="%into app_keyword_mentions%")
            written.append(int(row.rows))
        assert written[0] == written[1] > 0
        assert written[1] < written[2] < 2 * written[0]


@pytest.mark.spec("B3-10")
async def test_a_developers_other_apps_are_found_once(pipeline: Opened, store: Store) -> None:
    store.lookup = lambda track_id: found(track_id, developer_id=90)
    store.portfolio = [found(APP), found(801, developer_id=90, ratings=44)]
    async with crawling(pipeline) as it:
        await enrich(APP)
        await enrich(701)
        await it.running.drain()
        await enrich(702)
        await it.running.drain()

        assert store.count("portfolio") == 1
        row = await row_of(it, 801)
        assert (row.rating_count, row.developer_id, row.data_source, row.enriched_at) == (44, 90, "portfolio", None)
        assert (await row_of(it)).data_source == "enrichment"
        [developer] = await it.sql("select portfolio_at from developers where developer_id = 90")
        assert developer.portfolio_at is not None


async def test_a_portfolio_that_is_refused_comes_later(pipeline: Opened, store: Store) -> None:
    store.lookup = found(developer_id=90)
    store.portfolio = REFUSED
    async with crawling(pipeline) as it:
        await enrich(APP)
        await it.running.advance(minutes=1)
        store.portfolio = [found(801)]
        await it.running.advance(hours=1)
        assert (await row_of(it, 801)).data_source == "portfolio"


async def test_nothing_is_saved_of_an_app_if_one_of_its_rows_cannot_be(pipeline: Opened, store: Store) -> None:
    store.lookup = found(developer_id=90)
    store.page = page(similar=(found(801),))
    async with crawling(pipeline) as it:
        await insert(it, "developers", {"developer_id": 90, "first_seen_at": NOW})
        store.reviews = (review(1, rating=None),)
        with pytest.raises(Exception, match="rating"):
            await enrich(APP)
        assert await it.sql("select track_id from app_registry") == []
