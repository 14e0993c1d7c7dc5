"""Listings, homes, searches and notices: from a change on a portal to one message."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from dataclasses import replace
from typing import Any

import icalendar
import pytest

from penstock.channels import Notice
from penstock.testing import virtual
from penstock_systems.rentals import homes, reading, report
from penstock_systems.rentals.app import app, db
from penstock_systems.rentals.settings import Notify
from tests.systems.rentals.conftest import Portals, item


@virtual
async def test_a_first_run_is_summarised_and_what_comes_later_is_notified(portals: Portals) -> None:
    portals.items["one"] = [item(f"a{n}", price=900 + n, area_m2=50.123) for n in range(15)]
    async with portals.running:
        await portals.search("cheap", max_price=1_200)
        await portals.collect()
        assert await portals.notices() == [], "no flood"
        await portals.collect()
        assert portals.titles == ["cheap: 15 homes match"]
        [(_, summary)] = portals.inbox.messages
        assert summary.text.count("\n- 9") == 10
        assert "\n- 900 EUR, 2 rooms, 50.1 m²: flat a0 https://one.example/a0" in summary.text
        portals.items["one"].append(item("new", price=1_100))
        portals.items["one"].append(item("dear", price=1_300))
        await portals.collect()
        assert await portals.notices() == [("new", "one:new", None, 1100)]
        assert portals.titles[1:] == ["New: flat new"]
        await portals.collect(3)
        assert len(portals.inbox.messages) == 2


@pytest.mark.slow("postgres")
@virtual
async def test_an_offer_that_may_be_a_sublet_passes_with_a_mark_and_a_known_one_does_not(portals: Portals) -> None:
    portals.items["one"] = [item("first")]
    async with portals.running:
        await portals.search("rents")
        await portals.collect(2)
        portals.items["one"] += [item("perhaps", deal="unknown"), item("sublet", deal="sublet"), item("plain")]
        await portals.collect()
        texts = {notice.title: notice.text for _, notice in portals.inbox.messages[1:]}
        [digest] = texts.values()
        assert [line.count("perhaps a sublet or swap") for line in digest.split("- New: ")[1:]] == [1, 0]
        assert "flat sublet" not in digest


@virtual
async def test_a_cheaper_home_is_notified_at_each_new_low_and_not_for_a_trifle(portals: Portals) -> None:
    portals.items["one"] = [item("a"), item("bb"), item("ccc")]
    async with portals.running:
        await portals.search("all", max_price=2_000)
        await portals.collect(2)
        for price in (990, 970, 940, 960, 935, 900):
            portals.items["one"][0] = item("a", price=price)
            await portals.collect()
        assert await portals.notices() == [
            ("cheaper", "one:a", 1000, 970),
            ("cheaper", "one:a", 970, 940),
            ("cheaper", "one:a", 940, 900),
        ]


@virtual
async def test_an_implausible_price_is_held_until_it_has_lasted(portals: Portals) -> None:
    portals.items["one"] = [item("a"), item("bb")]
    async with portals.running:
        await portals.search("all", max_price=2_000)
        await portals.collect(2)
        portals.items["one"] = [item("a", price=100), item("bb", price=450)]
        await portals.collect()
        portals.items["one"][0] = item("a")  # a misread price
        await portals.collect()
        assert await portals.notices() == []
        assert await db.column("select listing_id from price_holds") == ["one:bb"]
        for _ in range(6):
            portals.items["one"].append(item(f"x{len(portals.items['one'])}", price=5_000))
            await portals.collect()
        assert await portals.notices() == [("cheaper", "one:bb", 1000, 450)]
        assert await db.column("select listing_id from price_holds") == []


@virtual
async def test_rents_with_and_without_fees_are_each_held_and_believed(portals: Portals) -> None:
    portals.items["one"] = [item("a", price_total=1_200), item("bb", lat=52)]
    async with portals.running:
        await portals.collect(2)
        portals.items["one"][0] = item("a", price=500, price_total=650)
        await portals.collect()
        held = await db.rows("select kind, was, seen from price_holds order by kind")
        assert [tuple(row) for row in held] == [("price_base", 1000, 500), ("price_total", 1200, 650)]
        portals.items["one"][0] = item("a", price=500, price_total=1_190)
        await portals.collect()
        assert await db.column("select kind from price_holds") == ["price_base"], "one is plausible again"
        for number in range(7):
            portals.items["one"][1] = item("bb", lat=52, title=f"flat {number}")
            await portals.collect()
        [row] = await db.rows("select price_base, price_total from listings where id = 'one:a'")
        assert tuple(row) == (500, 1190)
        believed = "select price_base from listing_versions where listing_id = 'one:a' order by seen_at desc limit 1"
        assert await db.value(believed) == 500


@virtual
async def test_rents_with_and_without_fees_are_not_compared(portals: Portals) -> None:
    portals.items["one"] = [item("a", price=None, price_total=1_200)]
    portals.items["two"] = [item("a", price=1_000)]
    async with portals.running:
        await portals.search("all")
        await portals.collect(2)
        assert await db.value("select count(*) from homes") == 1, "the same address, size and rooms"
        assert await portals.notices() == []
        portals.items["two"] = [item("a", price=950)]
        await portals.collect()
        assert await portals.notices() == [("cheaper", "two:a", 1000, 950)]


@virtual
async def test_a_home_is_gone_when_no_portal_has_it_and_back_when_one_has_it_again(portals: Portals) -> None:
    for name in portals.items:
        portals.items[name] = [item("a"), *(item(f"{name}{n}", lat=51 + n) for n in range(20))]
    async with portals.running:
        await portals.search("all", max_price=2_000)
        await portals.collect(2)
        gone = portals.items["one"].pop(0)
        await portals.collect(3)
        assert await portals.notices() == [], "the other portal has it"
        portals.items["two"].pop(0)
        await portals.collect(3)
        assert [(reason, id) for reason, id, *_ in await portals.notices()] == [("gone", "two:a")]
        portals.items["one"].insert(0, gone | {"id": "again"})
        await portals.collect()
        assert [(reason, id) for reason, id, *_ in await portals.notices()][1:] == [("back", "one:again")]


@virtual
async def test_a_person_splits_a_home_for_good_and_joins_others(portals: Portals) -> None:
    portals.items["one"], portals.items["two"] = [item("a"), item("bb", lat=52)], [item("a")]
    async with portals.running:
        await portals.collect(2)
        async with portals.running.client() as http:
            shown = (await http.get("/v1/homes/one:a")).json()["result"]
            assert {each["id"] for each in shown["listings"]} == {"one:a", "two:a"}
            assert "address" in shown["listings"][1]["why"]
            made = (await http.post("/v1/homes/one:a/split", json={"id": "two:a"})).json()["result"]["home"]
            assert made == "two:a"
            again = await http.post("/v1/homes/two:a/split", json={"id": "two:a"})
            assert again.status_code == 422
            await http.post("/v1/homes/one:a/join", json={"id": "one:bb"})
            await http.post("/v1/homes/one:a/star", json={})
        portals.items["two"][0] = item("a", title="changed")
        await portals.collect(2)
        homes = {row.id: row.home_id for row in await db.rows("select id, home_id from listings")}
        assert homes == {"one:a": "one:a", "one:bb": "one:a", "two:a": "two:a"}
        assert await db.value("select starred from homes where id = 'one:a'") == 1


@virtual
async def test_a_hidden_home_is_not_shown_and_causes_no_notice_and_a_starred_one_is_listed(portals: Portals) -> None:
    portals.items["one"] = [item("a"), item("bb", lat=52)]
    async with portals.running:
        await portals.search("all", max_price=2_000)
        await portals.collect(2)
        async with portals.running.client() as http:
            await http.post("/v1/homes/one:a/hide", json={})
            await http.post("/v1/homes/one:bb/star", json={})
            portals.items["one"] = [item("a", price=800), item("bb", lat=52, price=800)]
            await portals.collect()
            assert [id for _, id, *_ in await portals.notices()] == ["one:bb"]
            shown = (await http.get("/v1/listings")).json()["result"]["listings"]
            assert [each["id"] for each in shown] == ["one:bb"]
            marked = (await http.get("/v1/homes")).json()["result"]
            assert [(each["id"], each["starred"]) for each in marked] == [("one:bb", 1)]
            hidden = (await http.get("/v1/homes", params={"starred": False, "hidden": True})).json()["result"]
            assert [each["id"] for each in hidden] == ["one:a"]


@virtual
async def test_a_home_that_a_person_splits_or_joins_is_not_new_to_a_search(portals: Portals) -> None:
    portals.items["one"], portals.items["two"] = [item("a"), item("bb", lat=52)], [item("a")]
    async with portals.running:
        await portals.search("all", max_price=2_000)
        await portals.collect(2)
        async with portals.running.client() as http:
            await http.post("/v1/homes/one:a/split", json={"id": "two:a"})
            await http.post("/v1/homes/one:bb/join", json={"id": "one:a"})
        portals.items["one"], portals.items["two"] = [item("a", price=950), item("bb", lat=52)], [item("a", price=900)]
        await portals.collect()
        assert sorted(await portals.notices()) == [("cheaper", "one:a", 1000, 950), ("cheaper", "two:a", 1000, 900)]
        async with portals.running.client() as http:
            await http.post("/v1/homes/two:a/join", json={"id": "one:bb"})
        assert await db.column("select id from homes") == ["two:a"]
        assert await db.value("select count(*) from home_splits") == 0, "a join takes the split back"


@virtual
async def test_a_paused_search_causes_no_notice(portals: Portals) -> None:
    portals.items["one"] = [item("a")]
    async with portals.running, portals.running.client() as http:
        given = {"name": "mine", "notify": {"channel": "inbox"}}
        id = (await http.post("/v1/searches", json=given)).json()["result"]["id"]
        await portals.collect(2)
        await http.put(f"/v1/searches/{id}", json=given | {"paused": True})
        portals.items["one"] = [item("a", price=900)]
        await portals.collect()
        assert await portals.notices() == []


@virtual
async def test_a_search_is_compared_with_all_listings_however_many(
    portals: Portals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE", 3)
    portals.items["one"] = [item("x" * n, price=1_000 + n) for n in range(1, 12)]
    async with portals.running, portals.running.client() as http:
        await portals.collect()
        made = await http.post("/v1/searches", json={"name": "mine", "filter": {"max_price": 1_010}})
        assert made.json()["result"]["matches"] == 10
        cheap = (await http.get("/v1/listings", params={"max_price": 1_002})).json()["result"]["listings"]
        assert [each["price_base"] for each in cheap] == [1001, 1002]


@virtual
async def test_quiet_hours_keep_notices_for_one_message_in_the_morning(portals: Portals) -> None:
    portals.items["one"] = [item("a")]
    async with portals.running:
        await portals.search("calm", Notify(channel="inbox", quiet_from="10:00", quiet_to="18:00"))
        await portals.collect(2)
        portals.inbox.messages.clear()
        await portals.running.advance(hours=1)
        for n in range(3):
            portals.items["one"].append(item("b" * (n + 3)))
            await portals.collect()
        assert len(await portals.notices()) == 3
        assert portals.inbox.messages == []
        await portals.running.advance(hours=6)
        [(_, digest)] = portals.inbox.messages
        assert (digest.title, digest.text.count("- New: flat")) == ("3 notices about homes", 3)


@pytest.mark.spec("G1-07")
@virtual
async def test_sources_are_operated_over_http_and_audited(portals: Portals) -> None:
    async with portals.running:
        async with portals.running.client() as http:
            assert (await http.post("/v1/sources/one/disable")).status_code == 200
            assert (await http.post("/v1/sources/none/disable")).status_code == 404
            portals.items["one"] = portals.items["two"] = [item("a")]
            await portals.collect()
            shown = {each["name"]: each for each in (await http.get("/v1/sources")).json()["result"]}
            assert (shown["one"]["verdict"], shown["two"]["verdict"]) == (None, "ok")
            assert (await http.post("/v1/sources/one/enable")).status_code == 200
            await portals.collect()
            runs = (await http.get("/v1/sources/one/runs")).json()["result"]
            assert [(run["verdict"], run["inserted"]) for run in runs] == [("ok", 1)]
        async with portals.running.client("app:read") as http:
            assert (await http.post("/v1/sources/one/disable")).status_code == 403
        verbs = await db.rows("select verb, name, actor from penstock_audit where kind = 'source' order by at")
        assert [tuple(row) for row in verbs] == [("sources disable", "one", "test"), ("sources enable", "one", "test")]


@virtual
async def test_searches_and_feeds_over_http(portals: Portals) -> None:
    portals.items["one"] = [
        item("a", deadline="2026-11-20", title="=cmd|<b>"),
        item("bb", price=3_000),
        item("ccc", deal="swap"),
    ]
    async with portals.running, portals.running.client() as http:
        await portals.collect()
        given = {"name": "mine", "filter": {"max_price": 2000, "near": [50.0, 20.0, 5]}, "notify": {"channel": "inbox"}}
        made = (await http.post("/v1/searches", json=given)).json()["result"]
        assert made["matches"] == 1
        id = made["id"]
        wrong = await http.post("/v1/searches", json=given | {"filter": {"max_prise": 1}})
        assert wrong.status_code in (400, 422)
        unknown = await http.post("/v1/searches", json=given | {"notify": {"channel": "pigeon"}})
        assert unknown.status_code == 422
        preview = (await http.post(f"/v1/searches/{id}/preview")).json()["result"]
        assert [each["id"] for each in preview["listings"]] == ["one:a"]
        feed = pytest.importorskip("feedparser").parse((await http.get(f"/v1/searches/{id}/feed.rss")).content)
        assert (feed.bozo, [entry.id for entry in feed.entries]) == (False, ["one:a"])
        calendar = icalendar.Calendar.from_ical((await http.get(f"/v1/searches/{id}/feed.ics")).text)
        [event] = calendar.walk("VEVENT")
        assert str(event.decoded("dtstart")) == "2026-11-20"
        found = await http.get("/v1/listings", params={"max_price": 2000, "format": "geojson"})
        assert [each["id"] for each in json.loads(found.text)["features"]] == ["one:a"]
        rows = list(csv.DictReader(io.StringIO((await http.get("/v1/listings", params={"format": "csv"})).text)))
        assert {row["title"][:2] for row in rows if row["id"] == "one:a"} == {"'="}, "a spreadsheet runs no formula"
        assert (await http.get("/v1/listings", params={"near": "here"})).status_code == 422
        assert (await http.delete(f"/v1/searches/{id}")).status_code == 200
        assert (await http.get(f"/v1/searches/{id}")).status_code == 404
        page = await report.render()
        assert "<svg" in page
        assert "=cmd|&lt;b&gt;" in page or "=cmd|<b>" not in page


@pytest.mark.spec("E-05", "E-13")
@virtual
async def test_raw_and_normalised_listings_have_versions(portals: Portals) -> None:
    portals.items["one"] = [item("a")]
    async with portals.running:
        await portals.collect()
        portals.items["one"] = [item("a", price=950)]
        await portals.collect()
        versions = await db.rows("select kind, price_base from listing_versions order by seen_at")
        assert [tuple(row) for row in versions] == [("new", 1000), ("changed", 950)]
        raw: Any = await db.first("select source_item_id, raw_json, content_hash from listings_raw")
        assert raw.source_item_id == "a"
        assert json.loads(raw.raw_json)["price"] == 950


@virtual
async def test_a_message_whose_outcome_is_unknown_is_not_lost_and_one_that_failed_is_sent_again(
    portals: Portals, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.channels import Outcome

    portals.items["one"] = [item("a")]
    async with portals.running:
        await portals.search("all")
        await portals.collect(2)
        portals.inbox.messages.clear()
        answers = [Outcome("failed", "down"), Outcome("failed", "down")]
        send = type(portals.inbox)._send

        async def failing(self: Any, notice: Notice, key: str, flight: Any) -> Outcome:
            return answers.pop(0) if answers else await send(self, notice, key, flight)

        monkeypatch.setattr(type(portals.inbox), "_send", failing)
        portals.items["one"].append(item("bb", lat=53))
        await portals.collect()
        assert portals.titles == ["New: flat bb"]
        assert await db.column("select status from sends order by intent_at desc limit 1") == ["sent"]
        assert await app.db.value("select attempts from sends order by intent_at desc limit 1") == 3


@pytest.mark.slow("postgres")
@virtual
async def test_a_flat_that_two_portals_offer_at_once_is_one_home_however_many_workers_join(
    portals: Portals, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(joining: homes.Joining, *given: Any) -> Any:
        await asyncio.sleep(2)
        return await of_homes(joining, *given)

    of_homes = homes.Joining.of_homes
    monkeypatch.setattr(homes.Joining, "of_homes", slowly)
    queue = app.queues["listings"]
    monkeypatch.setattr(queue, "settings", replace(queue.settings, parallel=8))
    portals.items["one"] = [item(f"a{n}", lat=40 + n / 50, street=f"Ring {n}") for n in range(300)]
    portals.items["two"] = portals.items["one"]
    async with portals.running:
        await portals.collect()
        assert await db.value("select count(*) from listings") == 600
        assert await db.value("select count(*) from homes") == 300


@pytest.mark.slow("postgres")
@virtual
async def test_long_descriptions_on_one_page_fit_their_commits(portals: Portals) -> None:
    text = "דירה שקטה " * 600  # 10 kB, in a script whose letters take two bytes
    portals.items["one"] = [item(f"a{n}", lat=40 + n / 50, description=text) for n in range(300)]
    async with portals.running:
        await portals.collect()
        [source, _] = await app.sources.list()
        assert (source.verdict, source.last_error) == ("ok", None)
        assert await db.value("select count(*) from listings") == 300
