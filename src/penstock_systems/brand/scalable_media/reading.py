"""Articles as the other services and people read them."""

from __future__ import annotations

import json
from typing import Any

from penstock_systems.brand.app import brain
from penstock_systems.brand.bindings import Content
from penstock_systems.brand.rules.articles import is_web
from penstock_systems.brand.scalable_media.brands import find_brand

READABLE = brain.db.hot(
    """
select sm_content.id, sm_brands.slug as brand_slug, sm_content.title, sm_content.slug, sm_content.description,
  sm_content.key_points, sm_content.content_html, sm_content.model, sm_content.reviewed_by, sm_content.citations
from sm_content join sm_brands on sm_brands.id = sm_content.brand_id
where sm_content.id = :id and sm_content.title <> ''
"""
)
LISTED = brain.db.hot(
    """
select id, keyword, status, stage, reason, title, word_count, model, flags, reviewed_by, published_to, posted_to,
  created_at, published_at
from sm_content
where brand_id = :brand_id and status = :status and created_at < :before
order by created_at desc
limit :most
"""
)
WAITING = brain.db.hot(
    """
select sm_content.id, sm_brands.slug as brand_slug, sm_content.keyword, sm_content.title, sm_content.flags,
  sm_content.word_count, sm_content.model, sm_content.updated_at
from sm_content join sm_brands on sm_brands.id = sm_content.brand_id
where sm_content.stage = 'review'
order by sm_content.created_at
limit :most
"""
)
WHOLE = """
select id, brand_id, keyword, research_id, status, stage, reason, title, slug, description, key_points, citations, flags,
  body, content_html, word_count, model, prompt_hash, reviewed_by, published_at, published_to, posted_to, created_at
from sm_content
where id = :id
"""
JSON_COLUMNS = ("key_points", "citations", "flags", "published_to", "posted_to")


async def find_content(content_id: str) -> Content | None:
    """Return an article that is written, for the services that publish it and post about it."""
    row = await brain.db.first(READABLE, id=content_id)
    if row is None:
        return None
    known = await find_brand(row.brand_slug)
    return Content(
        id=row.id,
        brand_slug=row.brand_slug,
        brand=known.brand,
        title=row.title,
        slug=row.slug,
        description=row.description,
        key_points=json.loads(row.key_points),
        html=row.content_html,
        model=row.model,
        reviewed_by=row.reviewed_by,
        # A writer may cite any text as an address, and the page of the article links to it.
        sources=[url for url in dict.fromkeys(each["url"] for each in json.loads(row.citations)) if is_web(url)],
    )


async def list_content(brand_id: str, *, status: str, before: str, most: int) -> list[dict[str, Any]]:
    rows = await brain.db.rows(LISTED, brand_id=brand_id, status=status, before=before or "9", most=most)
    return [decoded(row.asdict()) for row in rows]


async def list_waiting(most: int = 100) -> list[dict[str, Any]]:
    """Return the articles that wait for a person, the oldest first."""
    return [decoded(row.asdict()) for row in await brain.db.rows(WAITING, most=most)]


async def whole_content(content_id: str) -> dict[str, Any] | None:
    row = await brain.db.first(WHOLE, id=content_id)
    return None if row is None else decoded(row.asdict())


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json.loads(value) if name in JSON_COLUMNS else value for name, value in row.items()}
