"""DeclaredConnector connectors: what they read from JSON, HTML, JSON-LD, RSS and taps, and the contract that checks them."""

from __future__ import annotations

import asyncio
import json
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect import DeclaredConnector, Page
from penstock.connect.contract import Answer, check_connector, read_pages, replaying
from penstock.connect.fields import as_number, convert, find_json
from penstock.connect.formats import read_feed
from penstock.connect.page import Changed
from penstock.connect.paging import paging_of
from penstock.connect.spec import read_spec

BASE = "https://portal.example/ads"
HTML = """<html><body><ul>
<li class="ad" data-id="7"><a href="/flat/7">Sunny  flat</a><b>1.250,00 €</b><i>54,5 m²</i></li>
<li class="ad" data-id="8"><a href="/flat/8">Attic</a><b>on request</b></li><li class="ad">an advertisement</li>
</ul></body></html>"""
JSONLD = """<html><script type="application/ld+json">{"@context": "https://schema.org", "@graph": [
{"@type": "BreadcrumbList"}, {"@type": ["Apartment", "Product"], "@id": "a1", "url": "https://portal.example/a1",
"name": "Two rooms", "numberOfRooms": {"@type": "QuantitativeValue", "value": "2"}, "floorSize": {"value": 51},
"address": {"addressLocality": "Graz", "streetAddress": "Ring 5"}, "geo": {"latitude": 47.1, "longitude": "15.4"},
"offers": {"@type": "Offer", "price": "890.00", "priceCurrency": "EUR"}}]}</script>
<script type="application/ld+json">{broken</script></html>"""
RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:g-core="http://base.google.com/ns/1.0"><channel><item>
<guid>g1</guid><title>Loft</title><link>https://portal.example/g1</link><pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate>
<g-core:price>$1,450.00</g-core:price></item></channel></rss>"""


def read(spec: dict[str, Any], *bodies: str, cursor: str | None = None, kind: str = "application/json") -> list[Page]:
    connector = DeclaredConnector({"name": "portal", "base": BASE} | spec)
    answers = [Answer(BASE if n == 0 else f"{BASE}?page={n + 1}", kind, body) for n, body in enumerate(bodies)]
    return asyncio.run(read_pages(connector, cursor, replaying(connector, answers)))


def test_html_is_read_by_selectors() -> None:
    fields = {"title": "a::text", "price": {"path": "b", "as": "price"}, "area_m2": {"path": "i", "as": "number"}}
    spec = {"kind": "html", "records": "li.ad", "id": "::attr(data-id)", "url": "a::attr(href)", "fields": fields}
    [page] = read(spec, HTML, kind="text/html")
    assert [(each.id, each.url, dict(each.data)) for each in page.records] == [
        ("7", "https://portal.example/flat/7", {"title": "Sunny flat", "price": 1250, "area_m2": 54.5}),
        ("8", "https://portal.example/flat/8", {"title": "Attic", "price": None, "area_m2": None}),
    ]
    assert page.unreadable == 1


def test_schema_org_needs_no_fields() -> None:
    [page] = read({"kind": "jsonld", "url": "url"}, JSONLD, kind="text/html")
    [record] = page.records
    assert (record.id, record.url) == ("a1", "https://portal.example/a1")
    assert record.data == {
        "title": "Two rooms",
        "price": 890,
        "currency": "EUR",
        "rooms": 2,
        "area_m2": 51,
        "street": "Ring 5",
        "city": "Graz",
        "lat": 47.1,
        "lon": 15.4,
        "posted_at": None,
    }


def test_rss_gives_its_entries_with_extensions() -> None:
    price = {"price": {"path": '"g-core_price"', "as": "price"}}
    [page] = read({"kind": "rss", "url": "link", "fields": price}, RSS, kind="application/rss+xml")
    [record] = page.records
    assert (record.id, record.data["title"], record.data["price"]) == ("g1", "Loft", 1450)
    assert record.data["posted_at"] == "2026-11-02 10:00:00"


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"<rss", b"<?xml version='1.0'?><rss><channel><item>", b"<feed>"])
)
def test_a_malformed_feed_is_read_or_refused_and_nothing_else(body: bytes, before: bytes) -> None:
    try:
        assert isinstance(read_feed(before + body), list)
    except Changed:
        pass


def test_the_feeds_of_feedparsers_suite_are_read_or_refused_and_nothing_else(note: Callable[[str], None]) -> None:
    """2,106 feeds, well-formed and not, from kurtmckee/feedparser at a22c552 (BSD-2; its licence is in the archive)."""
    found: Counter[str] = Counter()
    with tarfile.open(Path(__file__).with_name("feeds.tar.xz")) as feeds:
        for member in feeds:
            file = feeds.extractfile(member)
            if file is None or not member.name.endswith(".xml"):
                continue
            body = file.read()
            for part, cut in ((body, ""), (body[: len(body) // 2], " of the first half")):
                try:
                    found[("with entries" if read_feed(part) else "without entries") + cut] += 1
                except Changed:
                    found["refused" + cut] += 1
    note(f"feeds of feedparser's suite: {dict(found)}")
    assert found.total() == 2 * 2_106
    assert found["refused"] < 10
    assert found["with entries"] > 1_100


def test_a_field_is_mapped_matched_and_bounded() -> None:
    fields = {
        "rooms": {"path": "rooms", "map": {"one": 1, "two": 2}},
        "price": {"path": "price", "as": "number", "least": 100},
        "posted_at": {"path": "image", "match": r"_(\d{14})\.", "as": "date:%Y%m%d%H%M%S"},
        "currency": {"value": "ILS"},
    }
    item = {"id": 1, "rooms": "two", "price": "12", "image": "https://x/y2_1_20261110101500.jpeg"}
    [page] = read({"records": "@", "fields": fields}, json.dumps([item]))
    assert page.records[0].data == {
        "rooms": 2,
        "price": None,
        "posted_at": "2026-11-10 10:15:00",
        "currency": "ILS",
    }


def test_numbers_of_programs_and_of_people() -> None:
    given = {"50.061": 50.061, "19.9": 19.9, "-7": -7, "54,5 m²": 54.5, "1.250 m²": 1250, 3: 3, True: 1, "none": None}
    assert {value: as_number(value) for value in given} == given


def test_a_link_that_loops_ends_the_list() -> None:
    first = json.dumps({"data": [{"id": 1, "a": 1}], "next": f"{BASE}?page=2"})
    second = json.dumps({"data": [{"id": 2, "a": 1}], "next": f"{BASE}?page=2"})
    spec = {"records": "data", "paginator": {"kind": "next_link", "path": "next"}, "fields": {"a": "a"}}
    pages = read(spec, first, second)
    assert [record.id for page in pages for record in page.records] == ["1", "2"]
    assert [page.complete for page in pages] == [False, True]


def test_a_range_is_halved_until_no_answer_is_cut_off() -> None:
    prices = list(range(0, 8_000, 20))

    class Capped(DeclaredConnector):
        asked = 0

        async def _ask(self, http: Any, url: str, params: Any) -> tuple[list[Any], Any, Any]:
            self.asked += 1
            low, high = params.get("low", 0), params.get("high", 10**9)
            found = [{"id": price, "a": price} for price in prices if low <= price <= high][:200]
            return found, lambda node, path: node.get(path) if isinstance(node, dict) else None, found

    pager = {"kind": "bisect", "param": ["low", "high"], "range": [0, 10_000], "size": 200, "least": 250}
    spec = {"name": "a", "base": BASE, "records": "@", "paginator": pager, "fields": {"a": "a"}}
    connector = Capped(spec)
    pages = asyncio.run(read_pages(connector, None, replaying(connector, [Answer(BASE, "", "[]")])))
    assert {int(record.id) for page in pages for record in page.records} == set(prices)
    assert pages[-1].complete
    assert connector.asked == 5


TAP = """
import json, sys
after = json.load(open(sys.argv[sys.argv.index("--state") + 1]))["after"] if "--state" in sys.argv else 0
print(json.dumps({"type": "SCHEMA", "stream": "flats", "key_properties": ["id"], "schema": {}}))
print("a line that is no message")
for number in range(after + 1, 6):
    print(json.dumps({"type": "RECORD", "stream": "flats", "record": {"id": number, "rent": 100 * number}}))
    if number % 2 == 0:
        print(json.dumps({"type": "STATE", "value": {"after": number}}))
