"""What a person decides about articles, and what makes an article wait for a person."""

from __future__ import annotations

import asyncio
import json

import pytest

import penstock as ps
from penstock_systems.standins.publishing.writer import FALSE
from tests.systems.brand.conftest import Brands, Opened


async def waiting(at_work: Brands) -> str:
    """One article with a false citation, which waits for a review."""
    await at_work.research("garden", "garden tools")
    await at_work.advance(minutes=10)
    [row] = await at_work.contents(stage="review")
    return str(row.id)


async def test_a_citation_that_is_not_on_its_page_makes_the_article_wait(brands: Opened) -> None:
    async with brands(false_citations=(1,)) as at_work:
        content = await waiting(at_work)

        [shown] = (await at_work.http.get("/v1/reviews")).json()["result"]
        assert shown["id"] == content
        assert [flag["kind"] for flag in shown["flags"]] == ["citation"]
        assert FALSE in shown["flags"][0]["text"]
        assert not at_work.social.arrivals.all


@pytest.mark.parametrize("action, status", [("approve", "published"), ("edit", "published"), ("reject", "archived")])
async def test_the_first_decision_counts_and_is_kept_with_its_person(brands: Opened, action: str, status: str) -> None:
    async with brands(false_citations=(1,)) as at_work:
        content = await waiting(at_work)
        whole = (await at_work.http.get(f"/v1/content/{content}")).json()["result"]
        body = whole["body"].replace("Here is what the sources say", "Three sources speak")
        decision = {"by": "Ada", "note": "seen"} | ({"body": body} if action == "edit" else {})
        answer = await at_work.http.post(f"/v1/content/{content}/{action}", json=decision)
        assert answer.status_code == 200, answer.text
        again = await at_work.http.post(f"/v1/content/{content}/approve", json={"by": "Bob"})
        assert (again.status_code, "Ada decided" in again.text) == (409, True)
        await at_work.advance(hours=3)

        [row] = await at_work.contents()
        assert row.status == status
        [kept] = await at_work.brain.db.rows("select decision, reviewer, note, difference from sm_reviews")
        assert (kept.decision, kept.reviewer, kept.note) == (action, "Ada", "seen")
        assert ("+Three sources speak" in kept.difference) is (action == "edit")
        assert bool(at_work.social.arrivals.all) is (status == "published")
        if status == "published":
            [page] = [path.read_text() for path in at_work.sites.glob("*/blog/*.html") if path.name != "index.html"]
            assert "reviewed by Ada" in page
            assert ("Three sources speak" in page) is (action == "edit")


async def test_of_two_reviews_at_the_same_instant_one_wins_and_the_other_learns_which(
    brands: Opened, apart: bool
) -> None:
    async with brands(false_citations=(1,)) as at_work:
        path = f"/v1/content/{await waiting(at_work)}"
        answers = await asyncio.gather(
            at_work.http.post(f"{path}/approve", json={"by": "Ada"}),
            at_work.http.post(f"{path}/reject", json={"by": "Bob"}),
        )
        await at_work.advance(hours=3)

        first, second = sorted(answers, key=lambda answer: answer.status_code)
        won, lost = ("Ada", "Bob") if first is answers[0] else ("Bob", "Ada")
        assert (first.status_code, second.status_code) == (200, 409), (first.text, second.text)
        assert f"{won} decided at" in second.text
        assert lost not in second.text
        assert await at_work.brain.db.column("select reviewer from sm_reviews") == [won]
        [row] = await at_work.contents()
        assert row.status == ("published" if won == "Ada" else "archived")


@pytest.mark.parametrize(
    "change, field",
    [({"by": " "}, "by"), ({"by": "Ada", "body": "Too short."}, "body"), ({}, "by"), ({"by": "Ada", "x": 1}, "x")],
)
async def test_a_review_that_does_not_fit_is_refused_with_its_field(
    brands: Opened, change: dict[str, object], field: str
) -> None:
    async with brands(false_citations=(1,)) as at_work:
        content = await waiting(at_work)
        answer = await at_work.http.post(f"/v1/content/{content}/edit", json=change)

        assert answer.status_code == 422
        assert field in json.dumps(answer.json()["errors"])
        assert "writer" not in answer.text, "a person has edited it"
        assert await at_work.contents(stage="review")


