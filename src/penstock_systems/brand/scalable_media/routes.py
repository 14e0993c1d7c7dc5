"""The routes of Scalable Media: brands, requests for research, articles and their review."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

import msgspec

import penstock as ps
from penstock_systems.brand.app import brain, settings, wishes
from penstock_systems.brand.bindings import Content
from penstock_systems.brand.messages import BrandAudit, ContentArchive, Priority
from penstock_systems.brand.rules.articles import Article, read_article
from penstock_systems.brand.scalable_media.agent import agents, check_keywords
from penstock_systems.brand.scalable_media.brands import Known, UnknownBrand, find_brand, list_brands, save_brand
from penstock_systems.brand.scalable_media.content import Decision, stored_article
from penstock_systems.brand.scalable_media.reading import find_content, list_content, list_waiting, whole_content
from penstock_systems.brand.settings import HOST, SLUG, Brand, problem_of

BRAND = "select sm_brands.slug from sm_content join sm_brands on sm_brands.id = sm_content.brand_id where sm_content.id = :id"
Most = Annotated[int, msgspec.Meta(ge=1, le=200)]


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    keywords: list[str]
    priority: Priority = "normal"
    request_id: str = ""


class Review(msgspec.Struct, forbid_unknown_fields=True):
    """`by` is the person. An edit gives the fields that change; the others stay."""

    by: str
    note: str = ""
    title: str | None = None
    description: str | None = None
    body: str | None = None
    key_points: list[str] | None = None


@brain.get("/v1/brands")
async def brands() -> list[str]:
    return await list_brands()


@brain.get("/v1/brands/{slug}")
async def show_brand(slug: str) -> dict[str, object]:
    known = await _known(slug)
    return {"slug": slug, "settings": msgspec.to_builtins(known.brand), "agent": await agents[slug].facts()}


@brain.put("/v1/brands/{slug}")
async def put_brand(slug: str, brand: Brand) -> str:
    """Add a brand or change one. Those of penstock.toml are changed there."""
    if not SLUG.fullmatch(slug):
        raise ps.HttpError(
            422, f"slug: {slug!r} has other characters than a to z, 0 to 9 and single dashes.", field="slug"
        )
    if not HOST.fullmatch(brand.fqdn):
        raise ps.HttpError(422, f"fqdn: {brand.fqdn!r} is not the name of a host.", field="fqdn")
    if problem := problem_of(settings, slug, brand):
        raise ps.HttpError(422, f"{slug}: {problem}.")
    await save_brand(slug, brand)
    return slug


@brain.post("/v1/brands/{slug}/research", auth=ps.ServiceKey(), status=202)
async def request_research(slug: str, wanted: Wanted, request: ps.Request) -> dict[str, str]:
    """Have articles about these keywords researched. The same request id sends nothing again."""
    await _known(slug)
    check_keywords(wanted.keywords)
    request_id = wanted.request_id or request.headers.get("idempotency-key") or secrets.token_hex(6)
    correlation = await agents[slug].request_research(slug, request_id, wanted.keywords, wanted.priority)
    return {"correlation_id": correlation}


@brain.get("/v1/brands/{slug}/content")
async def contents(
    slug: str,
    status: Literal["draft", "published", "archived", "failed"] = "published",
    before: str = "",
    limit: Most = 50,
) -> list[dict[str, object]]:
    known = await _known(slug)
    return await list_content(known.id, status=status, before=before, most=limit)


@brain.get("/v1/reviews")
async def reviews(limit: Most = 100) -> list[dict[str, object]]:
    """The articles that wait for a person, the oldest first."""
    return await list_waiting(limit)


@brain.get("/v1/content/{id}")
async def show_content(id: str) -> dict[str, object]:
    found = await whole_content(id)
    if found is None:
        raise ps.HttpError(404, f"There is no content {id!r}.")
    return found


@brain.get("/v1/content/{id}/published", auth=ps.ServiceKey())
async def published_content(id: str) -> Content:
    """The article as the services read it that publish it and post about it."""
    found = await find_content(id)
    if found is None:
        raise ps.HttpError(404, f"There is no written content {id!r}.")
    return found


@brain.post("/v1/content/{id}/archive", status=202)
async def archive(id: str) -> str:
    """Take an article out of the brand: its keyword may be written about again. Pages and posts stay where they are."""
    await archive_content(id)
    return id


async def archive_content(id: str) -> None:
    """Send the command to archive an article, when the current unit commits."""
    if await brain.db.value(BRAND, id=id) is None:
        raise ps.HttpError(404, f"There is no content {id!r}.")
    wishes.send(ContentArchive(content_id=id))


@brain.post("/v1/brands/{slug}/audit", status=202)
async def audit_brand(slug: str) -> str:
    """Audit a brand now, beside its weekly audit."""
    await _known(slug)
    return wishes.send(BrandAudit(brand_slug=slug))


@brain.post("/v1/content/{id}/{action}")
async def review(id: str, action: Literal["approve", "edit", "reject"], given: Review) -> dict[str, str]:
    """Decide about an article that waits for a review. The first decision counts."""
    return await decide(id, action, given)


async def decide(id: str, action: Literal["approve", "edit", "reject"], given: Review) -> dict[str, str]:
    """Have the agent of the brand save a decision, which continues the run of the article."""
    if not given.by.strip():
        raise ps.HttpError(422, "by: name the person who decides.", field="by")
    slug = await brain.db.value(BRAND, id=id)
    if slug is None:
        raise ps.HttpError(404, f"There is no content {id!r}.")
    article = await _edited(id, given) if action == "edit" else None
    await agents[slug].review(id, Decision(action=action, by=given.by, note=given.note, article=article))
    return {"content_id": id, "decision": action}


async def _edited(id: str, given: Review) -> Article:
    changes = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not None}
    before = msgspec.to_builtins(await stored_article(id))
    try:
        return read_article({name: changes.get(name, value) for name, value in before.items()}, of="The edited text")
    except ps.Unparsable as error:
        raise ps.HttpError(422, str(error), field="body") from error


async def _known(slug: str) -> Known:
    try:
        return await find_brand(slug)
    except UnknownBrand as error:
        raise ps.HttpError(404, str(error)) from error