print(json.dumps({"type": "STATE", "value": {"after": 5}}))
sys.exit(3 if "--fail" in sys.argv else 0)
"""


def test_a_singer_tap_is_a_source_and_its_state_is_the_cursor(tmp_path: Path) -> None:
    tap = tmp_path / "tap.py"
    tap.write_text(TAP)
    spec = {"kind": "singer", "command": [sys.executable, str(tap)], "fields": {"price": "rent"}}
    pages = read(spec, "")
    assert [[record.id for record in page.records] for page in pages] == [["1", "2"], ["3", "4"], ["5"]]
    assert [page.cursor for page in pages] == ['{"after": 2}', '{"after": 4}', '{"after": 5}']
    again = read(spec, "", cursor=pages[0].cursor)
    assert [record.id for page in again for record in page.records] == ["3", "4", "5"]
    with pytest.raises(Exception, match="exit code 3"):
        read(spec | {"command": [*spec["command"], "--fail"]}, "")


@pytest.mark.spec("E-02", "E-03")
def test_the_contract_passes_a_good_connector_and_names_what_a_bad_one_breaks() -> None:
    items = [{"id": number, "a": number, "at": f"2026-11-0{number}"} for number in range(1, 6)]
    good = {"name": "p", "base": BASE, "records": "@", "fields": {"a": "a"}}
    good |= {"order": "ascending", "cursor": {"path": "at"}}

    def failed(spec: dict[str, Any], answer: object = items) -> list[str]:
        connector = DeclaredConnector(spec)
        answers = [Answer(BASE, "application/json", json.dumps(answer))]
        checks = asyncio.run(check_connector(connector, lambda: replaying(connector, answers)))
        return [each.name for each in checks if not each.passed]

    assert failed(good) == []
    assert failed(good | {"fields": {"a": "a", "price": "cost"}}) == ["no field is lost"]
    assert failed(good | {"records": "items"}) == ["it reads its source"]
    assert failed(good, items[:3] + [{"b": 1}] * 5)[:1] == ["records can be read"]
    assert failed(good | {"expect": {"at_least": 9}}) == ["it finds what it expects"]
    fetched = DeclaredConnector(good)
    http = replaying(fetched, [Answer(BASE, "application/json", json.dumps(items))])
    candidates, cursor = asyncio.run(fetched.fetch_new("2026-11-03", http))
    assert ([each.id for each in candidates], cursor) == (["4", "5"], "2026-11-05")


@given(st.text(max_size=60))
def test_a_value_of_any_text_is_a_number_or_none(text: str) -> None:
    assert isinstance(as_number(text), int | float | None)
    for kind in ("iso", "epoch", "text", "price", "currency", "bool", "date:%Y"):
        convert(text, kind)


@pytest.mark.parametrize(
    "paginator, asked",
    [
        ({"kind": "page", "param": "page"}, [1, 2]),
        ({"kind": "page", "param": "page", "start": 0}, [0, 1]),
        ({"kind": "offset", "param": "skip", "size": 1}, [0, 1]),
        ({"kind": "offset", "param": "skip", "size": 1, "start": 7}, [7, 8]),
    ],
)
def test_pages_are_counted_from_one_and_records_from_none(paginator: dict[str, Any], asked: list[int]) -> None:
    paging = paging_of(
        read_spec({"name": "a", "base": BASE, "records": "@", "fields": {"b": "c"}, "paginator": paginator})
    )
    found: list[Any] = []
    for ids in (["a"], ["b"]):
        request = paging.next()
        assert request is not None
        found += request[1].values()
        paging.saw(None, 1, ids, find_json)
    assert found == asked


@pytest.mark.parametrize(
    "link, url",
    [
        ("/flat/7", "https://portal.example/flat/7"),
        ("https://other.example/7", "https://other.example/7"),
        ("//[", "//["),
    ],
)
def test_a_link_is_completed_by_the_base(link: str, url: str) -> None:
    [page] = read({"records": "@", "url": "href", "fields": {"a": "id"}}, json.dumps([{"id": 1, "href": link}]))
    assert [record.url for record in page.records] == [url]
