"""The daily upkeep: what goes after ninety days, what is kept in files, what is due again, and what it all costs."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import outside
from penstock_systems.appstore.daily import archiving, costs, refreshing, retention, volumes
from penstock_systems.appstore.moments import after
from penstock_systems.appstore.store.facts import Found
from tests.flow.tampering import tamper
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.crawling import (
    NEVER,
    THEN,
    Scripted,
    crawling,
    cycle,
    found,
    insert,
    insert_apps,
    insert_keywords,
    leap,
)

NOW = "2026-01-01 00:00:00"
DAYS_89, DAYS_91 = after(NOW, days=-89), after(NOW, days=-91)


@pytest.mark.spec("A8-18", "B7-06", "A15-23")
async def test_history_goes_after_ninety_days_and_not_before(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for number, at in enumerate((DAYS_89, DAYS_91), 1):
            chart = {"collection": "c", "category": "1", "rank": 1, "snapshot_at": at}
            await insert(it, "chart_position_history", {"scan_id": at, "track_id": number, **chart})
            await insert(
                it, "app_snapshots", {"track_id": number, "day": at[:10], "rating_count": 1, "snapshot_at": at}
            )
            await insert(
                it,
                "ranking_snapshots",
                {"keyword": "k", "track_id": number, "day": at[:10], "rank": 1, "snapshot_at": at},
            )
            await insert(
                it, "keyword_snapshots", {"keyword": f"k{number}", "day": at[:10], "metrics": "{}", "snapshot_at": at}
            )
            await insert(it, "crawl_log", {"id": at, "phase": "p", "stats": "{}", "started_at": at, "finished_at": at})
            await insert(it, "pipelines", {"id": at, "name": "daily", "status": "done", "started_at": at})
            await insert(
                it,
                "pipeline_steps",
                {"pipeline_id": at, "name": "a", "status": "done", "counts": "{}", "started_at": at},
            )
            await insert(it, "dfs_keyword_cache", {"keyword": f"k{number}", "response": "{}", "fetched_at": at})
        removed = await retention.prune_history(NOW)
        assert removed == dict.fromkeys(
            (
                "chart_position_history",
                "app_snapshots",
                "ranking_snapshots",
                "keyword_snapshots",
                "crawl_log",
                "pipelines",
                "pipeline_steps",
                "dfs_keyword_cache",
            ),
            1,
        )
        assert await it.sql("select track_id from app_snapshots") == [(1,)]
        assert await it.sql("select track_id from chart_position_history") == [(1,)]


@pytest.mark.spec("B8-T28")
async def test_caches_are_emptied_of_what_has_expired(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for table in ("keyword_cache", "app_cache"):
            await insert(
                it,
                table,
                {"key": "old", "value": "[]", "expires_at": THEN},
                {"key": "new", "value": "[]", "expires_at": NEVER},
            )
        assert await retention.prune_history(NOW) == {"keyword_cache": 1, "app_cache": 1}
        assert await it.sql("select key from keyword_cache") == [("new",)]


# -- the archive ------------------------------------------------------------------------------------------


@pytest.mark.spec("A8-19", "B7-06", "G1-11", "A15-23")
async def test_apps_unseen_for_ninety_days_go_into_files_unless_the_store_still_sells_them(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        catalogue = it.store.catalogue
        sold = next(catalogue.track_id(n) for n in range(200) if catalogue.sold(n, 0, "us"))
        await insert_apps(
            it,
            {"track_id": 1, "track_name": "Gone <b>\u202e", "last_seen_at": DAYS_91},
            {"track_id": 2, "track_name": "Young", "last_seen_at": DAYS_89},
            {"track_id": sold, "track_name": "Still sold", "last_seen_at": DAYS_91},
        )
        assert await archiving.archive_unseen(NOW) == {"archived": 1, "still_sold": 1}

        rows = await it.sql("select track_name, last_seen_at from app_registry order by track_name")
        assert [tuple(row) for row in rows] == [("Still sold", NOW), ("Young", DAYS_89)]
        [name] = await archiving.archive.list("app_registry/")
        lines = (await archiving.archive.get(name) or b"").splitlines()
        assert [msgspec.json.decode(line)["track_name"] for line in lines] == ["Gone <b>\u202e"]
        assert await archiving.archive_unseen(NOW) == {"archived": 0, "still_sold": 0}

        Scripted(monkeypatch, it).answers["gone"] = [found(1, "Back")]
        await insert_keywords(it, {"keyword": "gone", "depth": 3})
        await cycle(it)
        [back] = await it.sql("select track_name, first_seen_at from app_registry where track_id = 1")
        assert (back.track_name, back.first_seen_at > DAYS_91) == ("Back", True)


@pytest.mark.spec("A8-19")
async def test_when_the_store_cannot_be_asked_nothing_is_archived(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:

        async def refuse(_: object) -> dict[int, Found]:
            raise ps.Throttled("not now")

        monkeypatch.setattr(outside.store, "lookup_many", refuse)
        await insert_apps(it, {"track_id": 1, "last_seen_at": DAYS_91})
        with pytest.raises(ps.Throttled):
            await archiving.archive_unseen(NOW)
        assert await shared.db.count("app_registry") == 1


@pytest.mark.spec("B8-T28")
async def test_an_answer_about_an_app_is_kept_for_a_day(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crawling(pipeline) as it:
        asked: list[list[int]] = []

        async def look_up(ids: Any) -> dict[int, Found]:
            asked.append(sorted(ids))
            return {n: found(n) for n in asked[-1] if n % 2}

        monkeypatch.setattr(outside.store, "lookup_many", look_up)
        ids = list(range(1, 61))
        odd = {n for n in ids if n % 2}
        assert await archiving.still_sold(ids, await shared.db.now()) == odd
        assert await archiving.still_sold([*ids, 61], await shared.db.now()) == odd | {61}
        assert asked == [ids, [61]]
        await leap(it, days=1, minutes=1)
        await archiving.still_sold(ids, await shared.db.now())
        assert asked[-1] == ids


@pytest.mark.spec("A8-19")
async def test_of_more_apps_than_can_be_asked_about_in_a_day_the_rest_waits_for_the_next(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "ASKED_A_DAY", 3)
    async with crawling(pipeline) as it:
        await insert_apps(it, *({"track_id": n, "last_seen_at": after(DAYS_91, seconds=n)} for n in range(1, 8)))
        assert (await archiving.archive_unseen(NOW))["archived"] == 2  # whoever is as old as the last of them waits
        left = await it.sql("select track_id from app_registry order by track_id")
        assert [row.track_id for row in left] == [3, 4, 5, 6, 7]


# -- keywords that are due sooner -------------------------------------------------------------------------


@pytest.mark.spec("B2-23")
async def test_keywords_of_good_markets_are_searched_weekly_and_tracked_ones_daily(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        market = {"name": "m", "first_seen_at": THEN, "computed_at": THEN}
        await insert(
            it,
            "market_clusters",
            {"id": 1, "lineage_id": 1, "opportunity_score": 71.0, "ended_at": None, **market},
            {"id": 2, "lineage_id": 2, "opportunity_score": 70.0, "ended_at": None, **market},
            {"id": 3, "lineage_id": 3, "opportunity_score": 99.0, "ended_at": THEN, **market},
        )
        members = [(1, "good"), (1, "fresh"), (1, "failed"), (2, "middling"), (3, "over")]
        await insert(it, "cluster_keywords", *({"cluster_id": c, "keyword": k, "weight": 1} for c, k in members))
        week, yesterday = after(NOW, days=-7), after(NOW, days=-1)
        await insert_keywords(
            it,
            *(
                {"keyword": k, "status": "searched", "last_searched_at": at, "next_search_at": NEVER}
                for k, at in (
                    ("good", week),
                    ("fresh", yesterday),
                    ("middling", week),
                    ("over", week),
                    ("mine", yesterday),
                )
            ),
            {"keyword": "failed", "status": "failed", "last_searched_at": week, "next_search_at": None},
        )
        await insert(
            it, "tracked_keywords", *({"keyword": k, "added_by": "me", "created_at": THEN} for k in ("mine", "new"))
        )

        assert await refreshing.refresh_keywords(NOW) == {"of_good_markets": 1, "tracked": 2}

        due = await it.sql("select keyword from crawl_keywords where next_search_at <= :now order by keyword", now=NOW)
        assert [row.keyword for row in due] == ["good", "mine"]
        [new] = await it.sql("select source, status, priority from crawl_keywords where keyword = 'new'")
        assert tuple(new) == ("tracked", "pending", 10)
        assert await refreshing.refresh_keywords(NOW) == {"of_good_markets": 0, "tracked": 0}


# -- what a search engine says ----------------------------------------------------------------------------


class DataForSeo:
    """Answers as the service does, with 200 whatever happens, and notes who asked for what."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.status_code = 20_000
        self.cost = 0.075
        self.authorization = ""

    async def live(self, request: Request) -> Response:
        [task] = await request.json()
        self.asked.append(task["keywords"])
        self.authorization = request.headers["authorization"]
        result = [{"keyword": k, "search_volume": 10 * len(k), "cpc": None} for k in task["keywords"] if k != "unknown"]
        answer = {"status_code": self.status_code, "status_message": "Ok.", "result": result}
        return JSONResponse({"status_code": 20_000, "cost": self.cost, "tasks": [answer]})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> DataForSeo:
    service = DataForSeo()
    path = "/v3/keywords_data/google_ads/search_volume/live"
    shared.web.mount("https://api.dataforseo.com", Starlette(routes=[Route(path, service.live, methods=["POST"])]))
    monkeypatch.setenv("DATAFORSEO_LOGIN", "me")
    monkeypatch.setenv("DATAFORSEO_PASSWORD", "canary")
    return service


