"""Sources of pages and of a tap, run by the collector; what an answer costs; a source that is overdue."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

import penstock as ps
from penstock.connect import Http, Page, Record
from penstock.connect.running import SQL
from penstock.model.statement import one_line
from penstock.testing import TestApp, virtual
from penstock.views.status import conditions
from tests.flow.portal import HOST, SPEC, START, Portal, Shelf
from tests.postgres import empty_database

PER_PAGE = 20


class Site:
    """A generated site: pages of advertisements in HTML with a link to the next page."""

    def __init__(self, count: int) -> None:
        self.rents = {number: 500 + 7 * number for number in range(1, count + 1)}
        self.theme = ""

    async def page(self, request: Request) -> Response:
        if request.url.path == "/robots.txt":
            return Response("User-agent: *\nDisallow: /private\n")
        start = int(request.query_params.get("from", 0))
        numbers = list(self.rents)[start : start + PER_PAGE]
        ads = "".join(
            f'<article class="ad{self.theme}" data-id="{n}"><h2>Flat &amp; garden {n}</h2><a href="/flat/{n}">see</a>'
            f"<b>{self.rents[n]:,} €</b><ul><li>{n % 5 + 1} rooms</li><li>{40 + n} m²</li></ul></article>"
            for n in numbers
        )
        more = f'<a rel="next" href="?from={start + PER_PAGE}">more</a>' if start + PER_PAGE < len(self.rents) else ""
        return HTMLResponse(f"<!doctype html><title>Flats</title><main>{ads}</main>{more}")

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.page)])


PAGES = {
    "name": "site",
    "base": f"{HOST}/flats",
    "kind": "html",
    "records": "article.ad",
    "id": "::attr(data-id)",
    "url": "a::attr(href)",
    "rate": 50.0,
    "paginator": {"kind": "next_link", "path": "a[rel=next]::attr(href)"},
    "expect": {"at_least": 5},
    "fields": {
        "title": "h2::text",
        "price": {"path": "b", "as": "price"},
        "currency": {"path": "b", "as": "currency"},
        "rooms": {"path": "li:nth-child(1)", "as": "number"},
        "area_m2": {"path": "li:nth-child(2)", "as": "number"},
    },
}


@virtual
async def test_a_generated_site_of_pages_is_collected_compared_and_reported_when_it_is_redesigned() -> None:
    shelf, site = Shelf(), Site(70)
    shelf.web.mount(HOST, site.app())
    shelf.connect(PAGES)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        assert Counter(kind for kind, _ in shelf.changes) == {"new": 70}
        row = await shelf.app.db.first("select data, url from source_records where item_id = '33'")
        assert row is not None
        assert row.data == '{"title":"Flat & garden 33","price":731,"currency":"EUR","rooms":4,"area_m2":73}'
        assert row.url == f"{HOST}/flat/33"
        site.rents[33] = 700
        del site.rents[5]
        await app.advance(minutes=60)
        assert shelf.changes[70:] == [("changed", "33"), ("gone", "5")]
        site.theme = "vert"
        await app.advance(minutes=30)
        assert (await shelf.state("site")).verdict == "changed"
        assert shelf.told == ["raised source site: changed"]
        assert await shelf.app.db.value("select count(*) from source_records where gone_at is null") == 69


TAP = """
import json, sys
from pathlib import Path

flats = json.loads(Path(sys.argv[1]).read_text())
state = json.loads(Path(sys.argv[sys.argv.index("--state") + 1]).read_text()) if "--state" in sys.argv else {}

def put(**message):
    print(json.dumps(message), flush=True)

put(type="SCHEMA", stream="flats", key_properties=["id"], schema={"properties": {"id": {}, "rent": {}, "at": {}}})
for flat in sorted(flats, key=lambda each: each["at"]):
    if flat["at"] <= state.get("at", 0):
        continue
    if flat.get("broken"):
        sys.exit("the disk is full")
    put(type="RECORD", stream="flats", record=flat)
    put(type="STATE", value={"at": flat["at"]})