async def test_an_article_without_a_decision_for_a_week_is_rejected(brands: Opened) -> None:
    async with brands(false_citations=(1,)) as at_work:
        await waiting(at_work)
        await at_work.advance(days=8)

        [row] = await at_work.contents()
        assert (row.status, row.stage) == ("archived", "rejected")
        assert "no decision within 7 days" in row.reason


async def test_a_decision_about_what_does_not_wait_is_refused(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(minutes=10)
        [row] = await at_work.contents()

        assert (await at_work.http.post(f"/v1/content/{row.id}/approve", json={"by": "Ada"})).status_code == 409
        assert (await at_work.http.post("/v1/content/none/approve", json={"by": "Ada"})).status_code == 404


async def test_a_review_of_an_article_whose_run_was_terminated_is_refused_and_its_draft_ends(brands: Opened) -> None:
    async with brands(false_citations=(1,)) as at_work:
        content = await waiting(at_work)
        await at_work.brain.workflows["content-workflow"][content].terminate()
        answer = await at_work.http.post(f"/v1/content/{content}/approve", json={"by": "Ada"})
        assert (answer.status_code, "its run is terminated" in answer.text) == (409, True)

        async with at_work.brain.unit():
            at_work.wishes.send(at_work.module("messages").BrandAudit(brand_slug="garden"))
        await at_work.advance(minutes=5)
        [row] = await at_work.contents()
        assert (row.status, row.reason) == ("failed", "its run is terminated")


async def test_the_draft_of_a_run_that_failed_ends_with_its_error(
    brands: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> bool:
        raise ps.Permanent("no such column")

    async with brands(false_citations=(1,)) as at_work:
        content = await waiting(at_work)
        monkeypatch.setattr(at_work.module("scalable_media.content"), "apply_decision", broken)
        assert (await at_work.http.post(f"/v1/content/{content}/approve", json={"by": "Ada"})).status_code == 200
        await at_work.advance(minutes=5)
        assert [row.status for row in await at_work.contents()] == ["draft"]

        async with at_work.brain.unit():
            at_work.wishes.send(at_work.module("messages").BrandAudit(brand_slug="garden"))
        await at_work.advance(minutes=5)
        [row] = await at_work.contents()
        assert (row.status, "its run is errored" in row.reason, "no such column" in row.reason) == (
            "failed",
            True,
            True,
        )


async def test_an_article_that_is_archived_while_it_waits_is_never_published(brands: Opened) -> None:
    async with brands(false_citations=(1,)) as at_work:
        content = await waiting(at_work)
        answer = await at_work.http.post(f"/v1/content/{content}/approve", json={"by": "Ada"})
        assert answer.status_code == 200, answer.text
        async with at_work.brain.unit():
            await at_work.module("scalable_media.routing").archive(
                at_work.module("messages").ContentArchive(content_id=content)
            )
        await at_work.advance(hours=3)

        [row] = await at_work.contents()
        assert row.status == "archived"
        assert not list(at_work.sites.glob("*/blog/*.html"))
        assert not at_work.social.arrivals.all


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"targets": []}, "targets is empty"),
        ({"social": {"mastodon": "soon"}}, "is not"),
        ({"targets": ["ghost"]}, "ghost"),
    ],
)
async def test_a_brand_that_could_never_publish_is_refused(
    brands: Opened, change: dict[str, object], problem: str
) -> None:
    async with brands() as at_work:
        answer = await at_work.http.put("/v1/brands/new", json={"fqdn": "new.example"} | change)

        assert (answer.status_code, problem in answer.text) == (422, True)
