"""One agent a brand: it decides what happens next and calls nothing outside. Each event changes it once.

What waits to be written is a run of the content workflow that waits for the signal `go`, so it keeps its place in its chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import penstock as ps
from penstock_systems.brand.app import brain, postings, publications, researches, settings
from penstock_systems.brand.messages import (
    ArticleContext,
    ContentFailed,
    ContentGenerated,
    ContentPublish,
    ContentPublished,
    Priority,
    ResearchCompleted,
    ResearchFailed,
    ResearchRequested,
    SocialCreate,
    SocialPosted,
)
from penstock_systems.brand.scalable_media.brands import Known, brand_id, find_brand, save_brand
from penstock_systems.brand.scalable_media.content import Decision, run_state
from penstock_systems.brand.scalable_media.reviewing import save_review
from penstock_systems.brand.scalable_media.unfinished import ask_again, note_unfinished

BUSY = 5  # drafts of a brand at which the next article waits
SEEN_MAX = 1_000  # events that are recognised when they come again
KEYWORDS_MAX, KEYWORD_CHARACTERS_MAX = 100, 200
LOW_DELAY_SECONDS = 3_600
PRIORITIES: dict[Priority, int] = {"high": 0, "normal": 1, "low": 2}

REQUEST = "select correlation_id from sm_requests where id = :id"
ADD_REQUEST = """
insert into sm_requests (id, brand_id, correlation_id, keywords, priority, created_at)
values (:id, :brand_id, :correlation_id, :keywords, :priority, :now)
"""
HAS_CONTENT = brain.db.hot(
    """
select id from sm_content
where brand_id = :brand_id and keyword = :keyword and status in ('draft', 'published')
limit 1
"""
)
HAS_ANOTHER = brain.db.hot(
    """
select id from sm_content
where brand_id = :brand_id and keyword = :keyword and status in ('draft', 'published') and id <> :id
limit 1
"""
)
DRAFTS = brain.db.hot("select id from sm_content where brand_id = :brand_id and status = 'draft' limit :most")
TODAY = brain.db.hot(
    """
select id from sm_content
where brand_id = :brand_id and status in ('draft', 'published') and created_at >= :today
limit :most
"""
)
ADD_CONTENT = """
insert into sm_content (id, brand_id, keyword, research_id, correlation_id, created_at, updated_at)
values (:id, :brand_id, :keyword, :research_id, '', :now, :now)
on conflict do nothing
"""
CONTENT = (
    "select status, title, keyword, description, key_points, published_to, posted_to from sm_content where id = :id"
)
PUBLISHING = "update sm_content set stage = 'publishing', updated_at = :now where id = :id and status = 'draft'"
PUBLISHED = """
update sm_content
set status = :status, stage = case when status = 'archived' then stage else :status end, published_to = :published_to,
  published_at = coalesce(published_at, :now), updated_at = :now
