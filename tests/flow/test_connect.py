"""Sources: pages and cursors in one commit, verdicts, back-off and alerts, each source on its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

import penstock as ps
from penstock.connect import Change, Http, Page, Record
from penstock.testing import TestApp, virtual
from tests.flow.portal import HOST, SPEC, START, Portal, Shelf, redirect

CURSOR: dict[str, Any] = {"order": "ascending", "cursor": {"path": "at", "type": "iso"}}


@pytest.mark.spec("E-01", "E-09", "E-12", "E-13", "E-14", "G6-01", "G6-02", "G6-04", "G6-08", "G6-16")
@virtual
async def test_a_source_is_read_at_its_cadence_and_only_changes_are_handled() -> None:
    shelf, portal = Shelf(), Portal()
    shelf.add(portal)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=1)
        assert (await shelf.state()).verdict is None, "it waits for the next tick"
        await app.advance(minutes=30)
        assert Counter(kind for kind, _ in shelf.changes) == {"new": 12}
        portal.items[3]["price"] = 900
        portal.items.append(portal.item(13))
        await app.advance(minutes=30)
        assert shelf.changes[12:] == [("changed", "4"), ("new", "13")]
        await app.advance(minutes=60)
        assert len(shelf.changes) == 14, "what is known and the same is no change"
        row = await shelf.app.db.first("select data, fetched_at from source_records where item_id = '4'")
        assert row is not None
        assert '"price":900' in row.data
        assert row.fetched_at == "2026-11-02 09:00:00"
        first, *_ = await shelf.app.sources.runs("portal", 10)
        assert (first.candidates, first.inserted, first.changed) == (13, 1, 1)


@pytest.mark.spec("E-09", "E-11", "G6-05")
@virtual
async def test_each_page_is_saved_with_its_cursor_and_a_cursor_of_none_keeps_the_saved_one() -> None:
    shelf, pages = Shelf(), list[Page]()

    class Counted(ps.Connector):
        name = "counted"
        cursors: list[str | None] = []  # noqa: RUF012

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            self.cursors.append(cursor)
            for page in pages:
                yield page

    counted = Counted()
    shelf.connect(counted)
    async with TestApp(shelf.app, start=START) as app:
        for cursor in ("0", None, "", None):
            pages[:] = [Page([Record(str(len(counted.cursors)), {"a": 1})], cursor)]
            await app.advance(minutes=30)
        assert counted.cursors == [None, "0", "0", ""], "0 and the empty text are cursors"
        assert (await shelf.state("counted")).cursor == ""


@pytest.mark.spec("E-09")
@virtual
async def test_a_worker_that_dies_between_two_pages_repeats_no_row_and_loses_none() -> None:
    shelf = Shelf()
    read: list[str | None] = []

    class Slow(ps.Connector):
        name = "slow"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            read.append(cursor)
            for number in range(int(cursor or 0), 5):
                await asyncio.sleep(3)
                yield Page([Record(str(number), {"n": number})], str(number + 1))

    shelf.connect(Slow())
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=30, seconds=7)
        await app.kill()
        await app.advance(minutes=30)
        assert sorted(shelf.changes) == [("new", str(number)) for number in range(5)]
        assert read == [None, "2", "5"], "the second worker begins at the saved cursor"


@pytest.mark.spec("E-06", "E-08", "E-10", "E-16", "E-20", "G1-01", "G6-07", "G6-19", "A12-05")
@virtual
async def test_one_failing_source_of_four_harms_no_other_and_the_run_takes_as_long_as_the_slowest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf()

    class Waiting(ps.Connector):
        def __init__(self, name: str, error: Exception | None = None) -> None:
            self.name, self.error = name, error

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            yield Page([Record("1", {"a": 1})], "first")
            await asyncio.sleep(10)
            if self.error is not None:
                raise self.error
            yield Page([Record("2", {"a": 1})], "second")

    for name in ("a", "b", "c"):
        shelf.connect(Waiting(name))
    shelf.connect(Waiting("broken", ValueError("a bug")))
    caplog.set_level("INFO", "penstock.connect")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=30, seconds=11)
        states = {row.name: (row.last_status, row.cursor) for row in await shelf.app.sources.list()}
        assert states == dict.fromkeys("abc", ("ok", "second")) | {"broken": ("error", "first")}
        assert (await shelf.state("broken")).last_error == "a bug"
    assert "collect broken: starts from cursor None" in caplog.messages
    assert "collect a: ok, 2 candidates, 2 new, 0 changed, 0 gone in 10.0 s" in caplog.messages
    summary = next(r for r in caplog.records if hasattr(r, "facts")).facts
    assert {name: value for name, value in summary.items() if name != "errors"} == {
        "totalSources": 4,
        "successCount": 3,
        "errorCount": 1,
        "skippedCount": 0,
        "totalCandidates": 7,
        "totalFetched": 7,
    }
    assert summary["errors"] == [{"sourceId": "broken", "error": "a bug"}]


@pytest.mark.spec("E-05", "E-07", "G6-10", "G6-13", "G6-14")
@virtual
async def test_a_source_without_a_connector_is_skipped_and_a_foreign_record_refused() -> None:
    shelf = Shelf()

    class Foreign(ps.Connector):
        name = "mock"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            yield Page([Record("1", {"a": 1}, source="yad2")])

    shelf.connect(Foreign())
    with pytest.raises(ps.errors.BadApp, match="two connectors"):
        shelf.connect(Foreign())
    assert shelf.app.sources.has("mock")
    assert shelf.app.sources.get("other") is None
    async with TestApp(shelf.app, start=START) as app:
        async with app.unit():
            add = (
                "insert into sources (id, name, kind, created_at) values (9, 'lost', 'json', '') on conflict do nothing"
            )
            shelf.app.db.write(add)
        await app.advance(minutes=30)
        assert (await shelf.state("lost")).last_status == "skipped"
        mock = await shelf.state("mock")
        assert mock.verdict == "changed"
        assert "another source" in mock.last_error


@pytest.mark.spec("E-15", "G1-05", "G6-06", "G6-15")
@virtual
async def test_what_does_not_fit_the_time_budget_comes_first_in_the_next_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "penstock.connect")
    shelf = Shelf(parallel=1)
    order: list[str] = []

    class Slow(ps.Connector):
        def __init__(self, name: str, seconds: float) -> None:
            self.name, self.seconds = name, seconds

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            order.append(self.name)
            await asyncio.sleep(self.seconds)
            yield Page([Record("1", {"a": 1})])

    for name, seconds in (("hangs", 1_000.0), ("second", 1.0), ("third", 1.0)):
        shelf.connect(Slow(name, seconds))
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=30, seconds=10)
        assert (await shelf.state("hangs")).last_started_at == "2026-11-02 08:30:00", "it is seen to run"
        await app.advance(seconds=50)
        assert order == ["hangs"]
        facts = next(record for record in caplog.records if hasattr(record, "facts")).facts
        assert [facts[name] for name in ("totalSources", "successCount", "errorCount", "skippedCount")] == [3, 0, 1, 2]
        assert (await shelf.state("hangs")).last_error.startswith("It took longer than 30 s")
        assert (await shelf.state("second")).last_status == "skipped"
        await app.advance(minutes=30)
        assert order == ["hangs", "second", "third", "hangs"]


@pytest.mark.spec("E-17", "E-18", "G6-11", "G6-12")
@virtual
async def test_runs_do_not_overlap_and_a_failure_of_the_collector_is_a_failed_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf, portal = Shelf(cron="* * * * *", budget=200), Portal()
    shelf.add(portal, every="1m")
    running = 0

    async def slow(*_: object) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(90)
        running -= 1
        raise OSError("the database is down")

    monkeypatch.setattr(type(shelf.app.sources), "run", slow)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=6)
        statuses = await shelf.app.db.column("select status from penstock_ticks order by due")
        assert "failed" in statuses
        assert "skipped" in statuses


@pytest.mark.spec("G1-02")
@virtual
async def test_a_throttled_source_waits_as_long_as_it_asks_or_twice_as_long_each_time() -> None:
    shelf, portal, other = Shelf(), Portal(), Portal()
    shelf.add(portal)
    shelf.add(other, "https://other.example", name="other")
    portal.answer = Response(status_code=429, headers={"Retry-After": "7200"})
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=2, minutes=15)
        assert len(portal.asked) == 1
        assert len(other.asked) == 4
        assert (await shelf.state()).backoff_until == "2026-11-02 10:30:00"
        portal.answer = Response(status_code=429)
        await app.advance(hours=12)
        waits = [row.started_at[11:16] for row in await shelf.app.sources.runs("portal", 10)]
        assert waits == ["17:30", "13:30", "11:30", "10:30", "08:30"], "it doubles from an hour on, the second refusal"


@pytest.mark.spec("G1-03", "E-19", "G1-06", "G1-08", "G6-20")
@virtual
async def test_five_bad_runs_rest_the_source_and_a_good_probe_ends_that() -> None:
    shelf, portal = Shelf(), Portal()
    shelf.add(portal)
    portal.answer = Response(status_code=500)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=75)
        assert shelf.told == []
        await app.advance(minutes=30)
        assert shelf.told == ["raised source portal: errors"], "after the third"
        assert (await shelf.state()).consecutive_failures == 3
        await app.advance(hours=5)
        assert len(portal.asked) == 5
        points = await shelf.app.metrics("sources").query("select blob2, count(*) as runs from points group by blob2")
        assert [tuple(row) for row in points] == [("failed", 5)]
        assert (await shelf.state()).disabled_reason.startswith("5 runs in a row")
        portal.answer = None
        await app.advance(hours=3)
        state = await shelf.state()
        assert (state.disabled_reason, state.consecutive_failures, state.verdict) == (None, 0, "ok")
        assert sorted(shelf.told) == [
            "raised source portal: errors",
            "raised source portal: resting",
            "recovered source portal: errors",
            "recovered source portal: resting",
        ]


@virtual
async def test_a_blocked_run_saves_nothing_asks_no_other_host_and_is_alerted_once() -> None:
    shelf, portal = Shelf(), Portal()
    shelf.add(portal, blocked={"redirect": ["challenge.example"], "contains": ["prove you are human"]}, **CURSOR)
    answers = [
        redirect("https://validate.challenge.example/x"),
        HTMLResponse("<title>Radware Page</title>"),
        Response(status_code=403),
        HTMLResponse("<p>anything instead of JSON</p>"),
        JSONResponse({"text": "Prove you are human"}),
    ]
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        before = await shelf.state()
        for answer in answers:
            portal.answer = answer
            async with app.unit():
                shelf.app.db.write("update source_state set next_run_at = null, backoff_until = null")
            await app.advance(minutes=30)
            state = await shelf.state()
            assert (state.verdict, state.cursor) == ("blocked", before.cursor), state.last_error
            assert state.backoff_until > state.last_run_at
        assert [told for told in shelf.told if told.endswith("blocked")] == ["raised source portal: blocked"]
        assert (
            await shelf.app.db.value("select count(*) from source_records where gone_at is not null or missed > 0") == 0
        )


@virtual
async def test_a_changed_shape_is_not_saved_and_alerted_at_once() -> None:
    shelf, portal = Shelf(), Portal()
    shelf.add(portal, expect={"at_least": 5, "required": ["price"]}, **CURSOR)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        cursor = (await shelf.state()).cursor
        portal.items = [{"uuid": each["id"], "at": "2026-11-02T09:00:00Z"} for each in portal.items]
        await app.advance(minutes=30)
        assert (await shelf.state()).verdict == "changed"
        portal.items = [Portal.item(number, at="2026-11-02T09:00:00Z", price=None) for number in range(30, 50)]
        await app.advance(minutes=30)
        state = await shelf.state()
        assert (state.verdict, state.cursor) == ("changed", cursor)
        assert "price is missing in 20 of 20" in state.last_error
        assert shelf.told == ["raised source portal: changed"]
        portal.items = [Portal.item(number, at="2026-11-02T09:00:00Z") for number in range(30, 50)]
        await app.advance(minutes=30)
        assert shelf.told[1:] == ["recovered source portal: changed"]
        assert await shelf.app.db.value("select count(*) from source_records") == 32


@pytest.mark.parametrize("left", [0, 2])
@pytest.mark.spec("E-19")
@virtual
async def test_a_source_that_sends_almost_nothing_is_alerted_in_its_third_run(left: int) -> None:
    shelf, portal = Shelf(), Portal(40)
    shelf.add(portal)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=3)
        full, portal.items = portal.items, portal.items[:left]
        await app.advance(minutes=60)
        assert shelf.told == []
        await app.advance(minutes=31)
        assert shelf.told == ["raised source portal: count"]
        assert (await shelf.state()).verdict == ("ok" if left else "empty")
        assert await shelf.app.db.value("select count(*) from source_records where gone_at is null") == 40
        portal.items = full
        await app.advance(minutes=30)
        assert shelf.told[1:] == ["recovered source portal: count"]


@pytest.mark.spec("E-19", "G6-08")
@virtual
async def test_six_runs_without_a_record_are_alerted_and_duplicates_are_records() -> None:
    shelf, portal, same = Shelf(), Portal(0), Portal(3)
    shelf.add(portal)
    shelf.add(same, "https://same.example", name="same")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=2, minutes=31)
        assert shelf.told == []
        await app.advance(minutes=30)
        assert shelf.told == ["raised source portal: nothing"]


@pytest.mark.spec("E-19", "G6-09")
@virtual
async def test_sources_that_were_never_run_or_not_for_two_hours_are_listed() -> None:
    shelf, portal = Shelf(cron="0 */8 * * *"), Portal()
    shelf.add(portal, every="8h")
    async with TestApp(shelf.app, start=START) as app:
        await shelf.app.sources.list()
        assert await shelf.app.sources.stale() == ["portal"], "it never ran"
        await app.advance(hours=8, minutes=1)
        assert await shelf.app.sources.stale() == []
        await app.advance(hours=3)
        assert await shelf.app.sources.stale() == ["portal"], "on the same day"


@pytest.mark.spec("G1-09")
@virtual
async def test_a_source_with_a_cadence_of_two_hours_runs_at_every_fourth_tick() -> None:
    shelf, often, seldom = Shelf(), Portal(), Portal()
    shelf.add(often)
    shelf.add(seldom, "https://seldom.example", name="seldom", every="2h")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=8, minutes=5)
        assert (len(often.asked), len(seldom.asked)) == (16, 4)


@pytest.mark.spec("G1-07")
@virtual
async def test_a_disabled_source_does_not_run_until_it_is_enabled() -> None:
    shelf, portal, other = Shelf(), Portal(), Portal()
    source = shelf.add(portal)
    shelf.add(other, "https://other.example", name="other")
    async with TestApp(shelf.app, start=START) as app:
        await source.disable()
        await app.advance(hours=2)
        assert (portal.asked, len(other.asked)) == ([], 4)
        await source.enable()
        await app.advance(minutes=31)
        assert len(portal.asked) == 1


@virtual
async def test_a_record_is_gone_when_two_complete_runs_lack_it_and_back_when_it_returns() -> None:
    shelf, portal = Shelf(), Portal()
    shelf.add(portal, kind="snapshot")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        taken = portal.items.pop(5)
        await app.advance(minutes=30)
        assert len(shelf.changes) == 12, "one run that lacks it proves nothing"
        await app.advance(minutes=30)
        assert shelf.changes[12:] == [("gone", "6")]
        portal.items.insert(5, taken)
        await app.advance(minutes=30)
        assert shelf.changes[13:] == [("back", "6")]


@virtual
async def test_pages_by_offset_with_an_overlap_lose_nothing_while_items_shift() -> None:
    shelf, portal = Shelf(), Portal(250)
    pager = {"kind": "offset", "param": "offset", "size": 100, "size_param": "limit", "overlap": 5}
    shelf.add(portal, paginator=pager)
    ads = portal.ads

    async def shifting(request: Any) -> Response:
        answer = await ads(request)
        portal.items = portal.items[1:]
        return answer

    portal.ads = shifting  # type: ignore[method-assign]
    shelf.web.mount(HOST, portal.site())
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        assert len(shelf.changes) == 250
        assert [asked["offset"] for asked in portal.asked] == ["0", "95", "190"]


@virtual
async def test_newest_first_stops_behind_the_cursor_and_moves_it_with_the_last_page() -> None:
    shelf, portal = Shelf(), Portal(300)
    portal.items.reverse()
    pager = {"kind": "offset", "param": "offset", "size": 100, "size_param": "limit"}
    newest: dict[str, Any] = {"order": "descending", "cursor": {"path": "at", "type": "iso", "lag": "10m"}}
    shelf.add(portal, paginator=pager, **newest)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        assert (len(portal.asked), len(shelf.changes)) == (4, 300)
        portal.items.insert(0, portal.item(301))
        portal.items.insert(3, portal.item(294) | {"id": "late"})
        await app.advance(minutes=30)
        assert len(portal.asked) == 6, "the second page is behind the cursor"
        assert sorted(shelf.changes[300:]) == [("new", "301"), ("new", "late")], "the lag lets a late one in"
        assert (await shelf.state()).cursor == portal.item(301)["at"]


@virtual
async def test_an_unchanged_answer_costs_two_rows_read_and_one_written() -> None:
    shelf, portal = Shelf(), Portal(500)
    shelf.add(portal, kind="snapshot")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(hours=2)
        for etag in ("", '"one"'):
            portal.etag = etag
            await app.advance(hours=1)
            before = await written(shelf.app)
            await app.advance(hours=1)
            assert await written(shelf.app) - before == 2, "one row in each of two runs"
        assert Counter(kind for kind, _ in shelf.changes) == {"new": 500}


async def written(app: ps.App) -> int:
    """Rows of the sources' tables that statements of the app wrote."""
    usage = await app.db.usage()
    tables = ("source_state", "source_records", "source_runs")
    return sum(each.rows_written for each in usage.statements if any(table in each.statement for table in tables))


