"""What Scalable Media receives: events of the other services, and commands from outside."""

from __future__ import annotations

import penstock as ps
from penstock_systems.brand.app import brain, events, wishes
from penstock_systems.brand.messages import (
    BrandAudit,
    BrandResearch,
    ContentArchive,
    ContentFailed,
    ContentGenerated,
    ContentPublished,
    ResearchCompleted,
    ResearchFailed,
    SocialPosted,
)
from penstock_systems.brand.scalable_media.agent import agents

ARCHIVE = """
update sm_content set status = 'archived', stage = 'archived', updated_at = :now
where id = :id and status in ('draft', 'published')
"""


@events.handler(ResearchCompleted)
async def research_completed(event: ResearchCompleted, message: ps.Message[ResearchCompleted]) -> None:
    await agents[event.brand_slug].research_completed(message.id, event)


@events.handler(ResearchFailed)
async def research_failed(event: ResearchFailed, message: ps.Message[ResearchFailed]) -> None:
    await agents[event.brand_slug].research_failed(message.id, event)


@events.handler(ContentGenerated)
async def content_generated(event: ContentGenerated, message: ps.Message[ContentGenerated]) -> None:
    await agents[event.brand_slug].content_generated(message.id, event)


@events.handler(ContentFailed)
async def content_failed(event: ContentFailed, message: ps.Message[ContentFailed]) -> None:
    await agents[event.brand_slug].content_failed(message.id, event)


@events.handler(ContentPublished)
async def content_published(event: ContentPublished, message: ps.Message[ContentPublished]) -> None:
    await agents[event.brand_slug].content_published(message.id, event)


@events.handler(SocialPosted)
async def social_posted(event: SocialPosted, message: ps.Message[SocialPosted]) -> None:
    await agents[event.brand_slug].social_posted(message.id, event)


@wishes.handler(BrandResearch)
async def request_research(wish: BrandResearch, message: ps.Message[BrandResearch]) -> None:
    request_id = wish.request_id or message.id
    await agents[wish.brand_slug].request_research(wish.brand_slug, request_id, wish.keywords, wish.priority)


@wishes.handler(BrandAudit)
async def audit(wish: BrandAudit, message: ps.Message[BrandAudit]) -> None:
    await agents[wish.brand_slug].audit(wish.brand_slug, message.id)


@wishes.handler(ContentArchive)
async def archive(wish: ContentArchive) -> None:
    brain.db.write(ARCHIVE, id=wish.content_id, now=await brain.db.now())