where id = :id
"""
POSTED = "update sm_content set posted_to = :posted_to, updated_at = :now where id = :id"
FAILED = """
update sm_content set status = 'failed', stage = 'failed', reason = :reason, updated_at = :now
where id = :id and status = 'draft'
"""
ENDED = ("terminated", "errored", "gone")  # states of a run that sends nothing more
ADD_FAILURE = """
insert into sm_failures (id, brand_id, kind, keyword, reason, failed_at)
values (:id, :brand_id, :kind, :keyword, :reason, :now)
on conflict (id) do nothing
"""


BrandEvent = ResearchCompleted | ResearchFailed | ContentGenerated | ContentFailed | ContentPublished | SocialPosted


class Waiting(msgspec.Struct, frozen=True):
    """An article that is not begun yet, because the brand is busy or has enough for the day."""

    content_id: str
    keyword: str
    research_id: str
    priority: Priority = "normal"


class BrandAgent(ps.Object):
    brand_slug: str = ""
    brand_id: str = ""
    pending_research: dict[str, str] = {}  # noqa: RUF012 (an object's state: each has its own) keyword: request
    priorities: dict[str, Priority] = {}  # noqa: RUF012 (of each keyword that is pending)
    repeats: dict[str, int] = {}  # noqa: RUF012 (answers to come beyond the one that counts, by keyword)
    waiting: list[Waiting] = []  # noqa: RUF012
    seen: list[str] = []  # noqa: RUF012
    total_content_generated: int = 0
    total_content_published: int = 0
    total_social_posted: int = 0
    last_research_cycle: str = ""

    async def request_research(self, slug: str, request_id: str, keywords: list[str], priority: Priority) -> str:
        """Send a command for each keyword that is not being researched, or only with a lower priority, and return the name of
        their chain. The same request sends nothing again."""
        known = await self._known(slug)
        id = f"{slug}/{request_id}"
        if before := await brain.db.value(REQUEST, id=id):
            return str(before)
        now = await brain.db.now()
        correlation = f"brand-cycle-{slug}-{now[:10]}-{request_id}"
        wanted = [keyword for keyword in check_keywords(keywords) if self._is_more_urgent(keyword, priority)]
        delay = LOW_DELAY_SECONDS if priority == "low" else 0
        for keyword in wanted:
            command = ResearchRequested(brand_slug=slug, keyword=keyword, priority=priority)
            researches.send(command, correlation=correlation, priority=PRIORITIES[priority], delay=delay)
            if (
                keyword in self.pending_research
            ):  # the first command finds the research done, and its answer changes nothing
                self.repeats[keyword] = self.repeats.get(keyword, 0) + 1
            self.pending_research[keyword], self.priorities[keyword] = request_id, priority
        self.last_research_cycle = correlation
        brain.db.write(
            ADD_REQUEST,
            id=id,
            brand_id=known.id,
            correlation_id=correlation,
            keywords=json.dumps(wanted),
            priority=priority,
            now=now,
        )
        return correlation

    async def decide(self, event_id: str, event: BrandEvent) -> None:
        """Do what follows from an event. The same event changes nothing again."""
        if event_id in self.seen:
            return
        self.seen = [*self.seen[1 - SEEN_MAX :], event_id]
        known = await self._known(event.brand_slug)
        match event:
            case ResearchCompleted():
                await self._research_completed(known, event_id, event)
            case ResearchFailed():
                await self._research_failed(known, event_id, event)
            case ContentGenerated():
                await self._content_generated(known, event)
            case ContentFailed():
                await self._content_failed(known, event_id, event)
            case ContentPublished():
                await self._content_published(known, event)
            case SocialPosted():
                await self._social_posted(event)

    async def review(self, content_id: str, decision: Decision) -> None:
        """Save what a person decided about an article. The first decision counts; a later one is refused with its person."""
        await save_review(content_id, decision)

    async def audit(self, slug: str, name: str) -> None:
        """Count what stayed unfinished, end the drafts whose run ended without an event, begin what may begin, and ask
        again for research that failed once if the brand has room for it."""
        known = await self._known(slug)
        await note_unfinished(known, name, pending=len(self.pending_research), waiting=len(self.waiting))
        await self._begin_what_may(known, *await self._end_orphans(known))
        if not self.waiting:
            await ask_again(known, name)

    async def facts(self) -> dict[str, Any]:
        """Return the state as people see it."""
        return {
            "pending_research": sorted(self.pending_research),
            "waiting": [each.keyword for each in self.waiting],
            "total_content_generated": self.total_content_generated,
            "total_content_published": self.total_content_published,
            "total_social_posted": self.total_social_posted,
            "last_research_cycle": self.last_research_cycle,
        }

    async def alarm(self) -> None:
        """A new day: what exceeded the articles of the last one may begin."""
        if self.brand_slug:
            known = await self._known(self.brand_slug)
            await self._begin_what_may(known, *await self._end_orphans(known))

    # -- what follows from each event

    async def _research_completed(self, known: Known, event_id: str, event: ResearchCompleted) -> None:
        """Begin an article, unless the brand has one about this keyword; if the brand is busy, it waits."""
        if event.keyword not in self.pending_research and self._is_repeat(event.keyword):
            return
        self.pending_research.pop(event.keyword, None)
        priority = self.priorities.pop(event.keyword, "normal")
        if await brain.db.value(HAS_CONTENT, brand_id=known.id, keyword=event.keyword):
            return
        content_id = f"{known.slug}-{event.research_id[:12]}-{event_id[-6:]}"
        if before := next((each for each in self.waiting if each.keyword == event.keyword), None):
            urgent = min(before.priority, priority, key=PRIORITIES.__getitem__)
            self.waiting[self.waiting.index(before)] = msgspec.structs.replace(before, priority=urgent)
            return
        self.waiting.append(Waiting(content_id, event.keyword, event.research_id, priority))
        brain.workflows["content-workflow"][content_id].start(content_id, known.slug, event.keyword, event.research_id)
        await self._begin_what_may(known)

    async def _research_failed(self, known: Known, event_id: str, event: ResearchFailed) -> None:
        """Show the failure, unless another command for the keyword may still succeed or has succeeded."""
        if self._is_repeat(event.keyword):
            return
        self.pending_research.pop(event.keyword, None)
        self.priorities.pop(event.keyword, None)
        await self._note_failure(event_id, known, "research", event.keyword, event.reason)

    async def _content_generated(self, known: Known, event: ContentGenerated) -> None:
        """Publish it at every target of the brand, unless it was archived before."""
        row = await brain.db.first(CONTENT, id=event.content_id)
        if row is not None and row.status == "archived":
            await self._begin_what_may(known)
            return
        self.total_content_generated += 1
        brain.db.write(PUBLISHING, id=event.content_id, now=await brain.db.now())
        for target in known.brand.targets:
            publications.send(ContentPublish(brand_slug=known.slug, content_id=event.content_id, target=target))

    async def _content_failed(self, known: Known, event_id: str, event: ContentFailed) -> None:
        self.waiting = [each for each in self.waiting if each.content_id != event.content_id]
        brain.db.write(FAILED, id=event.content_id, reason=event.reason, now=await brain.db.now())
        row = None if event.keyword else await brain.db.first(CONTENT, id=event.content_id)
        keyword = event.keyword if row is None else row.keyword
        await self._note_failure(event_id, known, "content", keyword, event.reason)
        await self._begin_what_may(known, event.content_id)

    async def _content_published(self, known: Known, event: ContentPublished) -> None:
        """Add its address, and after the first target have it posted about. If it had failed, and the brand has another
        article about its keyword since, that one stays the brand's."""
        row = await brain.db.first(CONTENT, id=event.content_id)
        if row is None:
            raise ps.Unavailable(f"The content {event.content_id!r} is not visible yet.")
        published = json.loads(row.published_to)
        if any(each["target"] == event.target for each in published):
            return
        published.append({"target": event.target, "url": event.published_url})
        another = await brain.db.value(HAS_ANOTHER, brand_id=known.id, keyword=row.keyword, id=event.content_id)
        status = "archived" if another or row.status == "archived" else "published"
        now = await brain.db.now()
        brain.db.write(PUBLISHED, id=event.content_id, status=status, published_to=json.dumps(published), now=now)
        if len(published) > 1:
            return
        self.total_content_published += 1
        is_posted = any(known.brand.delay_seconds(platform) is not None for platform in settings.networks)
        if is_posted and status != "archived":
            context = ArticleContext(row.title, row.keyword, row.description, json.loads(row.key_points))
            postings.send(
                SocialCreate(
                    brand_slug=known.slug,
                    content_id=event.content_id,
                    article_context=context,
                    published_url=event.published_url,
                )
            )
        await self._begin_what_may(known, event.content_id)

    async def _social_posted(self, event: SocialPosted) -> None:
        self.total_social_posted += 1
        row = await brain.db.first(CONTENT, id=event.content_id)
        if row is not None:
            posted = [*json.loads(row.posted_to), {"platform": event.platform, "url": event.post_url}]
            brain.db.write(POSTED, id=event.content_id, posted_to=json.dumps(posted), now=await brain.db.now())

    # -- what the events share

    async def _known(self, slug: str) -> Known:
        known = await find_brand(slug)
        if not self.brand_slug:
            self.brand_slug, self.brand_id = slug, brand_id(slug)
            await save_brand(slug, known.brand)
        return known

    def _is_more_urgent(self, keyword: str, priority: Priority) -> bool:
        """Whether a request changes anything: the keyword is not pending, or only with a lower priority."""
        pending = self.priorities.get(keyword, "normal")
        return keyword not in self.pending_research or PRIORITIES[priority] < PRIORITIES[pending]

    def _is_repeat(self, keyword: str) -> bool:
        """Count an answer beyond the one that counts, and return whether this is one."""
        left = self.repeats.pop(keyword, 0)
        if left > 1:
            self.repeats[keyword] = left - 1
        return left > 0

    async def _end_orphans(self, known: Known) -> list[str]:
        """Fail the drafts whose run ended without an event, and return their ids. A run that is restarted publishes all the
        same."""
        ended = []
        for id in await brain.db.column(DRAFTS, brand_id=known.id, most=BUSY + 1):
            state, error = await run_state(id)
            if state in ENDED and (row := await brain.db.first(CONTENT, id=id)) is not None:
                reason = f"its run is {state}{': ' if error else ''}{error or ''}"
                brain.db.write(FAILED, id=id, reason=reason, now=await brain.db.now())
                await self._note_failure(f"orphan {id}", known, "content", row.keyword, reason)
                ended.append(id)
        return ended

    async def _begin_what_may(self, known: Known, *ended: str) -> None:
        """Let waiting articles begin, as far as drafts and the articles of the day allow. Those in `ended` are no drafts
        any more."""
        if not self.waiting:
            return
        now, ceiling = await brain.db.now(), known.brand.articles_per_day
        drafts = set(await brain.db.column(DRAFTS, brand_id=known.id, most=BUSY + 1)) - {*ended}
        today = await brain.db.column(TODAY, brand_id=known.id, today=now[:10], most=ceiling)
        room = min(BUSY - len(drafts), ceiling - len(today))
        self.waiting = sorted(self.waiting, key=lambda each: PRIORITIES[each.priority])  # the oldest first within each
        beginning, self.waiting = self.waiting[: max(0, room)], self.waiting[max(0, room) :]
        for each in beginning:
            brain.db.write(
                ADD_CONTENT,
                id=each.content_id,
                brand_id=known.id,
                keyword=each.keyword,
                research_id=each.research_id,
                now=now,
            )
            brain.workflows["content-workflow"][each.content_id].signal("go")
        if self.waiting:
            self.set_alarm(_tomorrow(now))

    async def _note_failure(self, id: str, known: Known, kind: str, keyword: str, reason: str) -> None:
        now = await brain.db.now()
        brain.db.write(ADD_FAILURE, id=id, brand_id=known.id, kind=kind, keyword=keyword, reason=reason, now=now)


agents = brain.object(BrandAgent, tag="v1")


def check_keywords(keywords: Iterable[str]) -> list[str]:
    """Return the keywords without repetitions. Raises BadParameter if there are none, too many, or one is too long."""
    found = list(dict.fromkeys(" ".join(keyword.split()) for keyword in keywords))
    if not found or len(found) > KEYWORDS_MAX:
        raise ps.errors.BadParameter(f"keywords: {len(found)} are given; give 1 to {KEYWORDS_MAX}.", field="keywords")
    for keyword in found:
        if not keyword or len(keyword) > KEYWORD_CHARACTERS_MAX:
            raise ps.errors.BadParameter(
                f"keywords: {keyword[:50]!r} has {len(keyword)} characters; a keyword has 1 to {KEYWORD_CHARACTERS_MAX}.",
                field="keywords",
            )
    return found


def _tomorrow(now: str) -> datetime:
    day = datetime.fromisoformat(now).replace(tzinfo=UTC, hour=0, minute=0, second=0, microsecond=0)
    return day + timedelta(days=1, seconds=1)
