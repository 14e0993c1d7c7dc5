"""What Scalable Media receives: events of the other services, and commands from outside."""

from __future__ import annotations

import penstock as ps
from penstock_systems.brand.app import brain, events, wishes
from penstock_systems.brand.messages import BrandAudit, BrandResearch, ContentArchive
from penstock_systems.brand.scalable_media.agent import BrandEvent, agents

ARCHIVE = """
update sm_content set status = 'archived', stage = 'archived', updated_at = :now
where id = :id and status in ('draft', 'published')
"""


@events.handler
async def decide(event: BrandEvent, message: ps.Message[BrandEvent]) -> None:
    """Let the agent of the brand decide what follows from an event."""
    await agents[event.brand_slug].decide(message.id, event)


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
