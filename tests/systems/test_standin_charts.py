"""The charts of the stand-in App Store, in all the ways there are to ask for one, and the tree of genres."""

from __future__ import annotations

import asyncio
import json
from xml.etree import ElementTree

import pytest

from penstock.testing import virtual
from penstock_systems.standins.appstore import Catalogue
from tests.systems.standin_visits import QUIET, differences, read_page, visiting

FREE_GAMES = "/us/rss/topfreeapplications/limit=100/genre=6014/json"
SERVICES = "/WebObjects/MZStoreServices.woa/ws"

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

TOOLS = """{"feed":{"title":"Top Free Apps","id":"..","author":{"name":"Apple","url":".."},"links":[{"self":".."}],
"copyright":"..","country":"us","icon":"..","updated":"Sun, 15 Nov 2026 08:10:11 +0000",
"results":[{"artistName":"..","id":"1","name":"..","releaseDate":"2021-05-04","kind":"apps","artworkUrl100":"..",
"genres":[],"url":".."}]}}"""


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
async def test_some_entries_of_a_chart_lack_what_others_have() -> None:
    entries = []
    async with visiting(QUIET, Catalogue(apps=30_000)) as client:
        for genre in (6000, 6002, 6007, 6012, 6013, 6014, 6017):
            path = f"/us/rss/topfreeapplications/limit=200/genre={genre}/json"
            entries += (await client.get(path)).json()["feed"]["entry"]

    assert any("attributes" not in entry["im:artist"] for entry in entries)
    hrefs = [entry["im:artist"]["attributes"]["href"] for entry in entries if "attributes" in entry["im:artist"]]
    assert any("/id" not in href for href in hrefs)
    assert any("summary" not in entry for entry in entries)
    assert {type(entry["link"]) for entry in entries} == {list, dict}


@virtual
async def test_a_chart_without_entries_has_no_key_and_one_with_a_single_entry_no_list() -> None:
    async with visiting(QUIET) as client:
        empty = (await client.get("/us/rss/topfreeapplications/limit=100/genre=6025/json")).json()["feed"]
        single = (await client.get("/us/rss/topfreeapplications/limit=1/genre=6014/json")).json()["feed"]
        unknown = (await client.get("/us/rss/topfreeapplications/limit=9/genre=99/json")).json()["feed"]
        overall = (await client.get("/us/rss/topfreeapplications/limit=9/json")).json()["feed"]
        mac = (await client.get("/us/rss/topmacapps/limit=9/json")).json()["feed"]
        wrong = await client.get("/us/rss/topapplications/limit=9/json")

    assert "entry" not in empty
    assert "entry" not in mac
    assert isinstance(single["entry"], dict)
    assert unknown["entry"] == overall["entry"]
    assert wrong.status_code == 404


@virtual
async def test_a_chart_is_the_same_in_all_the_ways_there_are_to_ask_for_it() -> None:
    spaces = {"atom": "http://www.w3.org/2005/Atom"}
    charts = "cc=us&g=6014&name=freeAppsV2&limit=100"
    old = {"X-Apple-Store-Front": "143441,26"}
    async with visiting(QUIET) as client:
        entries = (await client.get(FREE_GAMES)).json()["feed"]["entry"]
        atom = ElementTree.fromstring((await client.get(FREE_GAMES.replace("json", "xml"))).content)
        ids = (await client.get(f"{SERVICES}/charts?{charts}")).json()["resultIds"]
        older = (await client.get(f"{SERVICES}/RSS/topfreeapplications/genre=6014/limit=100/json?s=143441")).json()
        top = "/WebObjects/MZStore.woa/wa/viewTop?cc=us&genreId=6014&popId=27"
        client_chart = (await client.get(top, headers=old)).json()
        page = (await client.get(top)).headers["content-type"]
        web = read_page((await client.get("/us/charts/iphone/games/6014?chart=top-free")).text)

    named = [entry["id"]["attributes"]["im:id"] for entry in entries]
    assert len(named) > 50
    assert named == ids
    assert named == [
        one.attrib["{http://itunes.apple.com/rss}id"] for one in atom.findall("atom:entry/atom:id", spaces)
    ]
    assert older["feed"]["entry"] == entries
    segment = client_chart["pageData"]["segmentedControl"]["segments"][0]
    assert segment["pageData"]["selectedChart"]["adamIds"][:100] == named
    assert len(client_chart["storePlatformData"]["lockup"]["results"]) <= 84
    assert page.startswith("text/html")
    shelf = web["data"][0]["data"]["shelves"][0]["items"]
    assert [item["lockup"]["adamId"] for item in shelf] == named


@virtual
async def test_the_newer_feed_knows_four_sizes_and_no_genres() -> None:
    async with visiting(QUIET) as client:
        feed = (await client.get("/api/v2/us/apps/top-free/100/apps.json")).json()
        paid = (await client.get("/api/v2/us/apps/top-paid/10/apps.json")).json()["feed"]["results"]
        refused = [
            (await client.get(f"/api/v2/us/apps/{kind}/{size}/apps.json")).status_code
            for kind, size in (("top-free", 200), ("top-grossing", 100), ("top-free", "x"))
        ]
        legacy = (await client.get("/us/rss/topfreeapplications/limit=100/json")).json()["feed"]["entry"]

    assert differences(json.loads(TOOLS), feed) == []
    assert [one["id"] for one in feed["feed"]["results"]] == [entry["id"]["attributes"]["im:id"] for entry in legacy]
    assert len(paid) <= 10
    assert refused == [404, 404, 404]


@virtual
async def test_genres_are_a_tree_with_the_games_below_games() -> None:
    async with visiting(QUIET) as client:
        tree = (await client.get(f"{SERVICES}/genres?id=36&cc=us")).json()
        games = (await client.get(f"{SERVICES}/genres?id=6014&cc=us")).json()

    root = tree["36"]
    assert (root["name"], len(root["subgenres"])) == ("App Store", 27)
    assert root["subgenres"]["6015"]["name"] == "Finance"
    assert {"name", "id", "url", "rssUrls"} <= set(root["subgenres"]["6015"])
    assert games["6014"]["subgenres"]["7012"]["name"] == "Puzzle"


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


@virtual
async def test_a_small_paid_chart_is_mostly_chance_and_a_few_entries_short() -> None:
    path = "/us/rss/toppaidapplications/limit=100/genre={}/json"
    catalogue = Catalogue(apps=300_000, markets=60)
    seen = {}
    async with visiting(QUIET, catalogue) as client:
        for day in (0, 1):
            for genre in (6000, 6014):
                entries = (await client.get(path.format(genre))).json()["feed"]["entry"]
                seen[day, genre] = {entry["id"]["attributes"]["im:id"] for entry in entries}
            await asyncio.sleep(86_400)
        short = [len((await client.get(path.format(genre))).json()["feed"]["entry"]) for genre in (6000, 6002, 6014)]

    business, games = (len(seen[0, genre] & seen[1, genre]) / len(seen[0, genre]) for genre in (6000, 6014))
    assert business < games
    assert business == pytest.approx(0.8, abs=0.15)
    assert all(90 <= count <= 100 for count in short)
