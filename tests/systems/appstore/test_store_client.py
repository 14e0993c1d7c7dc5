"""The way to the store: what is asked and as whom, what is shared, what is kept, and what each refusal is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore.settings import Bases, ReviewFeed, Settings
from penstock_systems.appstore.store.facts import Ratings
from tests.systems.appstore.store_hosts import Host, Pace, opened
from tests.systems.appstore.store_shapes import POCKET_LEDGER, page, shape


@pytest.fixture(autouse=True)
def kept_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No database is needed, only a folder for pages."""
    monkeypatch.chdir(tmp_path)


def records(path: str) -> bytes:
    """A look-up that knows every id but those that end in 3, and gives them the wrong way round."""
    ids = [int(text) for text in re.findall(r"\d+", path.partition("id=")[2].partition("&")[0])]
    known = [{"wrapperType": "software", "trackId": number} for number in reversed(ids) if number % 10 != 3]
    return b"\n\n\n" + json.dumps({"resultCount": len(known), "results": known}).encode()


def whole_store(path: str) -> bytes:
    endpoints = {
        "/search?": shape("search.json"),
        "/lookup?": shape("portfolio.json"),
        "mostRecent/xml": shape("reviews.xml"),
        "customerreviews": shape("reviews.json"),
        "/rss/": shape("chart.json"),
        "/app/": page(),
        "customer-reviews": shape("ratings.html"),
        "/hints?": shape("hints.xml"),
        "/genres?": shape("genres.json"),
    }
    return next(body for part, body in endpoints.items() if part in path)


def kept(key: str) -> bytes:
    """The blob under the key, or all blobs under nothing."""
    files = [file for file in Path("pages", key).rglob("*") if file.is_file()]
    return b"".join(file.read_bytes() for file in [*files, Path("pages", key)] if file.is_file())


async def ask_everything(store: Any) -> None:
    await store.chart("topfreeapplications", 6015)
    await store.search("budget")
    await store.lookup(POCKET_LEDGER)
    await store.lookup_many([POCKET_LEDGER])
    await store.portfolio(900_001)
    await store.page(POCKET_LEDGER)
    await store.ratings(POCKET_LEDGER)
    await store.reviews(POCKET_LEDGER)
    await store.hints("bud")
    await store.genres()


# -- who asks, and where ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B3-09", "G5-26")
async def test_only_the_page_is_asked_for_under_a_name() -> None:
    host = Host(whole_store)
    async with opened(host, Settings(page_user_agent="Ledger/1 (+https://ledger.example)")) as store:
        await ask_everything(store)
        assert store.skipped == {"chart": 2, "search": 2, "page": 7, "reviews": 1, "hints": 1, "genres": 1}

    named = {asked.path: asked.headers.get("user-agent") for asked in host.asked}
    assert len(named) == 9  # the two look-ups of one id are the same request
    assert {path for path, name in named.items() if name} == {f"/us/app/id{POCKET_LEDGER}?l=en-US"}
    assert named[f"/us/app/id{POCKET_LEDGER}?l=en-US"] == "Ledger/1 (+https://ledger.example)"


@pytest.mark.spec("B3-09")
async def test_the_name_on_pages_is_an_honest_one_unless_it_is_left_out() -> None:
    for settings, name in ((Settings(), "Penstock"), (Settings(page_user_agent=""), None)):
        host = Host(whole_store)
        async with opened(host, settings) as store:
            await store.page(POCKET_LEDGER, refresh=True)
        assert host.asked[0].headers.get("user-agent") == name


async def test_the_storefront_is_chosen_by_a_header_where_only_that_counts() -> None:
    german = page(shape("page.json").replace(b'"storefront":"us"', b'"storefront":"de"'))
    host = Host(lambda path: german if "/app/" in path else whole_store(path))
    async with opened(host, Settings(country="de", language="de-DE")) as store:
        await store.ratings(17)
        await store.hints("bud")
        await store.page(POCKET_LEDGER)

    fronts = [(asked.host, asked.headers.get("x-apple-store-front")) for asked in host.asked]
    assert fronts == [
        ("https://itunes.apple.com", "143443,12"),
        ("https://search.itunes.apple.com", "143443,29"),
        ("https://apps.apple.com", None),
    ]
    assert {asked.headers["accept-language"] for asked in host.asked} == {"de-DE"}
    assert host.asked[0].path == "/de/customer-reviews/id17?displayable-kind=11"


