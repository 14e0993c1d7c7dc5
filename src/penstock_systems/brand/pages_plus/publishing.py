"""Publishing an article at one target. A site is an object, so its feed and its sitemap have one writer."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

import penstock as ps
from penstock_systems.brand.app import events, mouth, publications, settings
from penstock_systems.brand.bindings import Content, read_content
from penstock_systems.brand.messages import ContentFailed, ContentPublish, ContentPublished
from penstock_systems.brand.pages_plus.ghost import add_to_ghost, find_on_ghost
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
# Ghost may still carry out a request whose caller is gone: what it does not show before may come.
SETTLE_SECONDS = 120


class Site(ps.Object):
    """The site of one brand, by its host."""

    async def publish(self, content_id: str, target: str) -> str:
        """Publish an article at a target, once, and return its address."""
        content, now = await read_content(mouth, content_id), await mouth.db.now()
        before = await mouth.db.first(PAGE, content_id=content_id, target=target)
        if before is not None and before.state == "published":
            return str(before.url)
        if target == "ghost":
            return await self._publish_on_ghost(content, now, None if before is None else _moment(before.published_at))
        if target != "pages-plus":
            raise ps.Refused(f"There is no target {target!r}; there are pages-plus and ghost.")
        others = await mouth.db.rows(PAGES, fqdn=content.brand.fqdn, content_id=content_id, most=PAGES_MAX)
        pages = [Page(content.title, content.description, content.slug, now), *(Page(*row) for row in others)]
        await ps.in_thread(write_site, Path(settings.sites), content, now, pages)
        _save(content, target, now, state="published", url=article_url(content))
        return article_url(content)

    async def _publish_on_ghost(self, content: Content, now: str, asked_at: int | None) -> str:
        """Add the article unless it is there. `asked_at` is when the last attempt of unknown outcome began."""
        moment = _moment(now)
        found = await find_on_ghost(content, moment)
        if found is None:
            if asked_at is not None and (left := asked_at + SETTLE_SECONDS - moment) > 0:
                reason = f"Ghost does not show {content.slug!r} yet."
                raise ps.Unavailable(reason, retry_after=min(left, SETTLE_SECONDS))
            async with mouth.unit():  # the intent: until the answer is saved, nobody knows
                _save(content, "ghost", now, state="unknown")
            found = await add_to_ghost(content, moment)
        remote_id, url = found
        _save(content, "ghost", now, state="published", url=url, remote_id=remote_id)
        return url


sites = mouth.object(Site)


@publications.handler
async def publish(command: ContentPublish) -> None:
    content = await read_content(mouth, command.content_id)
    url = await sites[content.brand.fqdn].publish(command.content_id, command.target)
    event = ContentPublished(
        brand_slug=command.brand_slug, content_id=command.content_id, published_url=url, target=command.target
    )
    events.send(event)


@publications.dead_letter_handler
async def give_up(letter: ps.DeadLetter) -> None:
    """Tell the agent, whose draft would count as one for ever otherwise. A replay that succeeds publishes it all the same."""
    try:
        command = msgspec.json.decode(letter.body, type=ContentPublish)
    except msgspec.DecodeError:
        return  # it names no article
    reason = f"{command.target}: {letter.error_message or letter.reason}"
    events.send(ContentFailed(brand_slug=command.brand_slug, content_id=command.content_id, keyword="", reason=reason))


def _moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


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