@pytest.mark.spec("B8-T35")
async def test_volumes_of_tracked_keywords_are_paid_for_once_a_month(pipeline: Opened, service: DataForSeo) -> None:
    async with crawling(pipeline) as it:
        keywords = ("calm", "unknown", "w" * 81)
        await insert(it, "tracked_keywords", *({"keyword": k, "added_by": "me", "created_at": THEN} for k in keywords))
        counts = await volumes.look_up_volumes(await shared.db.now())

        assert counts == {"asked": 2, "answered": 1, "usd": 0.075}
        assert service.authorization == "Basic bWU6Y2FuYXJ5"
        rows = {
            row.keyword: msgspec.json.decode(row.response)
            for row in await it.sql("select keyword, response from dfs_keyword_cache")
        }
        assert rows == {"calm": {"keyword": "calm", "search_volume": 40, "cpc": None}, "unknown": {}}
        assert (await volumes.look_up_volumes(await shared.db.now()))["asked"] == 0
        await leap(it, days=31)
        assert (await volumes.look_up_volumes(await shared.db.now()))["asked"] == 2
        assert service.asked == [["calm", "unknown"]] * 2
        ledger = await it.sql("select provider, operation, units from api_calls_ledger")
        assert [tuple(row) for row in ledger] == [("dataforseo", "search_volume", 2)] * 2


