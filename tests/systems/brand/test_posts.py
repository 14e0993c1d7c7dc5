"""Posts whose answers get lost, that are late, or that nobody can look up: none is doubled, and none is hidden."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse

import penstock as ps
from penstock.channels import Channel
from penstock_systems.standins.publishing import SocialFaults
from tests.systems.brand.conftest import HANDS, MOUTH, Opened

ON_GHOST = {
    "fqdn": "two.example",
    "review": "never",
    "targets": ["ghost"],
    "ghost": {"base_url": "https://ghost.example", "key_env": "GHOST_TEST_KEY"},
}
ON_LINKEDIN = {"fqdn": "two.example", "review": "never", "social": {"linkedin": "now"}}


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


@pytest.mark.spec("D-22")
async def test_a_crash_after_the_record_of_a_post_and_before_the_end_of_its_step_posts_nothing_again(
    brands: Opened, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    async with brands() as at_work:
        linkedin = at_work.module("social_good.networks").LinkedIn
        send, sent = linkedin.send, list[str]()

        async def send_and_crash(self: Any, notice: Any, key: str) -> Any:
            outcome = await send(self, notice, key)
            await at_work.town[HANDS].crash(at="commit.after")  # that of the outcome: the step is not saved
            sent.append(key)
            return outcome

        monkeypatch.setattr(linkedin, "send", send_and_crash)
        await at_work.http.put("/v1/brands/two", json=ON_LINKEDIN)
        await at_work.research("two", "llc receipts")
        await at_work.advance(hours=6)

        assert len(sent) == len(at_work.social.arrivals.of("linkedin")) == 1
        assert await at_work.hands.db.column("select state from sg_posts") == ["posted"]
        assert await at_work.brain.db.value("select count(*) from sm_content where posted_to <> '[]'") == 1


async def test_a_title_is_plain_text_on_linkedin(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("garden", "tools (2026) @[home](urn:li:person:1)")
        await at_work.advance(hours=3)

        [shared], [tweet] = at_work.social.arrivals.of("linkedin"), at_work.social.arrivals.of("x")
        assert "(2026) @[home](urn:li:person:1)" in tweet["text"]
        assert r"\(2026\) \@\[home\]\(urn:li:person:1\)" in shared["text"]
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


async def test_a_post_that_its_run_still_looks_up_is_not_decided_by_a_person(brands: Opened) -> None:
    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=60.0)) as at_work:
        await at_work.research("garden", "garden tools")
        while not at_work.social.arrivals.of("linkedin"):
            await at_work.advance(seconds=1)
        await at_work.advance(seconds=15)  # its caller has given up
        [id] = await at_work.hands.db.column("select id from sg_posts where platform = 'linkedin' and error <> ''")
        answer = await at_work.hands_http.post(f"/v1/posts/{id}/drop")
        assert answer.status_code == 409, "it would be posted all the same"
        await at_work.advance(hours=6)

        assert await at_work.hands.db.value("select state from sg_posts where platform = 'linkedin'") == "posted"


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


@pytest.mark.spec("D-22")
async def test_a_post_that_is_made_long_after_its_caller_gave_up_is_not_made_again(brands: Opened, apart: bool) -> None:
    async with brands(faults=SocialFaults(slow=0.8, slow_seconds=90.0)) as at_work:
        await at_work.research("garden", "garden tools", "garden paths", "garden ponds")
        await at_work.advance(days=1)

        assert at_work.social.doubled() == []
        assert await at_work.hands.db.column("select state from sg_posts") == ["posted"] * 12
        assert len(at_work.social.arrivals.all) == 12


@pytest.mark.spec("D-20")
async def test_an_article_that_ghost_adds_long_after_its_caller_gave_up_is_not_added_again(
    brands: Opened, apart: bool
) -> None:
    async with brands(faults=SocialFaults(slow=1.0, slow_seconds=90.0)) as at_work:
        await at_work.http.put("/v1/brands/two", json=ON_GHOST)
        await at_work.research("two", "llc receipts")
        while not at_work.ghost.asked:
            await at_work.advance(seconds=1)
        await at_work.town[MOUTH].kill()
        await at_work.advance(hours=1)

        assert len(at_work.ghost.posts) == 1
        assert [row.status for row in await at_work.contents()] == ["published"]


@pytest.mark.spec("D-22")
async def test_an_answer_without_an_id_is_no_proof_of_a_post(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        real, odd = at_work.social.app, list[str]()

        async def sometimes_odd(scope: Any, receive: Any, send: Any) -> None:
            makes = scope["method"] == "POST" and "createSession" not in scope["path"]
            if makes and scope["path"] not in odd:
                odd.append(scope["path"])
                return await JSONResponse({"ok": True})(scope, receive, send)
            return await real(scope, receive, send)

        at_work.web.mount("https://social.example", sometimes_odd)
        await at_work.research("garden", "garden tools")
        await at_work.advance(hours=6)

        assert len(odd) == 4
        assert sorted(each["server"] for each in at_work.social.arrivals.all) == [
            "bluesky",
            "linkedin",
            "mastodon",
            "x",
        ]
        assert await at_work.hands.db.column("select distinct state from sg_posts") == ["posted"]


@pytest.mark.spec("D-22")
@pytest.mark.parametrize(
    "action, state, arrived", [("resend", "posted", 52), ("drop", "failed", 51), ("lookup", "unknown", 51)]
)
async def test_a_post_behind_more_posts_than_are_looked_through_is_held_for_a_person(
    brands: Opened, action: str, state: str, arrived: int
) -> None:
    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=60.0)) as at_work:
        await at_work.research("garden", "garden tools")
        while not at_work.social.arrivals.of("linkedin"):
            await at_work.advance(seconds=1)
        for number in range(50):
            post = {
                "id": 100 + number,
                "text": "of another program",
                "key": "",
                "at": at_work.town[HANDS].now.timestamp(),
            }
            at_work.social.arrivals.add("linkedin", **post, about="")
        await at_work.advance(days=1)

        [shown] = (await at_work.hands_http.get("/v1/posts")).json()["result"]
        assert (shown["platform"], at_work.social.doubled()) == ("linkedin", [])
        assert "newest 40 posts" in shown["error"]

        at_work.social.faults = SocialFaults()
        await at_work.hands_http.post(f"/v1/posts/{shown['id']}/{action}")
        await at_work.advance(hours=6)
        assert await at_work.hands.db.value("select state from sg_posts where platform = 'linkedin'") == state
        assert len(at_work.social.arrivals.of("linkedin")) == arrived


@pytest.mark.spec("D-22")
async def test_a_post_whose_look_up_is_refused_is_held_for_a_person(
    brands: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise ps.Refused("linkedin answered 401: the token is revoked")

    async with brands(faults=SocialFaults(lost=1.0, lost_seconds=60.0)) as at_work:
        with monkeypatch.context() as patched:
            patched.setattr(at_work.module("social_good.networks").LinkedIn, "_newest", refused)
            await at_work.research("garden", "garden tools")
            await at_work.advance(hours=1)
            [shown] = (await at_work.hands_http.get("/v1/posts")).json()["result"]
            assert (shown["platform"], "revoked" in shown["error"]) == ("linkedin", True)
        await at_work.hands_http.post(f"/v1/posts/{shown['id']}/lookup")
        await at_work.advance(hours=1)

        assert await at_work.hands.db.value("select state from sg_posts where platform = 'linkedin'") == "posted"
        assert len(at_work.social.arrivals.of("linkedin")) == 1


@pytest.mark.spec("D-20", "D-13")
@pytest.mark.parametrize("is_asked_again", [False, True])
async def test_an_article_that_no_target_takes_fails_with_the_reason_and_a_replay_publishes_it(
    brands: Opened, apart: bool, monkeypatch: pytest.MonkeyPatch, is_asked_again: bool
) -> None:
    async with brands() as at_work:
        await at_work.http.put("/v1/brands/two", json=ON_GHOST)
        with monkeypatch.context() as patched:
            patched.setenv("GHOST_TEST_KEY", "65a:00")
            await at_work.research("two", "llc receipts")
            await at_work.advance(hours=1)
        [failed] = await at_work.contents()
        assert (failed.status, failed.reason.startswith("ghost: "), "401" in failed.reason) == ("failed", True, True)
        assert await at_work.brain.db.column("select keyword from sm_failures") == ["llc receipts"]

        if is_asked_again:
            await at_work.research("two", "llc receipts", key="request-2")
            await at_work.advance(hours=1)
        shop = at_work.town.of(at_work.publications)
        assert await shop.app.dead.replay(ps.DeadLetterFilter(queue=at_work.publications.name))
        await at_work.advance(hours=1)
        found = [row.status for row in sorted(await at_work.contents(), key=lambda row: row.id != failed.id)]
        assert found == (["archived", "published"] if is_asked_again else ["published"]), "one article a keyword"
        assert len(await at_work.contents(status="published")) == 1
        assert not [letter for letter in await at_work.dead() if letter.queue == "brand-events"]


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
