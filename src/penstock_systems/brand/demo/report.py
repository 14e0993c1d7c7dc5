"""The page at the end of the week: what was promised, what the fakes counted, what each article cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from penstock_systems.brand.app import brain, hands
from penstock_systems.brand.demo.week import BUDGET, Week, costs, deliveries
from penstock_systems.brand.messages import (
    ContentFailed,
    ContentGenerated,
    ContentPublished,
    ResearchCompleted,
    ResearchFailed,
    SocialPosted,
)
from penstock_systems.brand.rules.texts import article_tag

ARTICLES = """
select sm_content.id, sm_brands.slug as brand, sm_content.keyword, sm_content.status, sm_content.stage, sm_content.title,
  sm_content.slug, sm_content.flags, sm_content.reviewed_by, sm_content.reason, sm_content.published_at,
  sm_content.published_to
from sm_content join sm_brands on sm_brands.id = sm_content.brand_id
order by sm_content.created_at, sm_content.id
"""
POSTS = "select state, count(*) as posts from sg_posts group by state order by state"
FAILURES = "select kind, keyword, reason from sm_failures order by failed_at"
REVIEWS = "select content_id, decision, reviewer, decided_at from sm_reviews order by decided_at"
WAIT_SECONDS = 1_800  # a longer wait between two messages is shown
WISHES = 6  # commands that ask for research


async def facts_of(week: Week, mode: str, seconds: float) -> dict[str, Any]:
    """Return everything the page shows. `figures` are the system's own counts, `truth` those of the fakes."""
    delivered, price = deliveries(week), await costs()
    articles = [
        row.asdict()
        | {
            "usd": price.get(article_tag(row.brand, row.keyword), 0.0),
            "flags": json.loads(row.flags),
            "urls": [each["url"] for each in json.loads(row.published_to)],
        }
        for row in await brain.db.rows(ARTICLES)
    ]
    reviews = [row.asdict() for row in await brain.db.rows(REVIEWS)]
    failed = [row.asdict() for row in await brain.db.rows(FAILURES)]
    posts = {row.state: row.posts for row in await hands.db.rows(POSTS)}
    published = [article for article in articles if article["status"] == "published"]
    figures = {
        "articles": len(articles),
        "published": len(published),
        "rejected": sum(article["stage"] == "rejected" for article in articles),
        "failed": sum(article["stage"] == "failed" for article in articles)
        + sum(each["kind"] == "research" for each in failed),
        "reviewed": len(reviews),
        "edited": sum(review["decision"] == "edit" for review in reviews),
        "budget": BUDGET,
        "posted": posts.get("posted", 0),
        "missed": posts.get("missed", 0),
        "posts_unknown": posts.get("unknown", 0) + posts.get("sending", 0),
        "posts_failed": posts.get("failed", 0),
        "messages": len(delivered),
        "messages_predicted": predicted(delivered),
        "usd": round(sum(price.values()), 6),
        "usd_an_article": round(sum(price.values()) / max(1, len(published)), 6),
    }
    truth = {
        "posts_arrived": len(week.social.arrivals.all),
        "posts_doubled": len(week.social.doubled()),
        "searches": week.search.requests,
        "chats": week.chat.book.requests,
    }
    followed = next((article for article in published if article["reviewed_by"]), published[0] if published else None)
    return {
        "mode": mode,
        "seconds": round(seconds, 1),
        "figures": figures,
        "truth": truth,
        "articles": articles,
        "failed": failed,
        "days": [{"name": day.name, **vars(day)} for day in week.days],
        "followed": followed,
        "timeline": timeline(delivered, followed, reviews) if followed else [],
    }


def predicted(delivered: Sequence[tuple[datetime, str, Any]]) -> int:
    """Return how many messages the flow must have, from what became of each keyword."""
    payloads = [payload for _, _, payload in delivered]

    def count(kind: type) -> int:
        return sum(isinstance(payload, kind) for payload in payloads)

    researched = count(ResearchCompleted) + count(ResearchFailed)
    # For an article: the event that it is written, one command to publish, the event that it is, one command to post.
    written, published = count(ContentGenerated), count(ContentPublished)
    return WISHES + 2 * researched + count(ContentFailed) + 2 * written + 2 * published + count(SocialPosted)


def timeline(
    delivered: Sequence[tuple[datetime, str, Any]], article: dict[str, Any], reviews: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the messages of one article and the decision of its reviewer, with the waits between them."""
    mine = [
        (at, service, type(payload).__message_type__, getattr(payload, "platform", ""))
        for at, service, payload in delivered
        if getattr(payload, "content_id", "") == article["id"]
        or (getattr(payload, "keyword", "") == article["keyword"] and not hasattr(payload, "content_id"))
    ]
    for review in reviews:
        if review["content_id"] == article["id"]:
            decided = datetime.fromisoformat(review["decided_at"]).replace(tzinfo=UTC)
            mine.append((decided, review["reviewer"], review["decision"], f"by {review['reviewer']}"))
    mine.sort(key=lambda each: each[0])
    first, last = mine[0][0], mine[-1][0]
    span = max(1.0, (last - first).total_seconds())
    found, before = [], first
    for at, service, kind, detail in mine:
        waited, before = (at - before).total_seconds(), at
        found.append(
            {
                "at": f"{at:%a %H:%M:%S}",
                "service": service,
                "type": kind,
                "detail": detail,
                "waited": f"after {waited / 3_600:.1f} hours" if waited > WAIT_SECONDS else "",
                "share": round(100 * (at - first).total_seconds() / span, 2),
            }
        )
    return found


def write_report(folder: Path, runs: Sequence[dict[str, Any]]) -> Path:
    """Write report.json and report.html of all runs; the first one's figures are the page's."""
    (folder / "report.json").write_text(
        json.dumps({"figures": runs[0]["figures"], "truth": runs[0]["truth"], "runs": runs}, indent=1), encoding="utf-8"
    )
    pages = Environment(
        loader=PackageLoader("penstock_systems.brand.demo", "templates"), autoescape=True, undefined=StrictUndefined
    )
    page = folder / "report.html"
    page.write_text(pages.get_template("report.html").render(runs=runs), encoding="utf-8")
    return page