async def test_keywords_that_are_too_long_keep_no_others_from_being_asked_for(
    pipeline: Opened, service: DataForSeo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "KEYWORDS_A_CALL", 2)
    async with crawling(pipeline) as it:
        keywords = ("a" * 81, "b" * 81, "c" * 80, "d", "e")
        await insert(it, "tracked_keywords", *({"keyword": k, "added_by": "me", "created_at": THEN} for k in keywords))

        asked = [(await volumes.look_up_volumes(await shared.db.now()))["asked"] for _ in range(3)]

        assert asked == [2, 1, 0]
        assert service.asked == [["c" * 80, "d"], ["e"]]


async def test_when_the_months_money_is_spent_no_server_is_asked_until_the_next_month(
    pipeline: Opened, service: DataForSeo
) -> None:
    async with crawling(pipeline) as it:
        service.cost = 2.95  # of 3 dollars a month; a call may cost a tenth of one
        for keyword, asked in [("calm", 1), ("sleep", 0)]:
            await insert(it, "tracked_keywords", {"keyword": keyword, "added_by": "me", "created_at": THEN})
            counts = await volumes.look_up_volumes(await shared.db.now())
            assert counts["asked"] == asked
        assert "month" in str(counts["reason"])
        await leap(it, days=31)
        assert (await volumes.look_up_volumes(await shared.db.now()))["asked"] == 2
        assert service.asked == [["calm"], ["calm", "sleep"]]