@pytest.mark.spec("E-12", "G6-03", "G6-18", "A15-26")
@virtual
async def test_a_page_of_1200_records_is_saved_in_parts_with_its_cursor_in_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf()

    class Large(ps.Connector):
        name = "large"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            yield Page([Record(str(number), {"n": number}) for number in range(1_200)], "end")

    shelf.connect(Large())
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        assert len(shelf.changes) == 1_200
        assert await shelf.app.db.value("select count(*) from source_records") == 1_200
        assert (await shelf.state("large")).cursor == "end"
        assert "large: a page of 1200 rows is saved in 3 commits" in caplog.text
        await app.advance(minutes=30)
        assert len(shelf.changes) == 1_200


@pytest.mark.spec("E-08", "G6-17", "G6-20")
@virtual
async def test_a_run_goes_on_and_reports_its_error_where_its_state_cannot_be_saved(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf()

    class Broken(ps.Connector):
        name = "broken"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            yield Page([Record("1", {"a": 1})])
            raise ValueError("x" * 10_000)

    shelf.connect(Broken())
    shelf.add(Portal())
    settle = type(shelf.app.sources)._settle

    async def failing(self: Any, row: Any, *rest: Any) -> None:
        if row.name == "broken":
            raise OSError("the disk is gone")
        await settle(self, row, *rest)

    monkeypatch.setattr(type(shelf.app.sources), "_settle", failing)
    caplog.set_level("INFO", "penstock.connect")
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        assert (await shelf.state()).verdict == "ok"
        [summary] = [record.facts for record in caplog.records if hasattr(record, "facts")]
        assert (summary["successCount"], summary["errorCount"]) == (1, 1)
        [error] = summary["errors"]
        assert len(error["error"]) == 500, "the text of an error is cut"
        monkeypatch.undo()
        await app.advance(minutes=30)
        state = await shelf.state("broken")
        assert (len(state.last_error), state.consecutive_failures) == (500, 1)


@pytest.mark.spec("E-21", "G1-04")
@virtual
async def test_what_a_source_remembers_beside_its_cursor_may_be_lost() -> None:
    shelf, portal = Shelf(), Portal(30)
    portal.etag = '"one"'
    shelf.add(portal, **CURSOR)
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=61)
        cursor = (await shelf.state()).cursor
        async with app.unit():
            shelf.app.db.write("update source_state set memory = '{}'")
        await app.advance(minutes=60)
        assert len(shelf.changes) == 30, "nothing old is fetched again"
        assert (await shelf.state()).cursor == cursor