@pytest.mark.spec("B2-12")
async def test_a_chart_is_asked_for_with_two_hundred_apps_of_the_configured_country() -> None:
    host = Host(whole_store)
    async with opened(host) as store:
        await store.chart("topfreeapplications", 6015)
        await store.chart("toppaidapplications", None, limit=1)
    assert list(host) == [
        "/us/rss/topfreeapplications/limit=200/genre=6015/json",
        "/us/rss/toppaidapplications/limit=1/json",
    ]


async def test_the_hosts_are_where_the_settings_say() -> None:
    bases = Bases(itunes="https://one.example/", search="https://two.example", apps="https://three.example")
    host = Host(whole_store)
    async with opened(host, Settings(bases=bases)) as store:
        await ask_everything(store)
    assert {asked.host for asked in host.asked} == {
        "https://one.example",
        "https://two.example",
        "https://three.example",
    }


async def test_a_country_without_a_store_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ps.BadConfig, match="no storefront 'uk'"):
        async with opened(Host(), Settings(country="uk")):
            pass


async def test_searches_and_look_ups_share_one_pace_and_feeds_and_hints_have_others() -> None:
    searching, feeding, hinting = Pace(), Pace(), Pace()
    async with opened(Host(whole_store), searching=searching, feeding=feeding, hinting=hinting) as store:
        await ask_everything(store)
    assert searching.items == ["budget", None, None, None]
    assert hinting.items == ["bud"]
    assert feeding.items == ["topfreeapplications/6015", str(POCKET_LEDGER), None]


async def test_a_search_for_nothing_sends_no_request() -> None:
    host = Host(whole_store)
    async with opened(host) as store:
        assert await store.search(" \x00\u202e ") == []
        assert await store.hints("\n") == []
        assert await store.lookup(0) is None
        assert await store.lookup(2**63) is None
        assert await store.lookup_many([-1]) == {}
    assert not host.asked


# -- what a refusal is --------------------------------------------------------------------------------------------------


@pytest.mark.spec("A9-05")
@pytest.mark.parametrize(
    "status, error",
    [(403, ps.Throttled), (429, ps.Throttled), (500, ps.Unavailable), (503, ps.Unavailable), (404, ps.Gone)],
)
async def test_every_endpoint_says_how_it_was_refused(status: int, error: type[ps.PenstockError]) -> None:
    # Not on a host of Apple's: there the client itself knows what a 403 means.
    bases = Bases(itunes="https://one.example", search="https://two.example", apps="https://three.example")
    async with opened(Host(lambda path: (status, b"")), Settings(bases=bases)) as store:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: store.chart("topfreeapplications", 6015),
            lambda: store.search("budget"),
            lambda: store.lookup(17),
            lambda: store.lookup_many([17]),
            lambda: store.portfolio(17),
            lambda: store.page(17),
            lambda: store.ratings(17),
            lambda: store.reviews(17),
            lambda: store.hints("bud"),
            lambda: store.genres(),
        ]
        for call in calls:
            with pytest.raises(error) as raised:
                await call()
            assert raised.value.facts["status"] == status


# -- look-ups together --------------------------------------------------------------------------------------------------


async def test_ids_asked_for_at_the_same_moment_are_looked_up_in_one_call() -> None:
    host = Host(records)
    async with opened(host) as store:
        found = await asyncio.gather(*(store.lookup(number) for number in (5, 3, 5, 9)))
        assert [app and app.track_id for app in found] == [5, None, 5, 9]
        assert len(host.asked) == 1
        assert "id=5,3,9&" in host.asked[0].path

        await store.lookup(6)
        assert len(host.asked) == 2


async def test_a_call_takes_two_hundred_ids_and_the_next_moment_the_rest() -> None:
    host = Host(records)
    async with opened(host) as store:
        found = await asyncio.gather(*(store.lookup(number) for number in range(1, 451)))
    assert [app.track_id for app in found if app] == [number for number in range(1, 451) if number % 10 != 3]
    assert sorted(path.count(",") + 1 for path in host) == [50, 200, 200]