"""


def test_a_tap_goes_on_behind_the_state_that_was_saved_with_its_rows(tmp_path: Path, kept_on: str) -> None:
    """In real time, since the tap is a process of its own."""
    shelf, tap, flats = Shelf(), tmp_path / "tap.py", tmp_path / "flats.json"
    shelf.app.database = empty_database() if kept_on == "postgres" else str(tmp_path / "taps.db")
    tap.write_text(TAP)
    assert len(TAP.splitlines()) <= 30
    command = [sys.executable, str(tap), str(flats)]
    source = shelf.connect({"name": "tap", "kind": "singer", "command": command, "fields": {"price": "rent"}})

    async def collect(*found: dict[str, int]) -> tuple[str, str | None]:
        flats.write_text(json.dumps(found))
        async with shelf.app:
            await source.enable()
            await shelf.app.sources.run()
            state = await shelf.state("tap")
        assert state.last_error is None or "exit code 1: the disk is full" in state.last_error
        return state.verdict, state.cursor

    broken = {"id": 3, "at": 3, "broken": 1}
    first = collect({"id": 1, "rent": 800, "at": 1}, {"id": 2, "rent": 900, "at": 2}, broken)
    assert asyncio.run(first) == ("failed", '{"at": 2}')
    assert shelf.changes == [("new", "1"), ("new", "2")]
    assert asyncio.run(collect({"id": 3, "rent": 700, "at": 3}, {"id": 1, "rent": 850, "at": 4})) == ("ok", '{"at": 4}')
    assert shelf.changes[2:] == [("new", "3"), ("changed", "1")]


@virtual
async def test_a_source_that_is_due_and_not_run_is_alerted_once_and_when_it_ran() -> None:
    shelf = Shelf(parallel=1)
    hung = [True]

    class Slow(ps.Connector):
        def __init__(self, name: str) -> None:
            self.name = name

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            await asyncio.sleep(1_000 if hung[0] else 1)
            yield Page([Record("1", {"a": 1})])

    for name in "abcdefgh":
        shelf.connect(Slow(name))
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=2, minutes=15)
        assert shelf.told == [], "each run has time for one of them"
        await app.advance(hours=2)
        raised = [each.removeprefix("raised ") for each in shelf.told if each.startswith("raised") and "stale" in each]
        assert len(raised) > 2
        assert len(set(raised)) == len(raised), "each once"
        hung[0] = False
        await app.advance(hours=1)
        assert sorted(each for each in shelf.told if each.startswith("recovered") and "stale" in each) == sorted(
            f"recovered {each}" for each in raised
        )
        assert (await shelf.state("a")).verdict == "ok"


@pytest.mark.parametrize("etag", ["", '"one"'], ids=["same bytes", "304"])
@virtual
async def test_an_unchanged_source_costs_two_rows_read_and_one_written(etag: str, kept_on: str) -> None:
    """One row of `sources` and one of `source_state`, in one statement for all of them; and the end of its run."""
    shelf, count = Shelf(), 7
    portals = [Portal(30) for _ in range(count)]
    for number, portal in enumerate(portals):
        portal.etag = etag
        shelf.add(portal, f"https://p{number}.example", name=f"p{number}", kind="snapshot")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=3)
        before = await used(shelf.app)
        await app.advance(minutes=30)
        spent = await used(shelf.app) - before
        assert spent == {"any_due": 1, "sources": 1, "ended": count}
        assert {portal.not_modified > 3 for portal in portals} == {bool(etag)}
        if kept_on == "sqlite":
            plan = [row.detail for row in await shelf.app.db.rows(f"explain query plan {SQL['sources']}")]
            assert [step[:6] for step in plan] == ["SCAN s", "SEARCH", "USE TE"]
            assert plan[1].endswith("(source_id=?) LEFT-JOIN"), plan[1]


@virtual
async def test_a_page_costs_one_row_read_a_record(kept_on: str) -> None:
    shelf, whole, newest = Shelf(), Portal(500), Portal(80)
    shelf.add(whole, kind="snapshot")
    ascending = {"order": "ascending", "cursor": {"path": "at", "type": "iso", "lag": "1d"}}
    shelf.add(newest, "https://newest.example", name="newest", **ascending)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=2)
        for portal in (whole, newest):
            portal.items.append(portal.item(900))
        before, rows = await used(shelf.app), await rows_read(shelf.app, "active")
        await app.advance(minutes=30)
        spent = await used(shelf.app) - before
        assert spent["active"] == 1, "all that is known of a source that is read as a whole, in pages"
        if kept_on == "sqlite":
            assert await rows_read(shelf.app, "active") - rows == 500
            [step] = [row.detail for row in await shelf.app.db.rows(*explained("active", source=1, after="", size=9))]
            assert step.startswith("SEARCH source_records USING INDEX"), step
            ids = {f"i{number}": str(number) for number in range(40)}
            [step] = [row.detail for row in await shelf.app.db.rows(*explained("known", source=1, **ids))]
            assert step.endswith("(source_id=? AND item_id=?)"), "each by its key"
        assert spent["known"] == 1 + 3, "one new record, and 81 behind the cursor by 40 a statement"


def explained(name: str, **bound: object) -> tuple[str, dict[str, object]]:
    return f"explain query plan {SQL[name]}", bound


async def used(app: ps.App) -> Counter[str]:
    """How often each statement of the collector was executed."""
    counts = Counter[str]()
    for each in (await app.db.usage()).statements:
        counts[name_of(each.statement)] += each.executions
    del counts[""]
    return counts


async def rows_read(app: ps.App, name: str) -> int:
    return sum(each.rows_read for each in (await app.db.usage()).statements if name_of(each.statement) == name)


def name_of(statement: str) -> str:
    return next((name for name, sql in SQL.items() if one_line(sql) == one_line(statement)), "")


@virtual
async def test_without_any_receiver_an_open_alert_is_remembered_and_over_when_the_source_is_good() -> None:
    bare, portal = ps.App("bare"), Portal()
    web = bare.http()
    web.mount(HOST, portal.site())
    bare.connector(SPEC, http=web)
    async with TestApp(bare, start=START) as app:
        portal.answer = Response(status_code=403)
        await app.advance(minutes=31)
        assert [(each["name"], each["is_open"]) for each in await conditions(bare.db)] == [
            ("source portal: blocked", True)
        ]
        portal.answer = None
        await app.advance(hours=2)
        assert [each["is_open"] for each in await conditions(bare.db)] == [False]
        assert await bare.db.value("select count(*) from penstock_messages") == 0, "there is no receiver"
