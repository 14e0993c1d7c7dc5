"""Publishing an article at one target. A site is an object, so its feed and its sitemap have one writer."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import penstock as ps
from penstock_systems.brand.app import events, mouth, publications, settings
from penstock_systems.brand.bindings import Content, read_content
from penstock_systems.brand.messages import ContentPublish, ContentPublished
from penstock_systems.brand.pages_plus.ghost import publish_on_ghost
from penstock_systems.brand.pages_plus.site import Page, article_url, write_site

PAGE = "select state, url, published_at from pp_pages where content_id = :content_id and target = :target"
PAGES = mouth.db.hot(
    """
select title, description, slug, published_at
from pp_pages
where fqdn = :fqdn and target = 'pages-plus' and state = 'published' and content_id <> :content_id
order by published_at desc
limit :most
"""
)
PAGES_MAX = 5_000


class Site(ps.Object):
    """The site of one brand, by its host."""

    async def publish(self, content_id: str) -> str:
        """Write the files of an article and return its address. Written again, they are the same."""
        content = await read_content(mouth, content_id)
        before = await mouth.db.first(PAGE, content_id=content_id, target="pages-plus")
        if before is not None and before.state == "published":
            return str(before.url)
        now = await mouth.db.now()
        others = await mouth.db.rows(PAGES, fqdn=content.brand.fqdn, content_id=content_id, most=PAGES_MAX)
        pages = [Page(content.title, content.description, content.slug, now), *(Page(*row) for row in others)]
        await ps.in_thread(write_site, Path(settings.sites), content, now, pages)
        _save(content, "pages-plus", now, state="published", url=article_url(content))
        return article_url(content)


sites = mouth.object(Site)


@publications.handler
async def publish(command: ContentPublish) -> None:
    content = await read_content(mouth, command.content_id)
    if command.target == "pages-plus":
        url = await sites[content.brand.fqdn].publish(command.content_id)
    elif command.target == "ghost":
        url = await _publish_on_ghost(content)
    else:
        raise ps.Refused(f"There is no target {command.target!r}; there are pages-plus and ghost.")
    event = ContentPublished(
        brand_slug=command.brand_slug, content_id=command.content_id, published_url=url, target=command.target
    )
    events.send(event)


async def _publish_on_ghost(content: Content) -> str:
    before = await mouth.db.first(PAGE, content_id=content.id, target="ghost")
    if before is not None and before.state == "published":
        return str(before.url)
    now = await mouth.db.now()
    if before is None:
        async with mouth.unit():  # the intent: until the answer is saved, nobody knows
            _save(content, "ghost", now, state="unknown")
    moment = int(datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp())
    remote_id, url = await publish_on_ghost(content, moment)
    _save(content, "ghost", now, state="published", url=url, remote_id=remote_id)
    return url


def _save(content: Content, target: str, now: str, *, state: str, url: str = "", remote_id: str = "") -> None:
    row = {
        "content_id": content.id,
        "target": target,
        "fqdn": content.brand.fqdn,
        "slug": content.slug,
        "title": content.title,
        "description": content.description,
        "state": state,
        "url": url,
        "remote_id": remote_id,
        "published_at": now,
        "read_back_at": now if remote_id else None,
    }
    mouth.db.upsert("pp_pages", row, key=("content_id", "target"))