async def test_many_are_looked_up_in_as_few_calls_and_come_in_the_order_asked_for() -> None:
    host = Host(records)
    async with opened(host) as store:
        found = await store.lookup_many([*range(450, 0, -1), 7, 7, -7])
    assert list(found) == [number for number in range(450, 0, -1) if number % 10 != 3]
    assert [path.count(",") + 1 for path in host] == [200, 200, 50]


async def test_a_failed_call_is_everybodys_failure_and_the_next_one_is_new() -> None:
    host = Host(lambda path: (403, b""))
    async with opened(host) as store:
        failed = await asyncio.gather(*(store.lookup(number) for number in (1, 2)), return_exceptions=True)
        assert [type(error) for error in failed] == [ps.Throttled, ps.Throttled]
        host.answer = records
        assert (await store.lookup(1)).track_id == 1
    assert len(host.asked) == 2


async def test_who_goes_away_takes_nothing_from_the_others() -> None:
    host = Host(records, seconds=5)
    async with opened(host) as store:
        first, second = (asyncio.create_task(store.lookup(number)) for number in (1, 2))
        await asyncio.sleep(1)
        first.cancel()
        assert (await second).track_id == 2

        alone = asyncio.create_task(store.lookup(4))
        await asyncio.sleep(0.001)
        alone.cancel()
        await asyncio.sleep(0)
        # At the same moment somebody else comes, who must not wait for the one that was given up.
        assert (await store.lookup(5)).track_id == 5
    assert [path.partition("&")[0] for path in host] == ["/lookup?id=1,2", "/lookup?id=5"]


# -- pages --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A9-03")
async def test_callers_at_the_same_time_share_a_page_and_later_ones_read_it_from_the_cache() -> None:
    host = Host(whole_store, seconds=1)
    async with opened(host) as store:
        one, two = await asyncio.gather(store.page(POCKET_LEDGER), store.page(POCKET_LEDGER))
        assert one is two
        assert (await store.page(POCKET_LEDGER)) == one
        assert len(host.asked) == 1
        assert page() in kept(f"app/{POCKET_LEDGER}/page.html")

        fresh, plain = await asyncio.gather(store.page(POCKET_LEDGER, refresh=True), store.page(POCKET_LEDGER))
        assert fresh is plain  # who comes during a refresh gets what is newest
        assert len(host.asked) == 2


async def test_a_page_that_is_shared_survives_the_first_who_asked() -> None:
    host = Host(whole_store, seconds=5)
    async with opened(host) as store:
        first, second = (asyncio.create_task(store.page(POCKET_LEDGER)) for _ in range(2))
        await asyncio.sleep(1)
        first.cancel()
        assert (await second).title == "Pocket Ledger: Budget"
    assert len(host.asked) == 1


@pytest.mark.spec("A9-05", "G2-34")
async def test_the_page_of_another_app_is_put_aside_and_fetched_again_next_time() -> None:
    stranger = page(shape("page.json").replace(b'"id":"1700000001"}', b'"id":"1700000002"}'))
    host = Host(lambda path: stranger)
    async with opened(host) as store:
        with pytest.raises(ps.Unparsable, match="is about 1700000002") as error:
            await store.page(POCKET_LEDGER)
        assert error.value.facts["reason"] == "wrong_app"
        assert stranger in kept(f"debug/app/{POCKET_LEDGER}/page.html")
        assert not kept(f"app/{POCKET_LEDGER}/page.html")

        host.answer = whole_store
        assert (await store.page(POCKET_LEDGER)).title == "Pocket Ledger: Budget"
    assert len(host.asked) == 2


async def test_a_page_of_another_country_is_gone_rather_than_read_or_asked_for_again() -> None:
    german = page(shape("page.json").replace(b'"storefront":"us"', b'"storefront":"de"'))
    host = Host(lambda path: german)
    async with opened(host) as store:
        with pytest.raises(ps.Gone, match="answered for the store of 'de' instead of 'us'") as error:
            await store.page(POCKET_LEDGER)
        assert error.value.facts["reason"] == "wrong_country"
        assert not kept(f"app/{POCKET_LEDGER}/page.html")
    async with opened(host, Settings(country="de")) as store:
        assert (await store.page(POCKET_LEDGER)).title == "Pocket Ledger: Budget"


