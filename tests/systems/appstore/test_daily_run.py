"""The daily run as a whole: each part on its own, nothing twice a day, and what went wrong is done when it runs again."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.daily import quality
from penstock_systems.appstore.daily import run as daily
from tests.extent import sampled
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import THEN, crawling, day, insert_apps, leap, run_task, write

PHASES = "select phase from pipeline_log where task = 'daily' order by created_at"
STEPS = "select name, status from pipeline_steps order by name"


@pytest.mark.spec("B7-03", "B7-06", "B7-07", "B8-T34")
async def test_all_parts_run_once_a_day_and_are_noted(pipeline: Opened, caplog: pytest.LogCaptureFixture) -> None:
    async with crawling(pipeline) as it:
        caplog.set_level(logging.INFO, "penstock_systems.appstore")
        parts = await day(it)
        assert set(parts) == set(daily.PARTS)
        assert {part["status"] for part in parts.values()} == {"done"}
        [run] = await it.sql("select id, name, status, finished_at, error from pipelines")
        assert (run.id, run.name, run.status, run.error) == ("daily 2026-01-01", "daily", "done", None)
        [line] = [record for record in caplog.records if record.message == "daily.finished"]
        facts = line.facts  # type: ignore[attr-defined]
        assert (facts["parts"], facts["done"], facts["failed"], facts["skipped"]) == (10, list(daily.PARTS), [], [])

        assert await run_task(it, "daily") == "idle"
        await leap(it, days=1)
        assert await run_task(it, "daily") == "done"
        assert len(await it.sql("select id from pipelines")) == 2


@pytest.mark.spec("B8-T34", "A4-07")
async def test_a_part_that_fails_harms_no_other_and_alone_is_done_again(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        alerts = told(monkeypatch)
        ran: list[str] = []
        broken = ["velocity"]

        def noted(name: str, part: daily.Part) -> daily.Part:
            async def run(now: str) -> dict[str, object]:
                ran.append(name)
                if name in broken:
                    raise ZeroDivisionError("no days\0")
                return await part(now)

            return run

        monkeypatch.setattr(daily, "PARTS", {name: noted(name, part) for name, part in daily.PARTS.items()})
        parts = await day(it)
        assert ran == list(daily.PARTS)
        assert parts["velocity"] == {"error": "ZeroDivisionError: no days", "status": "failed"}
        [run] = await it.sql("select status, error from pipelines")
        assert tuple(run) == ("failed", "velocity: ZeroDivisionError: no days")
        assert ("daily-run", "[Pipeline] Daily run failed: 1 parts") in alerts
        assert [row.phase for row in await it.sql(PHASES)] == ["failed"]

        ran.clear()
        broken.clear()
        await day(it)
        assert ran == ["velocity"]
        [run] = await it.sql("select status, error from pipelines")
        assert tuple(run) == ("done", None)
        assert ("daily-run", "recovered") in alerts
        assert [row.phase for row in await it.sql(PHASES)] == ["failed", "done"]


@pytest.mark.spec("B8-T34")
async def test_a_run_whose_worker_dies_goes_on_with_what_is_left(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        ran: list[str] = []

        def noted(name: str, part: daily.Part) -> daily.Part:
            async def run(now: str) -> dict[str, object]:
                ran.append(name)
                if name == "quality" and ran.count(name) == 1:
                    it.running.die()
                return await part(now)

            return run

        monkeypatch.setattr(daily, "PARTS", {name: noted(name, part) for name, part in daily.PARTS.items()})
        await day(it)
        names = list(daily.PARTS)
        at = names.index("quality")
        assert ran == names[: at + 1] + names[at:]
        assert {row.status for row in await it.sql(STEPS)} == {"done"}


@pytest.mark.spec("B1-07")
async def test_the_daily_run_comes_at_six(pipeline: Opened) -> None:
    assert daily.NAME in shared.app.crons.tasks
    assert shared.app.crons.tasks[daily.NAME].rule.expression == "0 6 * * *"


# -- quality ----------------------------------------------------------------------------------------------

GOOD = {
    "enrichment_source": "scraper",
    "enriched_at": THEN,
    "content_rating": "4+",
    "description": "long enough to count",
    "developer_id": 1,
    "languages": '["EN"]',
    "screenshots": '["a"]',
    "similar_apps": "[1]",
    "rating_histogram": "[1,2,3,4,5]",
}
EMPTY = {
    "content_rating": None,
    "description": "too short.",
    "developer_id": None,
    "languages": "[]",
    "screenshots": "[]",
    "similar_apps": None,
    "rating_histogram": None,
}


def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Alerts and recoveries, in the order in which they are told."""
    alerts: list[tuple[str, str]] = []

    async def alert(condition: str, title: str, text: str, *, key: str | None = None) -> bool:
        alerts.append((condition, title))
        return True

    async def recovered(condition: str, title: str | None = None, text: str = "") -> bool:
        alerts.append((condition, "recovered"))
        return True

    monkeypatch.setattr(shared.app, "alert", alert)
    monkeypatch.setattr(shared.app, "recovered", recovered)
    return alerts


