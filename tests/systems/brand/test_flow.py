"""From a request for research to a post, over four services: each article and each post once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.systems.brand.conftest import BRAIN, Brands, Opened

BUSY = 5
KEYWORDS = ("llc receipts", "llc deadlines", "llc insurance")


def urls(row: Any) -> list[str]:
    return [each["url"] for each in json.loads(row.published_to)]


async def fresh_content(at_work: Brands, slug: str = "llc-tax") -> str:
    await at_work.research(slug, "llc receipts")
    await at_work.advance(minutes=10)
    [row] = await at_work.contents()
    return str(row.id)


@pytest.mark.spec("D-06", "A13-09", "A14-09", "D-15", "D-19", "D-20", "D-21", "D-22", "D-23", "G4-25", "G4-28")
async def test_three_keywords_are_21_messages_three_articles_and_three_posts(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        correlation = await at_work.research("llc-tax", *KEYWORDS)
        await at_work.advance(hours=1)

        contents = await at_work.contents()
        assert [row.status for row in contents] == ["published"] * 3
        assert at_work.delivered() == 21
        assert correlation.startswith("brand-cycle-llc-tax-2026-01-01-")
        posts = at_work.social.arrivals.of("mastodon")
        assert sorted(post["about"] for post in posts) == sorted(url for row in contents for url in urls(row))
        assert all(post["about"].startswith("https://llctax.example/blog/") for post in posts)
        facts = await at_work.agent("llc-tax")
        assert (facts["total_content_generated"], facts["total_content_published"]) == (3, 3)
        assert (facts["total_social_posted"], facts["pending_research"]) == (3, [])
        await at_work.town[BRAIN].check_conservation()


@pytest.mark.spec("F-17", "D-14", "D-15", "D-20", "D-22", "G4-33")
async def test_messages_that_come_twice_and_in_any_order_have_the_effects_of_one(brands: Opened, apart: bool) -> None:
    async with brands(in_disorder=True) as at_work:
        await at_work.research("garden", *KEYWORDS)
        await at_work.advance(hours=6)

        assert [row.status for row in await at_work.contents()] == ["published"] * 3
        assert at_work.search.requests == 3
        assert len([path for path in at_work.sites.glob("*/blog/*.html") if path.name != "index.html"]) == 3
        assert sorted(post["server"] for post in at_work.social.arrivals.all) == sorted(
            ["mastodon", "bluesky", "x", "linkedin"] * 3
        )
        assert at_work.social.doubled() == []
        facts = await at_work.agent("garden")
        assert (facts["total_content_generated"], facts["total_content_published"]) == (3, 3)
        assert (facts["total_social_posted"], facts["pending_research"]) == (12, [])
        assert not await at_work.dead()


@pytest.mark.spec("G4-35", "D-21")
async def test_a_post_speaks_of_its_article_and_is_made_after_the_page_is_there(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        pages_at_post: list[int] = []
        note_arrival = at_work.social.arrivals.add

        def add(server: str, **facts: Any) -> None:
            pages_at_post.append(len([*at_work.sites.glob(f"*/blog/{facts['about'].rpartition('/')[2]}.html")]))
            note_arrival(server, **facts)

        at_work.social.arrivals.add = add  # type: ignore[method-assign]
        content = await fresh_content(at_work)
        row = await at_work.brain.db.first(
            "select title, description, key_points from sm_content where id = :id", id=content
        )

        [post] = at_work.social.arrivals.of("mastodon")
        assert row is not None
        assert all(part in post["text"] for part in (row.title, row.description, json.loads(row.key_points)[0]))
        assert post["about"] == urls((await at_work.contents())[0])[0]
        assert pages_at_post == [1]


@pytest.mark.spec("D-02", "D-03", "G4-23")
async def test_there_are_five_queues_with_the_settings_of_their_services(brands: Opened) -> None:
    async with brands() as at_work:
        queues = (at_work.researches, at_work.publications, at_work.postings, at_work.wishes, at_work.events)
        given = [queue.settings for queue in queues]

    assert {each.name: (each.batch, each.batch_wait_seconds, each.retry.retries) for each in given} == {
        "gatherfeed-commands": (5, 10, 3),
        "publish-commands": (10, 5, 3),
        "social-commands": (10, 5, 3),
        "sm-commands": (10, 5, 3),
        "brand-events": (10, 5, 3),
    }


@pytest.mark.spec("D-08", "G4-18", "G4-05")
async def test_ten_keywords_are_ten_commands_also_when_asked_twice_and_after_a_crash(brands: Opened) -> None:
    keywords = [f"topic {number}" for number in range(10)]
    async with brands() as at_work:
        async with at_work.brain.unit():
            at_work.wishes.send(
                at_work.module("messages").BrandResearch(brand_slug="llc-tax", keywords=keywords, request_id="r-1")
            )
        await at_work.town[BRAIN].crash(at="commit.after")
        await at_work.advance(seconds=30)
        first = await at_work.research("llc-tax", *keywords, key="r-1")
        await at_work.advance(minutes=1)

        assert first == await at_work.research("llc-tax", *keywords, key="r-1")
        assert (await at_work.counts(at_work.researches)).sent == 10


async def test_requests_of_two_brands_with_one_id_and_two_without_an_id_are_all_researched(brands: Opened) -> None:
    async with brands() as at_work:
        for slug, keyword, request_id in (
            ("llc-tax", "llc receipts", "1"),
            ("garden", "garden tools", "1"),
            ("garden", "garden paths", ""),
            ("garden", "garden ponds", ""),
        ):
            given = {"keywords": [keyword], "request_id": request_id}
            headers = {"X-Service-Key": "service-key"}
            answer = await at_work.http.post(f"/v1/brands/{slug}/research", json=given, headers=headers)
            assert answer.status_code == 202, answer.text
        await at_work.advance(minutes=1)

        assert (await at_work.counts(at_work.researches)).sent == 4


@pytest.mark.spec("D-09", "G4-19")
async def test_research_of_low_priority_waits_an_hour_and_high_goes_first(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "slow topic", priority="low", key="1")
        await at_work.advance(minutes=59)
        assert (await at_work.counts(at_work.researches)).acked == 0
        await at_work.advance(minutes=2)
        assert (await at_work.counts(at_work.researches)).acked == 1


@pytest.mark.spec("D-09", "G4-19")
async def test_a_request_of_higher_priority_does_not_wait_behind_a_pending_one(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts", priority="low", key="1")
        await at_work.research("llc-tax", "llc receipts", priority="normal", key="2")
        await at_work.research("llc-tax", "llc receipts", priority="low", key="3")
        await at_work.advance(minutes=10)
        [row] = await at_work.contents(status="published")
        assert at_work.search.requests == 1

        async with at_work.brain.unit():
            at_work.wishes.send(at_work.module("messages").ContentArchive(content_id=row.id))
        await at_work.advance(hours=2)  # the first command is delivered, and begins no second article
        assert (await at_work.counts(at_work.researches)).acked == 2
        assert [row.status for row in await at_work.contents()] == ["archived"]


@pytest.mark.spec("D-09", "D-28")
async def test_a_failure_is_shown_once_where_a_keyword_was_asked_for_twice(brands: Opened) -> None:
    async with brands() as at_work:
        at_work.pages.is_down = True
        await at_work.research("llc-tax", "llc receipts", priority="low", key="1")
        await at_work.research("llc-tax", "llc receipts", priority="high", key="2")
        await at_work.advance(minutes=30)
        assert (await at_work.agent("llc-tax"))["pending_research"] == ["llc receipts"]
        await at_work.advance(hours=2)

        assert (await at_work.agent("llc-tax"))["pending_research"] == []
        assert await at_work.brain.db.column("select keyword from sm_failures") == ["llc receipts"]


@pytest.mark.spec("D-09", "D-13")
async def test_of_the_articles_that_wait_those_of_high_priority_begin_first(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "a", "b", "c", "d", "e", "f", key="1")
        await at_work.advance(minutes=10)
        await at_work.research("llc-tax", "urgent", priority="high", key="2")
        await at_work.research("llc-tax", "e", priority="high", key="3")
        await at_work.advance(minutes=10)
        assert len((await at_work.agent("llc-tax"))["waiting"]) == 4

        await at_work.advance(days=1)
        assert (await at_work.agent("llc-tax"))["waiting"] == ["f"]


@pytest.mark.spec("D-10")
async def test_research_of_the_last_seven_days_is_used_again(brands: Opened) -> None:
    async with brands() as at_work:
        for key in ("1", "2"):
            await at_work.research("llc-tax", "llc receipts", key=key)
            await at_work.advance(days=1)
        assert at_work.search.requests == 1
        assert (await at_work.counts(at_work.researches)).acked == 2

        await at_work.advance(days=6)
        await at_work.research("llc-tax", "llc receipts", key="3")
        await at_work.advance(hours=1)
        assert at_work.search.requests == 2


@pytest.mark.spec("D-11", "G4-39")
async def test_twenty_requests_for_one_topic_at_once_are_one_search(brands: Opened) -> None:
    async with brands() as at_work:
        wanted = at_work.module("messages").ResearchRequested(brand_slug="llc-tax", keyword="llc receipts")
        async with at_work.eyes.unit():
            for number in range(20):
                at_work.researches.send(wanted, unique=str(number))
        await at_work.advance(hours=1)

        assert at_work.search.requests == 1
        assert (await at_work.counts(at_work.researches)).acked == 20
        assert len(await at_work.contents()) == 1


@pytest.mark.spec("D-13", "D-16", "G4-29", "G4-31")
async def test_a_keyword_with_an_article_gets_no_second_one_until_it_is_archived(brands: Opened) -> None:
    async with brands() as at_work:
        content = await fresh_content(at_work)
        await at_work.research("llc-tax", "llc receipts", key="2")
        await at_work.advance(hours=1)
        assert [row.id for row in await at_work.contents()] == [content]

        async with at_work.brain.unit():
            at_work.wishes.send(at_work.module("messages").ContentArchive(content_id=content))
        await at_work.advance(minutes=1)
        await at_work.research("llc-tax", "llc receipts", key="3")
        await at_work.advance(hours=1)
        assert sorted(row.status for row in await at_work.contents()) == ["archived", "published"]


@pytest.mark.spec("D-13", "G4-32")
async def test_a_busy_brand_begins_no_more_articles_until_one_is_published(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.http.put(
            "/v1/brands/many", json={"fqdn": "many.example", "review": "always", "articles_per_day": 9}
        )
        await at_work.research("many", *(f"topic {number}" for number in range(BUSY + 2)))
        await at_work.advance(hours=1)
        waiting = await at_work.contents(stage="review")
        assert len(waiting) == len(await at_work.contents()) == BUSY
        assert len((await at_work.agent("many"))["waiting"]) == 2

        approved = await at_work.http.post(f"/v1/content/{waiting[0].id}/approve", json={"by": "Ada"})
        assert approved.status_code == 200
        await at_work.advance(minutes=5)
        assert len(await at_work.contents()) == BUSY + 1


async def test_more_articles_than_a_day_allows_begin_on_the_next_days(brands: Opened) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", *(f"topic {number}" for number in range(4)))
        await at_work.advance(hours=5)
        assert len(await at_work.contents(status="published")) == 3
        await at_work.advance(days=1)
        assert len(await at_work.contents(status="published")) == 4


@pytest.mark.spec("D-07", "D-14", "G4-33", "G4-34")
async def test_an_event_that_comes_twice_changes_its_agent_once_and_no_other(brands: Opened) -> None:
    async with brands() as at_work:
        content = await fresh_content(at_work)
        again = at_work.module("messages").SocialPosted(
            brand_slug="llc-tax", content_id=content, platform="x", post_url="https://x.example/1"
        )
        before = (await at_work.agent("llc-tax"))["total_social_posted"]
        async with at_work.brain.unit():
            for _ in range(2):
                await at_work.module("scalable_media.agent").agents["llc-tax"].decide("the same event", again)
        await at_work.advance(minutes=1)

        assert (await at_work.agent("llc-tax"))["total_social_posted"] == before + 1
        assert (await at_work.agent("garden"))["total_social_posted"] == 0


@pytest.mark.spec("D-15", "G4-06", "G4-38")
@pytest.mark.parametrize("number", [1, 2, 4, 6, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 5, 7, 8))])
async def test_a_crash_anywhere_in_the_flow_leaves_one_article_and_one_post(
    brands: Opened, apart: bool, number: int
) -> None:
    async with brands() as at_work:
        await at_work.research("llc-tax", "llc receipts")
        await at_work.town[BRAIN].crash(at="commit.before" if number % 2 else "commit.after", nth=3 * number)
        await at_work.advance(hours=3)

        assert [row.status for row in await at_work.contents()] == ["published"]
        assert len(at_work.social.arrivals.of("mastodon")) == 1
        assert len([path for path in at_work.sites.glob("*/blog/*.html") if path.name != "index.html"]) == 1
        prompts = [json.loads(asked["messages"][1]["content"]) for asked in at_work.chat.book.asked]
        assert all(source["text"] for prompt in prompts for source in prompt["sources"])
        await at_work.town[BRAIN].check_conservation()


@pytest.mark.spec("D-18", "G4-38")
async def test_an_answer_without_an_article_is_never_stored_and_ends_as_content_failed(brands: Opened) -> None:
    async with brands() as at_work:
        empty = {"title": "", "description": "", "body": "", "key_points": [], "citations": []}
        at_work.chat._reply = lambda asked: json.dumps({"summary": "short"} | empty)
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(hours=3)

        [row] = await at_work.contents()
        assert row.status == "failed"
        assert "the title is empty" in row.reason
        assert await at_work.brain.db.column("select title from sm_content") == [""]
        assert await at_work.brain.db.column("select kind from sm_failures") == ["content"]


@pytest.mark.spec("D-20", "D-21", "G4-40")
async def test_a_repeated_command_publishes_once_and_two_targets_have_two_addresses(
    brands: Opened, apart: bool
) -> None:
    async with brands() as at_work:
        ghost = {"base_url": "https://ghost.example", "key_env": "GHOST_TEST_KEY"}
        given = {"fqdn": "two.example", "review": "never", "targets": ["pages-plus", "ghost"], "ghost": ghost}
        await at_work.http.put("/v1/brands/two", json=given | {"social": {"mastodon": "now"}})
        content = await fresh_content(at_work, "two")
        async with at_work.mouth.unit():
            for target in ("pages-plus", "ghost"):
                at_work.publications.send(
                    at_work.module("messages").ContentPublish(brand_slug="two", content_id=content, target=target)
                )
        await at_work.advance(hours=1)

        [row] = await at_work.contents()
        assert sorted(url.split("/")[2] for url in urls(row)) == ["ghost.example", "two.example"]
        assert len(at_work.ghost.posts) == 1
        assert len(at_work.social.arrivals.all) == 1


@pytest.mark.spec("D-21")
async def test_an_event_about_content_that_is_not_visible_yet_waits(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        async with at_work.brain.unit():
            at_work.events.send(
                at_work.module("messages").ContentPublished(
                    brand_slug="llc-tax", content_id="later", published_url="https://a.example/"
                )
            )
        await at_work.advance(minutes=5)

        assert (await at_work.counts(at_work.events)).acked == 0
        assert not await at_work.dead()


@pytest.mark.spec("D-22", "G4-04")
async def test_a_repeated_event_posts_nothing_again(brands: Opened) -> None:
    async with brands() as at_work:
        content = await fresh_content(at_work, "garden")
        await at_work.advance(hours=3)
        assert sorted(each["server"] for each in at_work.social.arrivals.all) == [
            "bluesky",
            "linkedin",
            "mastodon",
            "x",
        ]
        row = await at_work.brain.db.first("select title, description, keyword from sm_content")
        assert row is not None
        context = {
            "title": row.title,
            "keyword": row.keyword,
            "meta_description": row.description,
            "key_points": ["a"],
        }
        command = {"brand_slug": "garden", "content_id": content, "published_url": "https://garden.example/blog/x"}
        async with at_work.brain.unit():
            at_work.postings.send(at_work.postings.accepts["social.create"](**command, article_context=context))
        await at_work.advance(hours=3)
        assert len(at_work.social.arrivals.all) == 4


@pytest.mark.spec("D-28", "D-26", "G4-32")
async def test_research_that_cannot_be_done_is_shown_and_pending_no_more(brands: Opened, apart: bool) -> None:
    async with brands() as at_work:
        at_work.pages.is_down = True
        await at_work.research("llc-tax", "llc receipts")
        await at_work.advance(hours=3)

        assert (await at_work.agent("llc-tax"))["pending_research"] == []
        [failure] = await at_work.brain.db.rows("select kind, keyword, reason from sm_failures")
        assert (failure.kind, failure.keyword) == ("research", "llc receipts")
        assert "none of them could be read" in failure.reason
        reports = (await at_work.http.get("/v1/coordinator/reports")).json()["result"]
        assert any("gatherfeed-commands" in report["text"] for report in reports)


@pytest.mark.spec("D-17")
async def test_content_joins_its_brand_by_id_and_messages_hold_slugs(brands: Opened) -> None:
    async with brands() as at_work:
        await fresh_content(at_work)

        sql = "select sm_brands.slug from sm_content join sm_brands on sm_brands.id = sm_content.brand_id"
        assert await at_work.brain.db.column(sql) == ["llc-tax"]
        assert at_work.module("messages").ResearchCompleted.__struct_fields__ == (
            "brand_slug",
            "research_id",
            "keyword",
        )
