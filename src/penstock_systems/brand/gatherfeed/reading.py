"""Research as the other services read it."""

from __future__ import annotations

import json

import msgspec

from penstock_systems.brand.app import eyes
from penstock_systems.brand.bindings import Research
from penstock_systems.brand.rules.checking import Source

BY_ID = "select id, topic, title, content from gf_research where id = :id"
BY_TOPIC = "select id, topic, title, content from gf_research where topic = :topic and project = :project"


async def find_research(*, id: str = "", topic: str = "", project: str = "") -> Research | None:
    """Return the research with this id, or about this topic for this project."""
    row = await (eyes.db.first(BY_ID, id=id) if id else eyes.db.first(BY_TOPIC, topic=topic, project=project))
    if row is None:
        return None
    content = json.loads(row.content)
    sources = msgspec.convert(content["sources"], list[Source])
    return Research(id=row.id, topic=row.topic, title=row.title, summary=content["summary"], sources=sources)