async def scraped(it: Pipeline, good: int, empty: int) -> None:
    rows: list[dict[str, Any]] = [{"track_id": n, **GOOD} for n in range(1, good + 1)]
    rows += [{"track_id": 10_000 + n, **GOOD, **EMPTY} for n in range(empty)]
    await insert_apps(it, *rows, {"track_id": 99_999, **GOOD, **EMPTY, "enrichment_source": "itunes"})


@pytest.mark.spec("B7-05", "G2-30")
async def test_all_seven_fields_are_counted_and_a_healthy_set_causes_no_alert(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        alerts = told(monkeypatch)
        await scraped(it, good=96, empty=4)
        counts = await quality.check_quality(await shared.db.now())
        assert counts == {"total": 100, "degraded": [], **dict.fromkeys(quality.THRESHOLDS, 96.0)}
        assert [title for _, title in alerts] == ["recovered", "recovered"]


@pytest.mark.spec("B7-05")
async def test_every_scraped_app_counts_however_many_queries_it_takes(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality, "PAGE_APPS", 10)
    async with crawling(pipeline) as it:
        await scraped(it, good=55, empty=4)  # 60 apps, one of which was not scraped: six pages and an empty one
        counts = await quality.check_quality(await shared.db.now())
        assert (counts["total"], counts["languages"]) == (59, 93.2)


@pytest.mark.spec("B7-05", "G2-30", "G2-31")
@sampled(
    "empty, degraded",
    [
        (5, []),
        (6, ["content_rating"]),
        (11, ["content_rating", "description", "developer"]),
        (16, ["content_rating", "description", "developer", "languages"]),
        (31, ["content_rating", "description", "developer", "languages", "screenshots", "similar"]),
        (100, list(quality.THRESHOLDS)),
    ],
    every=3,
)
async def test_fields_below_their_threshold_are_named_in_one_alert(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, empty: int, degraded: list[str]
) -> None:
    assert list(quality.THRESHOLDS.items()) == [
        ("content_rating", 95),
        ("description", 90),
        ("developer", 90),
        ("languages", 85),
        ("screenshots", 80),
        ("similar", 70),
        ("histogram", 60),
    ]
    async with crawling(pipeline) as it:
        alerts = told(monkeypatch)
        await scraped(it, good=100 - empty, empty=empty)
        counts = await quality.check_quality(await shared.db.now())
        assert counts["degraded"] == degraded
        subject = f"[Pipeline] Data quality degraded: {len(degraded)} fields"
        assert ((quality.CONDITION, subject) in alerts) == bool(degraded)


class Resend:
    """Takes mails, and refuses the first if it is told to."""

    def __init__(self, *, failures: int = 0) -> None:
        self.mails: list[dict[str, Any]] = []
        self.tried = 0
        self._failures = failures

    async def take(self, request: Request) -> Response:
        self.tried += 1
        if self.tried <= self._failures:
            return Response(status_code=500)
        self.mails.append(await request.json())
        return JSONResponse({"id": "mail"})


@pytest.mark.spec("B7-05", "G2-31", "A12-07")
async def test_the_same_trouble_on_two_days_is_one_mail_tried_until_it_is_sent_and_then_its_end_is_reported(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEND_API_KEY", "canary")
    resend = Resend(failures=1)
    shared.web.mount("https://api.resend.com", Starlette(routes=[Route("/emails", resend.take, methods=["POST"])]))
    async with crawling(pipeline) as it:
        await scraped(it, good=92, empty=8)
        await write(it, "update app_registry set last_seen_at = :now", now=await shared.db.now())
        await day(it)
        await it.running.advance(minutes=2)
        assert resend.tried == 2
        [mail] = resend.mails
        assert (mail["from"], mail["to"]) == ("pipeline@alerts.example.com", ["team@example.com"])
        assert mail["subject"] == "[Pipeline] Data quality degraded: 1 fields"
        assert "content_rating: 92.0 % instead of 95 %" in mail["text"]

        await leap(it, hours=20)
        await write(it, "update app_registry set content_rating = '4+' where track_id = 10001")  # a little better
        await run_part(it, "quality")
        await it.running.advance(minutes=2)
        assert len(resend.mails) == 1

        await write(it, "update app_registry set content_rating = '4+'")
        await run_part(it, "quality")
        await it.running.advance(minutes=2)
        assert [mail["subject"] for mail in resend.mails][1:] == [
            "Recovered: [Pipeline] Data quality degraded: 1 fields"
        ]


async def run_part(it: Pipeline, name: str) -> None:
    """Runs one part of today's run once more."""
    await write(it, "update pipelines set status = 'failed'")
    await write(it, "delete from pipeline_steps where name = :name", name=name)
    await run_task(it, "daily")


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("G2-30")
def test_a_threshold_that_nothing_is_counted_for_is_a_mistake_and_no_missing_field() -> None:
    with pytest.raises(KeyError):
        quality.quality_of({"total": 10, "content_rating": 10})


@pytest.mark.spec("G2-31")
async def test_nothing_scraped_at_all_is_worth_an_alert(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crawling(pipeline) as it:
        alerts = told(monkeypatch)
        assert await quality.check_quality(await shared.db.now()) == {"total": 0}
        assert alerts == [("data-quality-empty", "[Pipeline] Data quality unknown: no scraped apps")]
        await scraped(it, good=10, empty=0)
        await quality.check_quality(await shared.db.now())
        assert alerts[1:] == [("data-quality-empty", "recovered"), ("data-quality", "recovered")]