def test_a_mistake_in_a_connector_is_named_with_the_way_out() -> None:
    for wrong, said in (
        ({"record": "x"}, "Did you mean"),
        ({"base": "ftp://x"}, "https://"),
        ({"every": "5s"}, "once a minute"),
        ({"paginator": {"kind": "next_link"}}, "links.next.href"),
        ({"kind": "singer"}, "command"),
        ({"command": ["tap"]}, "singer"),
        ({"name": "A b"}, "small letters"),
    ):
        with pytest.raises(ps.errors.BadConfig, match=said):
            ps.App("a").connector(SPEC | wrong)


@pytest.mark.parametrize("base", ["https://other.example", "http://portal.example", "https://portal.example:8443"])
@virtual
async def test_the_key_of_a_source_is_not_sent_where_a_link_of_an_answer_leads(base: str) -> None:
    shelf, keys = Shelf(), dict[str, str | None]()

    async def ads(request: Request) -> Response:
        keys[str(request.url)] = request.headers.get("x-api-key")
        following = {"/ads": f"{HOST}/second", "/second": f"{base}/third"}.get(request.url.path)
        return JSONResponse({"items": [Portal.item(len(keys))], "next": following})

    for host in (HOST, base):
        shelf.web.mount(host, Starlette(routes=[Route("/{path:path}", ads)]))
    links = {"kind": "next_link", "path": "next"}
    shelf.connect(SPEC | {"headers": {"X-Api-Key": "secret"}, "paginator": links})
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)

    assert keys == {f"{HOST}/ads": "secret", f"{HOST}/second": "secret", f"{base}/third": None}