async def test_without_a_login_no_server_is_asked(
    pipeline: Opened, service: DataForSeo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATAFORSEO_PASSWORD")
    async with crawling(pipeline) as it:
        await insert(it, "tracked_keywords", {"keyword": "calm", "added_by": "me", "created_at": THEN})
        assert await volumes.look_up_volumes(await shared.db.now()) == {"asked": 0, "reason": "no login"}
        assert service.asked == []


async def test_a_refusal_inside_an_answer_is_a_refusal(pipeline: Opened, service: DataForSeo) -> None:
    async with crawling(pipeline) as it:
        await insert(it, "tracked_keywords", {"keyword": "calm", "added_by": "me", "created_at": THEN})
        service.status_code = 40_101
        with pytest.raises(ps.Refused, match="40101"):
            await volumes.look_up_volumes(await shared.db.now())
        assert await it.sql("select keyword from dfs_keyword_cache") == []


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"status_code": "20000"}', b'{"status_code": 20000, "tasks": [{}]}']
)
def test_an_answer_that_is_none_cannot_be_read(body: bytes) -> None:
    with pytest.raises(ps.Unparsable):
        volumes.read(body)


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    "code, raised",
    [
        (19_999, ps.Refused),
        (20_000, None),
        (20_099, None),
        (20_100, ps.Refused),
        (49_999, ps.Refused),
        (50_000, ps.Unavailable),
    ],
)
def test_an_answer_holds_if_its_own_code_is_of_the_20_000s(code: int, raised: type[Exception] | None) -> None:
    body = b'{"status_code": %d, "status_message": "", "cost": 0, "tasks": []}' % code

    with pytest.raises(raised) if raised else nullcontext():
        assert volumes.read(body).status_code == code


# -- costs ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B7-07")
async def test_the_month_so_far_is_reported_with_its_dearest_tasks(
    pipeline: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with crawling(pipeline, charts=True) as it:
        caplog.set_level(logging.INFO, "penstock_systems.appstore")
        await cycle(it)
        told = await costs.report_costs(await shared.db.now())
        assert told["month"] == "2026-01"
        assert isinstance(told["rows_read"], int)
        assert told["rows_read"] > 0
        assert "cron.crawl:crawl" in told["tasks"]  # type: ignore[operator]
        assert any(record.message == "cost.reported" for record in caplog.records)


@pytest.mark.spec("B7-07")
async def test_records_of_handled_messages_that_were_not_removed_are_reported(
    pipeline: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with crawling(pipeline) as it:
        note = """
        insert into penstock_seen (id, queue, type, source, seen_at, processed_at)
        values (:id, 'mails', 'mail', 'tests', :at, :at)
        """
        for days, stale in [(15.9, 0), (16.1, 1), (30.0, 2)]:
            at = int((it.running.now - timedelta(days=days)).timestamp() * 1_000_000)
            tamper(shared.app.database, note, id=f"{days}".encode(), at=at)
            caplog.clear()
            assert await costs.check_dedup(await shared.db.now()) == {"stale": stale}
            assert caplog.messages.count("dedup.stale") == (stale > 0)
