"""Search, Lookup, the searches of old clients and of the web, and the hints of the stand-in App Store."""

from __future__ import annotations

import json
import plistlib

from penstock.testing import virtual
from penstock_systems.standins.appstore import Catalogue, Fault
from tests.systems.standin_visits import FRONT, NATIVE, QUIET, differences, faulty, read_page, rich, sold, visiting

LOOKED_UP = """{"resultCount":1,"results":[{"wrapperType":"software","kind":"software","trackId":1700000001,
"bundleId":"com.example.pocketledger","trackName":"Pocket Ledger: Budget","trackCensoredName":"..",
"trackViewUrl":"..","artistId":900001,"artistName":"Example Labs","artistViewUrl":"..",
"sellerName":"Example Labs LLC","price":0.0,"formattedPrice":"Free","currency":"USD","averageUserRating":4.61,
"userRatingCount":8421,"averageUserRatingForCurrentVersion":4.61,"userRatingCountForCurrentVersion":8421,
"primaryGenreId":6015,"primaryGenreName":"Finance","genreIds":["6015","6007"],"genres":["Finance","Productivity"],
"version":"3.4.1","releaseDate":"2021-05-04T07:00:00Z","currentVersionReleaseDate":"2026-10-30T17:20:11Z",
"fileSizeBytes":"83210240","languageCodesISO2A":["EN","DE"],"minimumOsVersion":"16.0","contentAdvisoryRating":"4+",
"trackContentRating":"4+","advisories":[],"supportedDevices":[".."],"features":[],"screenshotUrls":[],
"ipadScreenshotUrls":[],"appletvScreenshotUrls":[],"artworkUrl60":"..","artworkUrl100":"..","artworkUrl512":"..",
"isGameCenterEnabled":false,"isVppDeviceBasedLicensingEnabled":true,"description":"...","releaseNotes":"Fixes."}]}"""


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
        asked = ",".join(map(str, [*ids, 17, "x", "", 9**40]))
        found = [record["trackId"] for record in (await client.get(f"/lookup?id={asked}")).json()["results"]]
        nothing = await client.get("/lookup?id=17&country=us")
        nowhere = await client.get("/lookup?id=17&country=zz")

    assert sorted(found) == sorted(ids)
    assert found != ids
    assert (nothing.status_code, nothing.json()) == (200, {"resultCount": 0, "results": []})
    assert nowhere.status_code == 400


@virtual
async def test_a_developer_comes_before_their_apps_and_a_bundle_alone() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(3_000) if len(catalogue.portfolio(catalogue.developer(i))) == 3)
    developer = catalogue.developer(index)
    there = [one for one in catalogue.portfolio(developer) if catalogue.sold(one, 0, "us")]

    async with visiting(QUIET, catalogue) as client:
        path = f"/lookup?id={catalogue.artist_id(developer)}&entity=software&limit=200"
        artist, *apps = (await client.get(path)).json()["results"]
        alone = (await client.get(f"/lookup?id={catalogue.artist_id(developer)}")).json()["results"]
        bundled = (await client.get(f"/lookup?bundleId={catalogue.app(there[0]).bundle_id}")).json()["results"]
        named = await client.get(
            f"/search?term={catalogue.brand(developer)}&attribute=softwareDeveloper&media=software"
        )

    assert artist["wrapperType"] == "artist"
    assert artist["artistType"] == "Software Artist"
    assert alone == [artist]
    assert {app["trackId"] for app in apps} == {catalogue.track_id(one) for one in there}
    assert [app["trackId"] for app in bundled] == [catalogue.track_id(there[0])]
    assert {app["trackId"] for app in named.json()["results"]} == {app["trackId"] for app in apps}


@virtual
async def test_some_records_lack_what_others_have() -> None:
    catalogue = Catalogue()
    ids = [catalogue.track_id(index) for index in sold(catalogue)]
    records = []
    async with visiting(QUIET, catalogue) as client:
        for start in range(0, 2_000, 200):
            answer = await client.get("/lookup?id=" + ",".join(map(str, ids[start : start + 200])))
            records += answer.json()["results"]

    assert len(records) == 2_000
    for key in ("price", "formattedPrice", "languageCodesISO2A", "contentAdvisoryRating", "description"):
        assert 5 < sum(key not in record for record in records) < 60, key
    assert 0.4 < sum("sellerUrl" not in record for record in records) / 2_000 < 0.6
    assert any("averageUserRating" not in record for record in records)
    assert any("releaseNotes" not in record for record in records)


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
        mac = await client.get("/search?term=tracker&entity=macSoftware")
        untold = await client.get("/search?media=software")

    assert (nothing.status_code, nothing.json()["resultCount"]) == (200, 0)
    assert {record["wrapperType"] for record in mixed} == {"software", "track"}
    assert mac.json()["resultCount"] == 0
    assert untold.status_code == 400