@pytest.mark.spec("E-09", "G6-18")
@virtual
async def test_a_page_that_is_saved_in_parts_keeps_the_old_cursor_until_its_last_part_is_saved() -> None:
    shelf, asked = Shelf(), list[str | None]()

    class Large(ps.Connector):
        name = "large"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            asked.append(cursor)
            if cursor is None:
                yield Page([Record(str(number), {"n": number}) for number in range(1_200)], "end")

    source, broken = shelf.connect(Large()), [True]
    save = source.function
    assert save is not None

    @source.handler
    async def failing(changes: Sequence[Change]) -> None:
        if broken[0] and any(change.record.id == "1100" for change in changes):
            raise OSError("the disk is full")
        await save(changes)

    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        assert ((await shelf.state("large")).cursor, len(shelf.changes)) == (None, 1_000)
        broken[0] = False
        await app.advance(minutes=60)
        assert asked == [None, None, "end"]
        assert Counter(shelf.changes) == {("new", str(number)): 1 for number in range(1_200)}


@pytest.mark.spec("E-13", "G6-02")
@virtual
async def test_a_record_is_saved_with_the_time_at_which_its_source_says_it_was_fetched() -> None:
    shelf = Shelf()

    class Late(ps.Connector):
        name = "late"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            yield Page([Record("1", {"a": 1}, fetched_at="2026-11-01 23:59:00"), Record("2", {"a": 1})])

    shelf.connect(Late())
    async with TestApp(shelf.app, start=START) as app:
        await app.advance(minutes=31)
        times = await shelf.app.db.column("select fetched_at from source_records order by item_id")
        assert times == ["2026-11-01 23:59:00", "2026-11-02 08:30:00"]
