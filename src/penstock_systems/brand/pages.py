"""The pages of the brands in the dashboard: articles that wait for a review, articles by state, posts of unknown outcome."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import penstock as ps
from penstock.pages import ActionResult, Column, Input, Section
from penstock_systems.brand.app import brain, hands
from penstock_systems.brand.scalable_media import reading
from penstock_systems.brand.scalable_media.brands import find_brand, list_brands
from penstock_systems.brand.scalable_media.routes import Review, decide
from penstock_systems.brand.social_good.routes import LISTED, decide_post

Note = Annotated[str, Input("Note", "Why; kept with the decision", lines=2)]
WAITING = [
    Column("title", "article", link="/articles/{id}"),
    Column("brand_slug", "brand"),
    Column("word_count", "words", "count"),
    Column("flags", "flags", "prose", of=lambda row: _flags(row)),
    Column("updated_at", "waits since", "time"),
]
ARTICLES = [
    Column("title", "article", of=lambda row: row["title"] or row["keyword"], link="/articles/{id}"),
    Column("status", "status", "state"),
    Column("stage", "stage", "state"),
    Column("reason", "reason", "prose"),
    Column("created_at", "begun", "time"),
]
ARTICLE = [
    *(Column("status", "status", "state"), Column("stage", "stage", "state"), Column("keyword", "keyword")),
    *(Column("word_count", "words", "count"), Column("model", "model"), Column("reviewed_by", "reviewed by")),
    *(Column("description", "description", "prose"), Column("reason", "reason", "prose")),
    Column("created_at", "begun", "exact_time"),
]
POSTS = [
    Column("id", "post"),
    Column("state", "state", "state"),
    Column("due_at", "due", "text"),
    Column("error", "error", "prose"),
]


def _flags(row: Any) -> str:
    return "; ".join(f"{each['kind']}: {each['text']}" for each in row["flags"])


@brain.page("/reviews", "Reviews", WAITING, empty="No article waits for a review.", every=5, group="Brand")
async def show_reviews() -> list[dict[str, Any]]:
    return await reading.list_waiting()


@brain.page("/articles", "Articles", ARTICLES, empty="There is no such article.", every=10, group="Brand")
async def show_articles(
    brand: str = "", status: Literal["published", "draft", "archived", "failed"] = "published"
) -> list[dict[str, Any]]:
    slugs = [brand] if brand else await list_brands()
    found = []
    for slug in slugs[:20]:
        found += await reading.list_content((await find_brand(slug)).id, status=status, before="", most=50)
    return sorted(found, key=lambda each: str(each["created_at"]), reverse=True)[:50]


@brain.page("/articles/{id}", "Article", ARTICLE, group="Brand")
async def show_article(id: str) -> list[Section]:
    found = await reading.whole_content(id)
    if found is None:
        raise ps.HttpError(404, f"There is no article {id!r}.")
    flags = [Column("kind", "flag"), Column("text", "what", "prose")]
    sources = [Column("url", "source", "url"), Column("quote", "quote", "prose")]
    return [
        Section(title=found["title"] or found["keyword"], facts=found),
        Section(title="Flags", rows=found["flags"], columns=flags, empty="The check found nothing."),
        Section(title="Text", body=found["body"] or ""),
        Section(title="Sources", rows=found["citations"], columns=sources, empty="It cites nothing."),
    ]


async def _decide(id: str, action: Literal["approve", "edit", "reject"], by: str, **given: Any) -> ActionResult:
    await decide(id, action, Review(by=by, **given))
    return ActionResult(f"Decided: {action}. The run of the article continues.", "/reviews")


@show_article.action("Approve")
async def approve(id: str, request: ps.Request) -> ActionResult:
    return await _decide(id, "approve", request.principal)


async def text_of(id: str) -> dict[str, Any]:
    found = await reading.whole_content(id)
    return {} if found is None else {name: found[name] for name in ("title", "description", "body")}


@show_article.action("Edit and approve", fill=text_of)
async def edit(
    id: str,
    request: ps.Request,
    title: str,
    body: Annotated[str, Input("Text", lines=24)],
    description: Annotated[str, Input("Description", lines=2)] = "",
    note: Note = "",
) -> ActionResult:
    changed = {"title": title, "body": body.replace("\r\n", "\n"), "description": description or None}
    return await _decide(id, "edit", request.principal, note=note, **changed)


@show_article.action("Reject", confirm="The article is archived, and its keyword is not published.", dangerous=True)
async def reject(id: str, request: ps.Request, note: Note = "") -> ActionResult:
    return await _decide(id, "reject", request.principal, note=note)


@hands.page("/posts", "Posts", POSTS, empty="No post is in this state.", every=5, group="Brand")
async def show_posts(
    state: Literal["unknown", "due", "sending", "posted", "missed", "failed"] = "unknown",
) -> list[Any]:
    return await hands.db.rows(LISTED, state=state, most=100)


async def _post(id: str, action: Literal["lookup", "resend", "drop"]) -> str:
    await decide_post(id, action)
    return f"Sent {action} to {id}."


@show_posts.action("Look up", on="row")
async def look_up(id: str) -> str:
    return await _post(id, "lookup")


@show_posts.action("Send again", on="row", confirm="If it had arrived, it appears twice.")
async def resend(id: str) -> str:
    return await _post(id, "resend")


@show_posts.action("Drop", on="row", confirm="It is never sent.", dangerous=True)
async def drop(id: str) -> str:
    return await _post(id, "drop")