@pytest.mark.fault("F50")
async def test_a_page_that_robots_txt_disallows_is_read_only_where_the_settings_say_so() -> None:
    host = Host(whole_store, robots=b"User-agent: *\nDisallow: /*/app/\n")
    async with opened(host) as store:
        with pytest.raises(ps.Permanent, match=r"disallowed by the robots\.txt"):
            await store.page(POCKET_LEDGER)
        assert await store.search("budget")  # searches are no pages
        assert not [asked for asked in host.asked if "/app/" in asked.path]
    async with opened(host, Settings(robots=False)) as store:
        assert (await store.page(POCKET_LEDGER)).title == "Pocket Ledger: Budget"


@pytest.mark.spec("A9-05")
async def test_a_refused_page_is_not_kept() -> None:
    host = Host(lambda path: (403, b"<html>Slow down</html>"))
    async with opened(host) as store:
        with pytest.raises(ps.Throttled) as error:
            await store.page(POCKET_LEDGER)
        assert error.value.facts["status"] == 403
        assert not kept("")


# -- reviews and ratings ------------------------------------------------------------------------------------------------


def feeds(path: str) -> bytes:
    """Reviews come as XML alone."""
    return shape("reviews.xml") if path.endswith("xml") else b'{"feed":{"author":{}}}'


async def test_forms_and_names_are_tried_in_their_order_until_one_has_reviews() -> None:
    tried = (
        ReviewFeed(form="json", user_agent="One/1"),
        ReviewFeed(form="xml"),
        ReviewFeed(form="xml", user_agent="Three/3"),
    )
    host = Host(feeds)
    async with opened(host, Settings(review_feeds=tried)) as store:
        answer = await store.reviews(17, page=2)
    assert answer.believed
    assert [review.review_id for review in answer.reviews] == ["14500000001"]
    assert [(asked.path, asked.headers.get("user-agent")) for asked in host.asked] == [
        ("/us/rss/customerreviews/page=2/id=17/sortby=mostRecent/json", "One/1"),
        ("/us/rss/customerreviews/page=2/id=17/sortby=mostRecent/xml", None),
    ]


async def test_an_empty_feed_of_an_app_that_may_have_reviews_is_not_believed() -> None:
    empty = Host(
        lambda path: b"<feed xmlns='http://www.w3.org/2005/Atom'/>" if path.endswith("xml") else b'{"feed":{}}'
    )
    async with opened(empty) as store:
        assert not (await store.reviews(17)).believed
        assert not (await store.reviews(17, rated=True)).believed
        assert len(empty.asked) == 4
        assert (await store.reviews(17, rated=False)).believed
        assert len(empty.asked) == 5
        assert (await store.reviews(17, page=2)).believed


async def test_there_are_ten_pages_of_reviews() -> None:
    host = Host(lambda path: (400, b"CustomerReviews RSS page depth is limited to 10"))
    async with opened(host) as store:
        assert await store.reviews(17, page=11) == await store.reviews(17, page=9)
        assert (await store.reviews(17, page=11)).believed
    assert len(host.asked) == 1


async def test_one_form_may_be_gone_while_the_other_is_there() -> None:
    host = Host(lambda path: feeds(path) if path.endswith("xml") else (404, b""))
    async with opened(host) as store:
        assert len((await store.reviews(17)).reviews) == 1
        host.answer = lambda path: b"<html>Service Unavailable</html>"
        with pytest.raises(ps.Unparsable):
            await store.reviews(17)


async def test_ratings_of_an_app_that_is_not_known_here_are_none() -> None:
    host = Host(lambda path: shape("ratings.html") if "id17?" in path else b"")
    async with opened(host) as store:
        assert await store.ratings(17) == Ratings(3_624, (100, 74, 150, 400, 2_900))
        assert await store.ratings(18) is None
