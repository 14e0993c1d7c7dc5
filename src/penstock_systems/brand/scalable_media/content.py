"""The content workflow: from the research to an approved article, with a check by another step than the writer."""

from __future__ import annotations

import difflib
import json
from typing import Literal

import msgspec

import penstock as ps
from penstock_systems.brand.app import brain, events, written_articles
from penstock_systems.brand.bindings import read_research
from penstock_systems.brand.messages import ContentFailed, ContentGenerated
from penstock_systems.brand.rules.articles import Article, Citation
from penstock_systems.brand.rules.checking import Flag, check
from penstock_systems.brand.rules.texts import slug_of
from penstock_systems.brand.scalable_media.brands import find_brand
from penstock_systems.brand.scalable_media.writing import write_article

REVIEW_DAYS = 7
EXISTING_MAX = 200  # articles of the brand that a new one is compared with
DIFFERENCE_CHARACTERS_MAX = 100_000
REASON_CHARACTERS_MAX = 500

STORE = """
update sm_content
set title = :title, slug = :slug, description = :description, key_points = :key_points, citations = :citations,
  body = :body, content_html = :html, word_count = :word_count, updated_at = :now
where id = :id
"""
STORE_MODEL = "update sm_content set model = :model, prompt_hash = :prompt_hash where id = :id"
STORED = "select title, description, body, key_points, citations from sm_content where id = :id"
EXISTING = brain.db.hot(
    """
select title, body from sm_content
where brand_id = :brand_id and status in ('draft', 'published') and created_at >= '' and id <> :id and body <> ''
order by created_at desc
limit :most
"""
)
CHECKED = """
update sm_content set flags = :flags, stage = :stage, updated_at = :now
where id = :id and status = 'draft'
"""
REVIEWED = "update sm_content set stage = 'approved', reviewed_by = :by, updated_at = :now where id = :id"
REJECTED = """
update sm_content set status = 'archived', stage = 'rejected', reason = :reason, reviewed_by = :by, updated_at = :now
where id = :id
"""
SAVE_DIFFERENCE = "update sm_reviews set difference = :difference where content_id = :id"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said about an article. An edit comes with the whole article as it shall be."""

    action: Literal["approve", "edit", "reject"]
    by: str
    note: str = ""
    article: Article | None = None


async def fetch_research(research_id: str) -> str:
    """Make sure that the research is there, and return its title. An error of GatherFeed fails this step."""
    return (await read_research(research_id)).title


class Draft(msgspec.Struct, frozen=True):
    article: Article
    model: str
    prompt_hash: str


async def generate_article(slug: str, keyword: str, research_id: str) -> Draft:
    known, research = await find_brand(slug), await read_research(research_id)
    return Draft(*await write_article(slug, known.brand, keyword, research.sources))


async def store_content(content_id: str, draft: Draft) -> None:
    """Save the article. As it was written it stays in the bucket, also after a person has edited it."""
    await written_articles.put(
        f"articles/{content_id}.json", msgspec.json.encode(draft), content_type="application/json"
    )
    await _store(content_id, draft.article)
    brain.db.write(STORE_MODEL, id=content_id, model=draft.model, prompt_hash=draft.prompt_hash)


async def check_article(content_id: str, slug: str, research_id: str) -> bool:
    """Save what a person should look at, and return whether one has to."""
    known, research, article = (
        await find_brand(slug),
        await read_research(research_id),
        await stored_article(content_id),
    )
    rows = await brain.db.rows(EXISTING, brand_id=known.id, id=content_id, most=EXISTING_MAX)
    existing = {row.title: row.body for row in rows}
    flags = await ps.in_thread(_flags, article, research.sources, existing, known.brand.banned)
    waits = known.brand.review == "always" or (known.brand.review == "when_flagged" and bool(flags))
    shown = msgspec.json.encode(flags).decode()
    brain.db.write(
        CHECKED, id=content_id, flags=shown, stage="review" if waits else "approved", now=await brain.db.now()
    )
    return waits


def _flags(*given: object) -> list[Flag]:
    article, sources, existing, banned = given
    return check(article, sources, existing=existing, banned=banned)  # type: ignore[arg-type]


async def apply_decision(content_id: str, slug: str, keyword: str, decision: Decision) -> bool:
    """Save what a person decided, and return whether the article goes on."""
    now = await brain.db.now()
    if decision.action == "reject":
        reason = f"rejected by {decision.by}{': ' if decision.note else ''}{decision.note}"
        brain.db.write(REJECTED, id=content_id, reason=reason, by=decision.by, now=now)
        events.send(ContentFailed(brand_slug=slug, content_id=content_id, keyword=keyword, reason=reason))
        return False
    if decision.article is not None:
        before = (await stored_article(content_id)).body
        lines = difflib.unified_diff(
            before.splitlines(), decision.article.body.splitlines(), "written", "edited", lineterm=""
        )
        brain.db.write(SAVE_DIFFERENCE, id=content_id, difference="\n".join(lines)[:DIFFERENCE_CHARACTERS_MAX])
        await _store(content_id, decision.article)
    brain.db.write(REVIEWED, id=content_id, by=decision.by, now=now)
    return True


async def emit_event(content_id: str, slug: str, keyword: str) -> None:
    article = await stored_article(content_id)
    count = article.word_count()
    events.send(ContentGenerated(brand_slug=slug, content_id=content_id, keyword=keyword, word_count=count))


async def fail(content_id: str, slug: str, keyword: str, reason: str) -> None:
    events.send(ContentFailed(brand_slug=slug, content_id=content_id, keyword=keyword, reason=reason))


@brain.workflow(name="content-workflow", retries=3)
async def content(run: ps.Run, content_id: str, slug: str, keyword: str, research_id: str) -> str:
    """Wait for the agent's `go`, write, check, let a person decide where one has to, and hand over to publishing."""
    await run.wait_for("go")
    try:
        await run.step("fetch-research", fetch_research, research_id)
        draft = await run.step("generate-article", generate_article, slug, keyword, research_id)
        await run.step("store-content", store_content, content_id, draft)
        waits = await run.step("check-article", check_article, content_id, slug, research_id)
    except ps.StepFailed as error:
        await run.step("fail", fail, content_id, slug, keyword, str(error)[:REASON_CHARACTERS_MAX])
        return "failed"
    if waits:
        try:
            decision = await run.wait_for("review", Decision, timeout=REVIEW_DAYS * 86_400)
        except ps.TimedOut:
            decision = Decision(action="reject", by="nobody", note=f"no decision within {REVIEW_DAYS} days")
        if not await run.step("apply-decision", apply_decision, content_id, slug, keyword, decision):
            return "rejected"
    await run.step("emit-event", emit_event, content_id, slug, keyword)
    return "generated"


async def run_state(content_id: str) -> tuple[str, str | None]:
    """Return the state of an article's run, or `gone` if there is none, and its error."""
    try:
        found = await content[content_id].status()
    except ps.errors.NoSuchRun:
        return "gone", None
    return found.state, found.error


async def stored_article(content_id: str) -> Article:
    row = await brain.db.first(STORED, id=content_id)
    if row is None:
        raise ps.Gone(f"There is no content {content_id!r}.")
    citations = [Citation(**each) for each in json.loads(row.citations)]
    return Article(
        title=row.title,
        description=row.description,
        body=row.body,
        key_points=json.loads(row.key_points),
        citations=citations,
    )


async def _store(content_id: str, article: Article) -> None:
    brain.db.write(
        STORE,
        id=content_id,
        title=article.title,
        slug=f"{slug_of(article.title)}-{content_id[-6:]}",
        description=article.description,
        key_points=json.dumps(article.key_points),
        citations=msgspec.json.encode(article.citations).decode(),
        body=article.body,
        html=article.html(),
        word_count=article.word_count(),
        now=await brain.db.now(),
    )
