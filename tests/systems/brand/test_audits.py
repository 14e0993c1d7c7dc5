"""The weekly audit of each brand, and the commands that come from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.systems.brand.conftest import Opened


@pytest.mark.spec("D-24", "G4-43")
async def test_the_weekly_audit_goes_on_after_a_brand_that_fails(
    brands: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brands() as at_work:
        await at_work.http.put("/v1/brands/middle", json={"fqdn": "middle.example"})
        agent = at_work.module("scalable_media.agent")
        monkeypatch.setattr(agent, "find_brand", failing_for("middle", agent.find_brand))
        await at_work.advance(days=7)

        rows = await at_work.brain.db.rows("select brand_id, problem from sm_audits order by id")
        assert [bool(row.problem) for row in rows] == [False, False, True]


def failing_for(slug: str, find: Callable[[str], Awaitable[Any]]) -> Callable[[str], Awaitable[Any]]:
    async def found(asked: str) -> Any:
        if asked == slug:
            raise RuntimeError("the settings of this brand are broken")
        return await find(asked)

    return found


@pytest.mark.spec("D-24", "D-25")
async def test_an_audit_asks_once_more_for_research_that_failed(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        at_work.pages.is_down = True
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(hours=1)
        assert (await at_work.http.post("/v1/brands/llc-tax/audit")).status_code == 202
        await at_work.advance(hours=3)
        assert await at_work.brain.db.column("select keyword from sm_failures") == ["llc receipts"] * 2
        counted = await at_work.brain.db.rows("select brand_id, dead_letters from sm_audits")
        assert [row.dead_letters for row in counted] == [1], "also where GatherFeed has a database of its own"

        at_work.pages.is_down = False
        await at_work.advance(days=14)  # what failed twice stays as it is
        assert await at_work.contents() == []


@pytest.mark.spec("D-24")
async def test_an_audit_counts_the_articles_that_are_old(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(days=98)

        rows = await at_work.brain.db.rows("select old from sm_audits where id like 'llc-tax %' order by audited_at")
        assert [row.old for row in rows] == [0] * (len(rows) - 1) + [1]


@pytest.mark.spec("D-25", "G4-24")
async def test_an_article_is_archived_over_http_and_an_unknown_one_is_refused(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(minutes=10)
        [row] = await at_work.contents(status="published")
        assert (await at_work.http.post(f"/v1/content/{row.id}/archive")).status_code == 202
        assert (await at_work.http.post("/v1/content/none/archive")).status_code == 404
        await at_work.advance(minutes=1)

        assert [row.status for row in await at_work.contents()] == ["archived"]


async def test_a_report_is_kept_for_ninety_days(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        async with at_work.brain.unit():
            for id, days in (("old", 91), ("kept", 88)):
                row = {"id": id, "machine": "press", "agent": "watch", "text": id}
                at_work.brain.db.upsert(
                    "sm_reports", row | {"created_at": await at_work.brain.db.ago(f"{days}d")}, key="id"
                )
        await at_work.advance(days=1)

        found = (await at_work.http.get("/v1/coordinator/reports")).json()["result"]
        assert [each["text"] for each in found] == ["kept"]
