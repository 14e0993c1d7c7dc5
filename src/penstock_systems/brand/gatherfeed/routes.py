"""The route of GatherFeed: research by its id, or by topic and project."""

from __future__ import annotations

import penstock as ps
from penstock_systems.brand.app import eyes
from penstock_systems.brand.bindings import Research
from penstock_systems.brand.gatherfeed.reading import find_research


@eyes.get("/api/v1/research", auth=ps.ServiceKey())
async def show_research(id: str = "", topic: str = "", project: str = "") -> Research:
    if not id and not (topic and project):
        raise ps.HttpError(422, "Name the research by id, or by topic and project.", field="id")
    found = await find_research(id=id, topic=topic, project=project)
    if found is None:
        raise ps.HttpError(404, f"There is no research {id or topic!r}.")
    return found
