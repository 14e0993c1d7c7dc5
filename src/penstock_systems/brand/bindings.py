"""What the services read of each other: GET only. Business actions are messages."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

import penstock as ps
from penstock_systems.brand.app import BRAIN, EYES, brain
from penstock_systems.brand.rules.checking import Source
from penstock_systems.brand.settings import Brand

T = TypeVar("T")


class Research(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    topic: str
    title: str
    summary: str
    sources: list[Source]


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """An article as Pages-Plus and Social-Good see it."""

    id: str
    brand_slug: str
    brand: Brand
    title: str
    slug: str
    description: str
    key_points: list[str]
    html: str
    model: str
    reviewed_by: str
    sources: list[str]


async def read_research(research_id: str) -> Research:
    """Ask GatherFeed. Research that is not there yet is `Unavailable`, so the step that needs it is retried."""
    return await _read(brain.bindings[EYES], "/api/v1/research", Research, research_id, id=research_id)


async def read_content(caller: ps.App, content_id: str) -> Content:
    """Ask Scalable Media. Content that is not there yet is `Unavailable`, so the message that needs it waits."""
    return await _read(caller.bindings[BRAIN], f"/v1/content/{content_id}/published", Content, content_id)  # type: ignore[attr-defined]


async def _read(binding: Any, path: str, shape: type[T], subject: str, /, **query: str) -> T:
    try:
        answer = await binding.get(path, **query)
    except ps.Gone as error:
        raise ps.Unavailable(f"{binding.target} does not show {subject!r} yet.") from error
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as error:
        raise ps.Unparsable(f"{binding.target} answered {path} with another shape: {error}.") from error
