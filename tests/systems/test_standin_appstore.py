"""The stand-in App Store: the same seed gives the same store, in Apple's shapes and with Apple's manners."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import tracemalloc
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest

from penstock.testing import virtual
from penstock_systems.standins.appstore import FIRST_DAY, Catalogue, Fault, Limit, Manners, Truth, make_store, store_of

QUIET = Manners(limits={}, latency_seconds={}, faults=())
FREE_GAMES = "/us/rss/topfreeapplications/limit=100/genre=6014/json"

LOOKED_UP = """{"resultCount":1,"results":[{"wrapperType":"software","kind":"software","trackId":1700000001,
"bundleId":"com.example.pocketledger","trackName":"Pocket Ledger: Budget","artistId":900001,"artistName":"Example Labs",
"sellerName":"Example Labs LLC","price":0.0,"formattedPrice":"Free","currency":"USD","averageUserRating":4.61,
"userRatingCount":8421,"averageUserRatingForCurrentVersion":4.61,"userRatingCountForCurrentVersion":8421,
"primaryGenreId":6015,"primaryGenreName":"Finance","genreIds":["6015","6007"],"genres":["Finance","Productivity"],
"version":"3.4.1","releaseDate":"2021-05-04T07:00:00Z","currentVersionReleaseDate":"2026-10-30T17:20:11Z",
"fileSizeBytes":"83210240","languageCodesISO2A":["EN","DE"],"minimumOsVersion":"16.0","contentAdvisoryRating":"4+",
"description":"...","releaseNotes":"Fixes."}]}"""

CHART_ENTRY = """{"im:name":{"label":"Pocket Ledger: Budget"},
"im:image":[{"label":"https://.../53x53bb.png","attributes":{"height":"53"}},
{"label":"https://.../75x75bb.png","attributes":{"height":"75"}},
{"label":"https://.../100x100bb.png","attributes":{"height":"100"}}],
"summary":{"label":"long description"},
"im:price":{"label":"Get","attributes":{"amount":"0.00","currency":"USD"}},
"im:contentType":{"attributes":{"term":"Application","label":"Application"}},
"rights":{"label":"(c) Example Labs"}, "title":{"label":"Pocket Ledger: Budget - Example Labs"},
"link":[{"attributes":{"rel":"alternate","type":"text/html","href":"https://apps.apple.com/us/app/x/id1700000001?uo=2"}},
{"im:duration":{"label":"0"},"attributes":{"rel":"enclosure","type":"image/jpeg","href":"https://...mzstatic.com/..."}}],
"id":{"label":"https://apps.apple.com/us/app/x/id1700000001?uo=2",
"attributes":{"im:id":"1700000001","im:bundleId":"com.example.pocketledger"}},
"im:artist":{"label":"Example Labs","attributes":{"href":"https://apps.apple.com/us/developer/example-labs/id900001?uo=2"}},
"category":{"attributes":{"im:id":"6015","term":"Finance","scheme":"https://apps.apple.com/...","label":"Finance"}},
"im:releaseDate":{"label":"2021-05-04T00:00:00-07:00","attributes":{"label":"May 4, 2021"}}}"""

INTENT = (
    """{"$kind":"ProductPageIntent","storefront":"us","language":"en-US","isDefaultLanguage":true,"id":"1700000001"}"""
)
LOCKUP = """{"$kind":"Lockup","adamId":"..","bundleId":"..","title":"..","subtitle":"..","developerTagline":"..",
"rating":4.6,"icon":{"template":"https://.../{w}x{h}{c}.{f}","width":1,"height":1},
"offerDisplayProperties":{"$kind":"OfferDisplayProperties","isFree":true,"titles":{"standard":"Get"}}}"""
SHELVES = """{"productRatings":{"items":[{"$kind":"Ratings","productId":"1","context":"productPage","ratingAverage":4.6,
"totalNumberOfRatings":8421,"ratingCounts":[5,4,3,2,1]}]},
"information":{"items":[{"title":"Seller","items":[{"text":"Example Labs LLC"}]}]},
"similarItems":{"items":[{"$kind":"Lockup","adamId":"1","bundleId":"..","title":"..","developerName":"..","rating":4.6}]},
"moreByDeveloper":{"items":[{"$kind":"Lockup","adamId":"1"}]},
"mostRecentVersion":{"items":[{"$kind":"TitledParagraph","text":"..","primarySubtitle":"Version 3.4.1",
"secondarySubtitle":"2026-10-30T.."}],"seeAllAction":{"pageData":{"shelves":[{"items":[{"$kind":"TitledParagraph"}]}]}}},
"description":{"items":[{"$kind":"ProductDescription","paragraph":{"text":".."}}]},
"privacyTypes":{"items":[{"$kind":"PrivacyType","identifier":"DATA_LINKED_TO_YOU","title":"..","detail":null,
"categories":[{"$kind":"PrivacyCategory","identifier":"CONTACT_INFO","title":".."}]}]},
"allProductReviews":{"items":[{"review":{"$kind":"Review","id":"145..","title":"..","contents":"..","rating":2,
"reviewerName":"..","date":".."}}]},
"product_media_phone_":{"items":[{"screenshot":{"template":"https://..."}}]}}"""


# -- the same store from the same seed ----------------------------------------------------------------------------------


@virtual
async def test_the_same_seed_gives_the_same_answers() -> None:
    paths = [FREE_GAMES, "/search?term=tracker&media=software", "/us/rss/toppaidapplications/limit=50/xml"]

    async def answers(seed: int) -> list[bytes]:
        async with visiting(QUIET, Catalogue(seed=seed)) as client:
            return [(await client.get(path)).content for path in [*paths, page_path(Catalogue(seed=seed), 7)]]

    assert await answers(1) == await answers(1)
    assert all(ours != other for ours, other in zip(await answers(1), await answers(2), strict=True))


def test_every_id_leads_back_to_its_app() -> None:
    catalogue = Catalogue(apps=500)
    for index in range(500):
        market, position = catalogue.place(index)
        assert catalogue.at(market, position) == index
        assert catalogue.index(catalogue.track_id(index)) == index
        assert index in catalogue.portfolio(catalogue.developer(index))
        assert len(catalogue.app(index).title) <= 30
    assert sum(market.apps for market in catalogue.fields) == 500
    assert catalogue.index(catalogue.track_id(499) + 1) is None


def test_ratings_have_a_heavy_tail_and_titles_several_scripts() -> None:
    catalogue = Catalogue()
    apps = [catalogue.app(index) for index in range(3_000)]
    counts = sorted((app.rating_count(0) for app in apps), reverse=True)

    assert 0.5 < counts.count(0) / len(counts) < 0.6
    assert sum(counts[:300]) > 0.89 * sum(counts)
    assert 0.9 < sum(app.price == 0 for app in apps) / len(apps) < 0.96
    assert sum(bool(app.purchases) for app in apps) > 1_000
    scripts = {letter for app in apps for letter in app.title if ord(letter) > 0x24F}
    assert {"т", "יומן"[0], "記", "기", "ड"} <= scripts
    assert all(sum(app.histogram(9)) == app.rating_count(9) for app in apps)


def test_a_million_apps_cost_neither_time_nor_memory(note: Callable[[str], None]) -> None:
    tracemalloc.start()
    started = time.perf_counter()
    try:
        store = store_of(make_store(Catalogue(apps=1_100_000, markets=450), FIRST_DAY.timestamp, QUIET))
        made = time.perf_counter() - started
        for kind in ("free", "paid", "grossing"):
            assert len(store.charts.ranked(kind, 6015, 0, "us")) > 150
        assert len(store.searches.ranked("budget tracker", 0, "us")) == 200
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    answered = time.perf_counter() - started
    assert peak_bytes < 50_000_000
    figures = f"made in {made:.3f} s, three charts and a search by {answered:.2f} s, {peak_bytes / 1e6:.1f} MB"
    note(f"stand-in App Store of 1.1 million apps, with every allocation traced: {figures}")


# -- search and lookup ----------------------------------------------------------------------------------------------------


@virtual
async def test_a_lookup_has_the_types_and_names_of_apple() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(3_000) if rich(catalogue, i))

    async with visiting(QUIET, catalogue) as client:
        answer = await client.get(f"/lookup?id={catalogue.track_id(index)}&country=us&entity=software")

    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.text.startswith("\n\n")
    assert differences(json.loads(LOOKED_UP), answer.json()) == []


@virtual
async def test_a_lookup_leaves_out_unknown_ids_and_keeps_no_order() -> None:
    catalogue = Catalogue()
    ids = [catalogue.track_id(index) for index in range(40) if catalogue.sold(index, 0, "us")]

    async with visiting(QUIET, catalogue) as client:
        asked = ",".join(map(str, [*ids, 17]))
        found = [record["trackId"] for record in (await client.get(f"/lookup?id={asked}")).json()["results"]]
        nothing = await client.get("/lookup?id=17&country=us")

    assert sorted(found) == sorted(ids)
    assert found != ids
    assert (nothing.status_code, nothing.json()) == (200, {"resultCount": 0, "results": []})


@virtual
async def test_a_developer_comes_before_their_apps_and_a_bundle_alone() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(3_000) if len(catalogue.portfolio(catalogue.developer(i))) == 3)
    developer = catalogue.developer(index)
    sold = [one for one in catalogue.portfolio(developer) if catalogue.sold(one, 0, "us")]

    async with visiting(QUIET, catalogue) as client:
        path = f"/lookup?id={catalogue.artist_id(developer)}&entity=software&limit=200"
        artist, *apps = (await client.get(path)).json()["results"]
        bundled = (await client.get(f"/lookup?bundleId={catalogue.app(sold[0]).bundle_id}")).json()["results"]

    assert artist["wrapperType"] == "artist"
    assert artist["artistType"] == "Software Artist"
    assert {app["trackId"] for app in apps} == {catalogue.track_id(one) for one in sold}
    assert [app["trackId"] for app in bundled] == [catalogue.track_id(sold[0])]


@virtual
async def test_a_search_finds_the_planted_market_and_every_app_by_its_title() -> None:
    catalogue = Catalogue()
    market = max(catalogue.markets, key=lambda market: market.apps)

    async with visiting(QUIET, catalogue) as client:
        for keyword in market.keywords:
            found = (await client.get(f"/search?term={keyword}&entity=software&limit=25")).json()
            places = [catalogue.place(catalogue.index(record["trackId"]) or 0)[0] for record in found["results"]]
            assert found["resultCount"] == len(places) == 25
            assert any(place is market for place in places)
        for index in range(60):
            if catalogue.sold(index, 0, "us"):
                query = {"term": catalogue.app(index).title, "entity": "software", "limit": "200"}
                results = (await client.get("/search", params=query)).json()["results"]
                assert catalogue.track_id(index) in [record["trackId"] for record in results[:10]]


@virtual
async def test_a_search_without_hits_is_an_answer_and_one_without_media_a_mixture() -> None:
    async with visiting(QUIET) as client:
        nothing = await client.get("/search?term=qwrtp&media=software")
        mixed = (await client.get(f"/search?term={Catalogue().markets[0].keywords[0]}")).json()["results"]

    assert (nothing.status_code, nothing.json()["resultCount"]) == (200, 0)
    assert {record["wrapperType"] for record in mixed} == {"software", "track"}


# -- charts ---------------------------------------------------------------------------------------------------------------


@virtual
async def test_a_chart_has_the_labels_of_apple() -> None:
    async with visiting(QUIET) as client:
        answer = await client.get("/us/rss/topfreeapplications/limit=200/json")
        feed = answer.json()["feed"]
        swapped = (await client.get("/us/rss/topfreeapplications/genre=6014/limit=100/json")).json()["feed"]
        straight = (await client.get(FREE_GAMES)).json()["feed"]

    assert set(feed) == {"author", "entry", "updated", "rights", "title", "icon", "link", "id"}
    assert min((differences(json.loads(CHART_ENTRY), entry) for entry in feed["entry"]), key=len) == []
    assert len(feed["entry"]) == 200
    assert swapped["entry"] == straight["entry"]
    assert {entry["category"]["attributes"]["im:id"] for entry in straight["entry"]} == {"6014"}


@virtual
async def test_a_chart_without_entries_has_no_key_and_one_with_a_single_entry_no_list() -> None:
    async with visiting(QUIET) as client:
        empty = (await client.get("/us/rss/topfreeapplications/limit=100/genre=6025/json")).json()["feed"]
        single = (await client.get("/us/rss/topfreeapplications/limit=1/genre=6014/json")).json()["feed"]
        unknown = (await client.get("/us/rss/topfreeapplications/limit=9/genre=99/json")).json()["feed"]
        overall = (await client.get("/us/rss/topfreeapplications/limit=9/json")).json()["feed"]

    assert "entry" not in empty
    assert isinstance(single["entry"], dict)
    assert unknown["entry"] == overall["entry"]


@virtual
async def test_a_chart_comes_as_atom_and_as_ids_in_the_same_order() -> None:
    async with visiting(QUIET) as client:
        feed = (await client.get(FREE_GAMES)).json()["feed"]["entry"]
        atom = ElementTree.fromstring((await client.get(FREE_GAMES.replace("json", "xml"))).content)
        ids = (
            await client.get("/WebObjects/MZStoreServices.woa/ws/charts?cc=us&g=6014&name=freeAppsV2&limit=100")
        ).json()

    spaces = {"atom": "http://www.w3.org/2005/Atom"}
    of_atom = [one.attrib["{http://itunes.apple.com/rss}id"] for one in atom.findall("atom:entry/atom:id", spaces)]
    of_feed = [entry["id"]["attributes"]["im:id"] for entry in feed]
    assert of_feed == of_atom == ids["resultIds"]


@virtual
async def test_charts_move_a_little_each_day_and_more_in_weeks() -> None:
    days = {}
    async with visiting(QUIET, Catalogue(apps=30_000)) as client:
        for day in range(19):
            if day in (0, 1, 18):
                entries = (await client.get("/us/rss/topfreeapplications/limit=100/json")).json()["feed"]["entry"]
                days[day] = [entry["id"]["attributes"]["im:id"] for entry in entries]
            await asyncio.sleep(86_400)

    assert days[0] != days[1]
    assert 88 <= len({*days[0]} & {*days[1]}) <= 99
    assert 60 <= len({*days[0]} & {*days[18]}) < len({*days[0]} & {*days[1]})


# -- pages ----------------------------------------------------------------------------------------------------------------


@virtual
async def test_a_page_holds_the_shelves_of_apple() -> None:
    catalogue = Catalogue()
    known: dict[str, Any] = {}
    async with visiting(QUIET, catalogue) as client:
        for index in (i for i in range(400) if rich(catalogue, i)):
            embedded = read_page((await client.get(page_path(catalogue, index))).text)["data"][0]
            assert embedded["intent"] == json.loads(INTENT) | {"id": str(catalogue.track_id(index))}
            for name, shelf in embedded["data"]["shelfMapping"].items():
                shown = {name: json.loads(SHELVES)[name]}
                known[name] = min(known.get(name, ["?"] * 9), differences(shown, {name: shelf}), key=len)
            lockup = embedded["data"]["lockup"]
            if "subtitle" in lockup:
                assert differences(json.loads(LOCKUP), lockup) == []

    assert known == {name: [] for name in json.loads(SHELVES)}


@virtual
async def test_page_lookup_and_ratings_agree() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(3_000) if rich(catalogue, i) and catalogue.app(i).purchases)
    id = catalogue.track_id(index)

    async with visiting(QUIET, catalogue) as client:
        text = (await client.get(page_path(catalogue, index))).text
        record = (await client.get(f"/lookup?id={id}")).json()["results"][0]
        front = {"X-Apple-Store-Front": "143441,12"}
        ratings = (await client.get(f"/us/customer-reviews/id{id}?displayable-kind=11", headers=front)).text
        unheaded = (await client.get(f"/us/customer-reviews/id{id}?displayable-kind=11")).text

    shelves = read_page(text)["data"][0]["data"]["shelfMapping"]
    rated = shelves["productRatings"]["items"][0]
    stars = sum(count * star for count, star in zip(rated["ratingCounts"], (5, 4, 3, 2, 1), strict=True))
    assert sum(rated["ratingCounts"]) == rated["totalNumberOfRatings"] == record["userRatingCount"]
    assert stars / rated["totalNumberOfRatings"] == pytest.approx(record["averageUserRating"], abs=1e-4)
    assert [int(found.replace(",", "")) for found in re.findall(r'class="total">([\d,]+)<', ratings)] == rated[
        "ratingCounts"
    ]
    assert f"{record['userRatingCount']:,} Ratings" in ratings
    assert unheaded == ""
    bought = next(row for row in shelves["information"]["items"] if row["title"] == "In-App Purchases")
    assert len(bought["items"][0]["textPairs"]) == text.count("<li><span>") == len(catalogue.app(index).purchases)


@virtual
async def test_an_address_without_the_name_leads_to_the_one_with_it() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(99) if catalogue.sold(i, 0, "us"))
    async with visiting(QUIET, catalogue) as client:
        short = await client.get(f"/us/app/id{catalogue.track_id(index)}?l=en-US")
        page = await client.get(short.headers["location"])

    assert short.status_code == 301
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"


@virtual
async def test_apps_vanish_and_some_are_not_sold_abroad() -> None:
    catalogue = Catalogue()
    leaving = next(i for i in range(3_000) if catalogue.app(i).released <= 0 < catalogue.app(i).gone < 60)
    homely = next(i for i in range(3_000) if catalogue.sold(i, 0, "us") and not catalogue.sold(i, 0, "de"))

    async with visiting(QUIET, catalogue) as client:
        path = page_path(catalogue, leaving)
        first = (await client.get(path)).status_code
        await asyncio.sleep(catalogue.app(leaving).gone * 86_400)
        gone = [(await client.get(one)).status_code for one in (path, f"/us/app/id{catalogue.track_id(leaving)}")]
        looked_up = (await client.get(f"/lookup?id={catalogue.track_id(leaving)}")).json()["resultCount"]
        abroad = (await client.get(page_path(catalogue, homely).replace("/us/", "/de/"))).status_code

    assert (first, gone, looked_up, abroad) == (200, [404, 404], 0, 404)


@virtual
async def test_whole_pages_weigh_as_much_as_real_ones() -> None:
    catalogue = Catalogue()
    whole = Manners(limits={}, latency_seconds={}, faults=(), whole_pages=True)
    async with visiting(whole, catalogue) as client:
        pages = [await client.get(page_path(catalogue, i)) for i in range(20) if catalogue.sold(i, 0, "us")]

    assert all(400_000 <= len(page.content) <= 850_000 for page in pages)
    assert all(read_page(page.text)["data"] for page in pages)


# -- manners --------------------------------------------------------------------------------------------------------------


@virtual
async def test_a_bucket_refuses_exactly_what_is_above_the_hidden_rate() -> None:
    async with visiting(limited(Limit(20))) as client:
        burst = [await status(client) for _ in range(25)]
        refusal = await client.get("/search?term=budget")
        await asyncio.sleep(3)
        after_three_seconds = [await status(client) for _ in range(2)]
        at_the_rate = [await status(client, pause=3) for _ in range(200)]
        above_it = [await status(client, pause=2) for _ in range(300)]

    assert burst == [200] * 20 + [403] * 5
    assert (refusal.status_code, refusal.content, refusal.headers["content-length"]) == (403, b"", "0")
    assert refusal.headers["cache-control"] == "max-age=0, no-cache, no-store"
    assert "retry-after" not in refusal.headers
    assert after_three_seconds == [200, 403]
    assert at_the_rate == [200] * 200
    assert above_it.count(200) == 200


@virtual
async def test_a_window_starts_anew_on_the_minute() -> None:
    async with visiting(limited(Limit(20, kind="window"))) as client:
        await asyncio.sleep(59)
        first = [await status(client) for _ in range(22)]
        await asyncio.sleep(1)
        second = [await status(client) for _ in range(22)]

    assert first == second == [200] * 20 + [403] * 2


@virtual
async def test_who_does_not_listen_is_shut_out_for_minutes() -> None:
    async with visiting(limited(Limit(20, closes_after=10, closed_seconds=300))) as client:
        await asyncio.gather(*(status(client) for _ in range(30)))
        await asyncio.sleep(299)
        shut = await status(client)
        await asyncio.sleep(1)

        assert (shut, await status(client)) == (403, 200)


@virtual
async def test_the_hidden_limit_follows_the_hours_and_can_be_asked_for() -> None:
    start = FIRST_DAY.timestamp()
    limit = Limit(10, burst=1, hours=((7, 60), (22, 600)))
    async with visiting(limited(limit)) as client:
        truth = truth_of(client)
        await asyncio.sleep(8 * 3_600)
        by_day = [await status(client, pause=0.5) for _ in range(100)]

    assert [truth.limit("search", start + hour * 3_600) for hour in (0, 7, 21.9, 22)] == [10, 1, 1, 10]
    assert truth.limit("page", start) == float("inf")
    assert by_day.count(200) == 50


@virtual
async def test_each_endpoint_and_each_address_has_a_limit_of_its_own() -> None:
    async with visiting(
        Manners(limits={"search": Limit(1), "lookup": Limit(2)}, latency_seconds={}, faults=())
    ) as client:
        searches = [await status(client) for _ in range(2)]
        lookups = [(await client.get("/lookup?id=1")).status_code for _ in range(3)]
        app = client._transport.app  # type: ignore[attr-defined]
        neighbour = httpx2.ASGITransport(app=app, client=("10.0.0.2", 1))
        async with httpx2.AsyncClient(transport=neighbour, base_url="http://apple.test") as other:
            elsewhere = await status(other)
        books = truth_of(client).books

    assert (searches, lookups, elsewhere) == ([200, 403], [200, 200, 403], 200)
    assert (books["search"].requests, books["search"].answered, books["search"].refused) == (3, 2, 1)
    assert [(minute.start, minute.answered) for minute in books["lookup"].minutes] == [(FIRST_DAY.timestamp(), 2)]


def test_latency_comes_from_the_seed() -> None:
    spent: list[float] = []

    @virtual
    async def three_requests(seed: int) -> None:
        async with visiting(Manners(faults=()), Catalogue(apps=50, seed=seed)) as client:
            for _ in range(3):
                await status(client)
        spent.append(asyncio.get_running_loop().time())

    for seed in (1, 1, 2):
        three_requests(seed)

    assert 0.1 < spent[0] == spent[1] != spent[2]


@virtual
async def test_faults_come_by_number_by_time_and_by_chance() -> None:
    start = FIRST_DAY.timestamp()
    faults = (
        Fault("error", "search", requests=(2, 3)),
        Fault("busy", seconds=(start + 60, start + 120)),
        Fault("error", "lookup", share=0.25),
    )
    async with visiting(Manners(limits={}, latency_seconds={}, faults=faults)) as client:
        by_number = [await status(client) for _ in range(4)]
        by_chance = [(await client.get("/lookup?id=1")).status_code for _ in range(400)]
        await asyncio.sleep(60)
        by_time = await status(client)
        failed = truth_of(client).books["search"].failed

    assert [code >= 500 for code in by_number] == [False, True, True, False]
    assert 70 <= sum(code >= 500 for code in by_chance) <= 130
    assert (by_time, failed) == (429, 3)


@virtual
async def test_answers_can_be_spoilt() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(99) if catalogue.sold(i, 0, "us"))
    faults = (
        Fault("wrong_id", "page", requests=(1, 1)),
        Fault("list_root", "page", requests=(2, 2)),
        Fault("truncated", requests=(3, 3)),
    )
    async with visiting(Manners(limits={}, latency_seconds={}, faults=faults), catalogue) as client:
        wrong, bare, cut = [(await client.get(page_path(catalogue, index))).text for _ in range(3)]
        *_, search = [await client.get("/search?term=budget") for _ in range(3)]

    assert read_page(wrong)["data"][0]["intent"]["id"] != str(catalogue.track_id(index))
    assert isinstance(read_page(bare), list)
    for text in (search.text, embedded_in(cut)):
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)


def test_another_process_serves_the_same_store_on_loopback() -> None:
    path = "/search?term=daily+tracker&entity=software&limit=9"
    command = [
        sys.executable,
        "-m",
        "penstock_systems.standins.appstore",
        "--apps",
        "300",
        "--seed",
        "5",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            where = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert where is not None
            with urllib.request.urlopen(where[0] + path, timeout=30) as answer:
                outside = json.load(answer)
        finally:
            process.terminate()

    @virtual
    async def inside() -> None:
        async with visiting(QUIET, Catalogue(apps=300, seed=5)) as client:
            assert (await client.get(path)).json() == outside

    inside()
    assert outside["resultCount"] == 9


# -- what the tests need --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def visiting(manners: Manners, catalogue: Catalogue | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    elapsed = asyncio.get_running_loop().time
    store = make_store(catalogue or Catalogue(), lambda: FIRST_DAY.timestamp() + elapsed(), manners)
    transport = httpx2.ASGITransport(app=store)
    async with httpx2.AsyncClient(transport=transport, base_url="http://apple.test") as client:
        yield client


def limited(limit: Limit) -> Manners:
    return Manners(limits={"search": limit}, latency_seconds={}, faults=())


async def status(client: httpx2.AsyncClient, pause: float = 0) -> int:
    await asyncio.sleep(pause)
    return (await client.get("/search?term=budget&limit=1")).status_code


def truth_of(client: httpx2.AsyncClient) -> Truth:
    return store_of(client._transport.app).truth()  # type: ignore[attr-defined]


def page_path(catalogue: Catalogue, index: int) -> str:
    return f"/us/app/{catalogue.app(index).slug}/id{catalogue.track_id(index)}"


def embedded_in(page: str) -> str:
    found = re.search(r'<script[^>]*id="serialized-server-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return found[1]


def read_page(page: str) -> Any:
    return json.loads(embedded_in(page))


def rich(catalogue: Catalogue, index: int) -> bool:
    """An app that has everything, and is there."""
    app = catalogue.app(index)
    return catalogue.sold(index, 0, "us") and app.rating_count(0) > 1_000 and app.versions(0) > 1


def differences(sample: Any, found: Any, path: str = "") -> list[str]:
    """Where an answer lacks a key of the sample, or has another type there."""
    if type(sample) is not type(found):
        return [f"{path}: {type(found).__name__} instead of {type(sample).__name__}"]
    if isinstance(sample, dict):
        missing = [f"{path}: no {key}" for key in sample if key not in found]
        both = (differences(sample[key], found[key], f"{path}.{key}") for key in sample if key in found)
        return [*missing, *(problem for problems in both for problem in problems)]
    if isinstance(sample, list) and sample:
        return differences(sample[0], found[0], f"{path}[0]") if found else [f"{path}: empty"]
    return []
