"""`penstock brand`: ask for articles, review them, and decide about posts that nobody can look up."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import penstock as ps
from penstock.commands import Command, Noun, Output, fill, plain, table

T = TypeVar("T")


@click.group(cls=Noun)
@click.option("--apart", is_flag=True, help="The services run with `--apart`: each has a database of its own.")
def brand(apart: bool) -> None:
    """Articles and posts of brands: ask for them, review them, look at them.

    Start the system with `penstock run brand`. Run these commands in the same folder.

    Example:
      penstock brand research llc-tax "llc receipts" "llc deadlines"
      penstock brand reviews
      penstock brand review llc-tax-1caefe39cee6-538367 approve --by Ada
    """
    if apart:
        os.environ["PENSTOCK_APART"] = "1"


@brand.command("list", cls=Command)
@click.pass_obj
def list_(output: Output) -> None:
    """List the brands with what their agents have done.

    Example:
      penstock brand list
    """

    async def listed() -> list[dict[str, Any]]:
        from penstock_systems.brand.scalable_media.agent import agents
        from penstock_systems.brand.scalable_media.brands import list_brands

        found = []
        for slug in await list_brands():
            facts = await agents[slug].facts()
            row = {"brand": slug, "pending": len(facts["pending_research"]), "waiting": len(facts["waiting"])}
            totals = {"written": "content_generated", "published": "content_published", "posted": "social_posted"}
            found.append(row | {title: facts[f"total_{name}"] for title, name in totals.items()})
        return found

    _show(output, "brands", _brain(listed), "No brand is set. Add one in penstock.toml: [systems.brand.brands.SLUG].")


@brand.command(cls=Command)
@click.argument("slug")
@click.argument("keywords", nargs=-1, required=True)
@click.option("--priority", type=click.Choice(["high", "normal", "low"]), default="normal", show_default=True)
@click.option("--id", "request_id", default="", help="The same id sends nothing again.")
@click.pass_obj
def research(output: Output, slug: str, keywords: tuple[str, ...], priority: str, request_id: str) -> None:
    """Ask for an article about each keyword.

    Example:
      penstock brand research llc-tax "llc receipts" "llc deadlines"
    """

    async def asked() -> str:
        from penstock_systems.brand.scalable_media.agent import agents, check_keywords

        id = request_id or secrets.token_hex(6)
        chain: str = await agents[slug].request_research(slug, id, check_keywords(keywords), priority)  # type: ignore[arg-type]
        return chain

    chain = _brain(asked)
    output.show(
        {"correlation_id": chain, "brand": slug, "keywords": list(keywords)},
        lambda console: console.print(
            f"Asked for {len(keywords)} articles of {plain(slug)}. Follow them with:\n"
            f"  penstock trace '{plain(chain)}' brand.db",
            markup=False,
            soft_wrap=True,
        ),
    )


@brand.command(cls=Command)
@click.argument("slug")
@click.option("--status", type=click.Choice(["draft", "published", "archived", "failed"]), default="published")
@click.pass_obj
def articles(output: Output, slug: str, status: str) -> None:
    """List the articles of a brand, the newest first.

    Example:
      penstock brand articles llc-tax --status failed
    """

    async def listed() -> list[dict[str, Any]]:
        from penstock_systems.brand.scalable_media.brands import find_brand
        from penstock_systems.brand.scalable_media.reading import list_content

        rows = await list_content((await find_brand(slug)).id, status=status, before="", most=200)
        return [{"id": row["id"], "title": row["title"] or row["keyword"], "reason": row["reason"]} for row in rows]

    _show(output, "articles", _brain(listed), f"{slug} has no {status} article.")


@brand.command(cls=Command)
@click.pass_obj
def reviews(output: Output) -> None:
    """List the articles that wait for a person, the oldest first.

    Example:
      penstock brand reviews
    """

    async def listed() -> list[dict[str, Any]]:
        from penstock_systems.brand.scalable_media.reading import list_waiting

        return [
            {"id": each["id"], "title": each["title"], "words": each["word_count"], "flags": _flags(each["flags"])}
            for each in await list_waiting()
        ]

    _show(output, "reviews", _brain(listed), "No article waits for a review.")


@brand.command(cls=Command)
@click.argument("content_id")
@click.pass_obj
def show(output: Output, content_id: str) -> None:
    """Print an article with its flags and its sources.

    Example:
      penstock brand show llc-tax-1caefe39cee6-538367
    """

    async def found() -> dict[str, Any]:
        from penstock_systems.brand.scalable_media.reading import whole_content

        content = await whole_content(content_id)
        if content is None:
            raise ps.errors.BadParameter(
                f"There is no content {content_id!r}. List those to review: penstock brand reviews"
            )
        return content

    content = _brain(found)
    head = f"{content['title']}\n{content['status']}, {content['stage']}, {content['word_count']} words\n"
    flags = "".join(f"\n! {each['kind']}: {each['text']}" for each in content["flags"])
    output.show(
        content,
        lambda console: console.print(
            plain(f"{head}{flags}\n\n{content['body']}"), markup=False, highlight=False, soft_wrap=True
        ),
    )


@brand.command(cls=Command)
@click.argument("content_id")
@click.argument("action", type=click.Choice(["approve", "edit", "reject"]))
@click.option("--by", required=True, help="The person who decides.")
@click.option("--note", default="", help="Why.")
@click.option("--body", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The new text of an edit.")
@click.pass_obj
def review(output: Output, content_id: str, action: str, by: str, note: str, body: Path | None) -> None:
    """Decide about an article. The first decision counts, and is kept with its person.

    Example:
      penstock brand review llc-tax-1c-53 edit --by Ada --body better.md
    """
    if (action == "edit") != (body is not None):
        raise click.UsageError("An edit needs --body FILE, and only an edit takes it.")

    text = None if body is None else body.read_text("utf-8")

    async def decided() -> dict[str, str]:
        from penstock_systems.brand.app import brain
        from penstock_systems.brand.scalable_media.routes import Review, decide

        async with brain.unit():
            return await decide(content_id, action, Review(by=by, note=note, body=text))  # type: ignore[arg-type]

    try:
        done = _brain(decided)
    except ps.HttpError as error:
        raise ps.errors.BadParameter(str(error)) from error
    output.show(done, lambda console: console.print(f"Decided: {action} {plain(content_id)}.", markup=False))


@brand.command(cls=Command)
@click.argument("content_id")
@click.pass_obj
def archive(output: Output, content_id: str) -> None:
    """Take an article out of its brand. Its page and its posts stay where they are.

    Example:
      penstock brand archive llc-tax-1caefe39cee6-538367
    """

    async def sent() -> None:
        from penstock_systems.brand.app import brain
        from penstock_systems.brand.scalable_media.routes import archive_content

        async with brain.unit():
            await archive_content(content_id)

    try:
        _brain(sent)
    except ps.HttpError as error:
        raise ps.errors.BadParameter(str(error)) from error
    output.show(
        {"content_id": content_id},
        lambda console: console.print(f"Asked to archive {plain(content_id)}.", markup=False),
    )


@brand.command(cls=Command)
@click.option("--state", default="unknown", show_default=True, help="due, sending, posted, unknown, missed or failed.")
@click.pass_obj
def posts(output: Output, state: str) -> None:
    """List posts by their state. The unknown ones wait for `penstock brand post`.

    Example:
      penstock brand posts --state missed
    """

    async def listed() -> list[dict[str, Any]]:
        from penstock_systems.brand.app import hands
        from penstock_systems.brand.social_good.routes import LISTED

        rows = await hands.db.rows(LISTED, state=state, most=200)
        return [{"id": row.id, "state": row.state, "due": row.due_at, "error": row.error} for row in rows]

    _show(output, "posts", _hands(listed), f"No post is {state}.")


@brand.command(cls=Command)
@click.argument("post_id")
@click.argument("action", type=click.Choice(["lookup", "resend", "drop"]))
@click.pass_obj
def post(output: Output, post_id: str, action: str) -> None:
    """Say what becomes of a post whose outcome is unknown.

    Example:
      penstock brand post llc-tax-1caefe39cee6-538367/linkedin lookup
    """

    async def decided() -> None:
        from penstock_systems.brand.app import hands
        from penstock_systems.brand.social_good.routes import decide_post

        async with hands.unit():
            await decide_post(post_id, action)  # type: ignore[arg-type]

    try:
        _hands(decided)
    except ps.HttpError as error:
        raise ps.errors.BadParameter(str(error)) from error
    output.show({"id": post_id, "action": action}, lambda console: console.print(f"Sent {action} to {plain(post_id)}."))


def _brain(work: Callable[[], Awaitable[T]]) -> T:
    from penstock_systems.brand.stages import brain

    return asyncio.run(_within(brain, work))


def _hands(work: Callable[[], Awaitable[T]]) -> T:
    from penstock_systems.brand.stages import hands

    return asyncio.run(_within(hands, work))


async def _within(service: ps.App, work: Callable[[], Awaitable[T]]) -> T:
    async with service:
        return await work()


def _flags(flags: list[dict[str, str]]) -> str:
    return "; ".join(f"{each['kind']}: {each['text']}" for each in flags) or "-"


def _show(output: Output, name: str, rows: list[dict[str, Any]], none: str) -> None:
    columns = list(rows[0]) if rows else []

    def draw(console: Any) -> None:
        if not rows:
            console.print(none, markup=False)
            return
        titles = [(each.replace("_", " "), "right" if isinstance(rows[0][each], int) else "left") for each in columns]
        console.print(fill(table(*titles), ([plain(str(row[each])) for each in columns] for row in rows)))

    output.show({name: rows}, draw)
