"""Posts whose answers get lost, that are late, or that nobody can look up: none is doubled, and none is hidden."""

from __future__ import annotations

import pytest

from penstock.channels import Channel
from penstock_systems.standins.publishing import SocialFaults
from tests.systems.brand.conftest import HANDS, Opened


@pytest.mark.spec("D-22")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
async def test_lost_answers_and_outages_double_no_post(brands: Opened, apart: bool, seed: int) -> None:
    async with brands(faults=SocialFaults(lost=0.5, unavailable=0.2)) as at_work:
        at_work.social.seed = seed
        await at_work.research("garden", "garden tools", "garden paths", "garden ponds")
        await at_work.advance(days=1)

        assert at_work.social.doubled() == []
        rows = await at_work.hands.db.rows("select state, platform from sg_posts")
        assert [row.state for row in rows] == ["posted"] * 12
        assert len(at_work.social.arrivals.all) == 12


async def test_a_crash_between_a_post_and_its_record_is_looked_up(brands: Opened, apart: bool) -> None:
    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=5.0)) as at_work:
        await at_work.research("garden", "garden tools")
        while not at_work.social.arrivals.of("linkedin"):
            await at_work.advance(seconds=1)
        await at_work.town[HANDS].kill()  # the post is there, and its answer is on the way
        await at_work.advance(hours=6)

        assert at_work.social.doubled() == []
        assert await at_work.hands.db.column("select distinct state from sg_posts") == ["posted"]


async def test_a_post_that_is_due_while_nothing_runs_is_missed_and_not_late(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("garden", "garden tools")
        await at_work.advance(hours=1)  # that of Bluesky is due two hours after the article
        at_work.town[HANDS].jump(6 * 3_600)
        await at_work.advance(minutes=5)

        assert not at_work.social.arrivals.of("bluesky")
        [row] = await at_work.hands.db.rows("select state, error from sg_posts where platform = 'bluesky'")
        assert (row.state, row.error) == ("missed", "more than 60 minutes late")


@pytest.mark.parametrize("action, state", [("lookup", "posted"), ("resend", "posted"), ("drop", "failed")])
async def test_a_post_that_cannot_be_looked_up_is_held_for_a_person(
    brands: Opened, monkeypatch: pytest.MonkeyPatch, action: str, state: str
) -> None:
    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=60.0)) as at_work:
        linkedin = at_work.module("social_good.networks").LinkedIn
        with monkeypatch.context() as patched:
            patched.setattr(linkedin, "find", Channel.find)
            await at_work.research("garden", "garden tools")
            await at_work.advance(hours=6)
            [shown] = (await at_work.hands_http.get("/v1/posts")).json()["result"]
            assert shown["platform"] == "linkedin"
            assert len(at_work.social.arrivals.of("linkedin")) == 1
        answer = await at_work.hands_http.post(f"/v1/posts/{shown['id']}/{action}")
        assert answer.status_code == 200, answer.text
        await at_work.advance(hours=6)

        assert await at_work.hands.db.value("select state from sg_posts where platform = 'linkedin'") == state
        assert len(at_work.social.arrivals.of("linkedin")) == 1


async def test_a_second_decision_about_a_post_is_refused(brands: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=60.0)) as at_work:
        monkeypatch.setattr(at_work.module("social_good.networks").LinkedIn, "find", Channel.find)
        await at_work.research("garden", "garden tools")
        await at_work.advance(hours=6)
        [shown] = (await at_work.hands_http.get("/v1/posts")).json()["result"]
        answers = [await at_work.hands_http.post(f"/v1/posts/{shown['id']}/resend") for _ in range(2)]

        assert [answer.status_code for answer in answers] == [200, 409]


async def test_a_post_that_may_have_arrived_is_unknown_after_the_last_failed_lookup(
    brands: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(*_: object) -> None:
        raise RuntimeError("the answer has another shape")

    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=60.0)) as at_work:
        with monkeypatch.context() as patched:
            patched.setattr(at_work.module("social_good.networks").LinkedIn, "find", find)
            await at_work.research("garden", "garden tools")
            await at_work.advance(days=1)
            [shown] = (await at_work.hands_http.get("/v1/posts")).json()["result"]
            assert shown["platform"] == "linkedin"
        await at_work.hands_http.post(f"/v1/posts/{shown['id']}/lookup")
        await at_work.advance(hours=1)

        assert await at_work.hands.db.value("select state from sg_posts where platform = 'linkedin'") == "posted"
        assert len(at_work.social.arrivals.of("linkedin")) == 1


@pytest.mark.spec("D-27", "F-42")
@pytest.mark.parametrize("stopped", ["researches", "publications", "postings"])
async def test_a_service_that_is_stopped_for_a_day_holds_up_no_other_and_catches_up(
    brands: Opened, apart: bool, stopped: str
) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts", key="1")
        await at_work.advance(hours=1)
        queue = getattr(at_work, stopped)
        admin = await at_work.town.of(queue).app.desk()
        await admin.pause(queue.name)
        await at_work.research("llc-tax", "llc deadlines", key="2")
        await at_work.advance(days=1)
        searched = at_work.search.requests
        assert len(await at_work.contents(status="published")) == (2 if stopped == "postings" else 1)

        await admin.resume(queue.name)
        await at_work.advance(hours=1)
        assert len(await at_work.contents(status="published")) == 2
        assert len(at_work.social.arrivals.of("mastodon")) == 2
        assert at_work.search.requests == (2 if stopped == "researches" else searched) == 2


async def test_a_spent_budget_waits_for_the_next_day_and_charges_no_attempt(brands: Opened) -> None:
    async with brands(day=0.0055) as at_work:  # one search, and hardly more
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(hours=12)
        assert not await at_work.contents(status="published")
        assert not await at_work.dead()

        await at_work.advance(days=2)
        assert len(await at_work.contents(status="published")) == 1