@virtual
async def test_a_search_can_be_narrowed_continued_and_wrapped() -> None:
    path = "/search?term=tracker&entity=software&limit=20"
    async with visiting(QUIET) as client:
        whole = (await client.get("/search?term=tracker&entity=software&limit=40")).json()["results"]
        later = (await client.get(f"{path}&offset=20")).json()["results"]
        genre = whole[0]["primaryGenreId"]
        narrowed = (await client.get(f"{path}&genreId={genre}")).json()["results"]
        wrapped = (await client.get(f"{path}&callback=show")).text

    assert later == whole[20:]
    assert {str(genre)} == {str(genre)}.intersection(*(record["genreIds"] for record in narrowed))
    assert wrapped.strip().startswith("show({")
    assert json.loads(wrapped.strip().removeprefix("show(").removesuffix(");"))["resultCount"] == 20


# -- old clients and the web ---------------------------------------------------------------------------------------------


@virtual
async def test_old_clients_and_the_web_see_nearly_the_same_order() -> None:
    path = "/WebObjects/{}.woa/wa/search?clientApplication=Software&media=software&term={}"
    async with visiting(QUIET) as client:
        api = (await client.get("/search?term=tracker&entity=software&limit=200")).json()["results"]
        native = (await client.get(path.format("MZStore", "tracker"), headers=NATIVE)).json()
        sibling = (await client.get(path.format("MZSearch", "tracker"), headers=FRONT)).json()
        unheaded = (await client.get(path.format("MZStore", "tracker"))).text
        nothing = (await client.get(path.format("MZStore", "qwrtp"), headers=NATIVE)).json()
        web = read_page((await client.get("/us/iphone/search?term=tracker")).text)["data"][0]["data"]

    ids = [str(record["trackId"]) for record in api]
    drifted = [result["id"] for result in native["bubbles"][0]["results"]]
    assert sorted(drifted) == sorted(ids)
    assert drifted != ids
    assert all(abs(drifted.index(one) - rank) <= 3 for rank, one in enumerate(ids))
    assert sibling["pageData"]["bubbles"][0]["results"] == native["bubbles"][0]["results"]
    assert "bubbles" not in unheaded
    assert nothing == {}
    lockups = [item["lockup"] for item in web["shelves"][0]["items"]]
    assert [one["adamId"] for one in lockups] + [one["id"] for one in web["nextPage"]["results"]] == drifted
    assert {"adamId", "title", "rating", "ratingCount", "icon"} <= set(lockups[0])
    assert {one["type"] for one in web["nextPage"]["results"]} == {"apps"}


@virtual
async def test_hints_are_a_property_list_and_nothing_without_the_store_front() -> None:
    catalogue = Catalogue()
    keyword = max(catalogue.markets, key=lambda market: market.heat).keywords[0]
    path = "/WebObjects/MZSearchHints.woa/wa/hints?clientApplication=Software&term="
    async with visiting(QUIET, catalogue) as client:
        found = plistlib.loads((await client.get(path + keyword[:4], headers=FRONT)).content)
        longer = plistlib.loads((await client.get(f"{path}{keyword} ", headers=FRONT)).content)
        nothing = plistlib.loads((await client.get(path + keyword[:4])).content)
        hostile = plistlib.loads((await client.get(path + "%3C%26%00", headers=FRONT)).content)

    terms = [hint["term"] for hint in found["hints"]]
    assert found["title"] == "Suggestions"
    assert terms[0] == keyword
    assert 1 < len(terms) <= 10
    assert all(term.startswith(keyword[:4]) for term in terms)
    assert all(hint["url"].startswith("https://search.itunes.apple.com/") for hint in found["hints"])
    assert len(longer["hints"]) >= 5
    assert nothing["hints"] == hostile["hints"] == []


@virtual
async def test_answers_can_be_empty_or_cut_short() -> None:
    catalogue = Catalogue()
    there = [catalogue.track_id(index) for index in sold(catalogue)[:3]]
    paths = ["/search?term=tracker&entity=software", f"/lookup?id={there[0]}"]
    async with visiting(faulty(Fault("empty")), catalogue) as client:
        counts = [(await client.get(path)).json()["resultCount"] for path in paths]
    async with visiting(faulty(Fault("truncated")), catalogue) as client:
        cut = [(await client.get(path)).text for path in paths]

    assert counts == [0, 0]
    assert not any(text.rstrip().endswith("]}") for text in cut)
