"""The HTTP API: `/v1/sources`, `/v1/listings`, `/v1/homes`, `/v1/searches`."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import msgspec

import penstock as ps
from penstock.connect import Source
from penstock_systems.rentals import feeds, homes, reading, searches
from penstock_systems.rentals.app import app, db
from penstock_systems.rentals.searches import Filter, NewSearch

Most = Annotated[int, msgspec.Meta(ge=1, le=500)]


class Other(msgspec.Struct, forbid_unknown_fields=True):
    """The other home, or the listing that is taken out."""

    id: str


class Marked(msgspec.Struct, forbid_unknown_fields=True):
    on: bool = True


@app.get("/v1/sources")
async def list_sources() -> list[dict[str, Any]]:
    return [reading.source_shown(row) for row in await app.sources.list()]


@app.get("/v1/sources/{name}/runs")
async def list_runs(name: str, limit: Most = 20) -> list[dict[str, Any]]:
    return [row.asdict() for row in await find_source(name).runs(limit)]


@app.post("/v1/sources/{name}/enable", auth="app:operate")
async def enable(name: str) -> dict[str, Any]:
    await find_source(name).enable()
    return {"source": name, "enabled": True}


@app.post("/v1/sources/{name}/disable", auth="app:operate")
async def disable(name: str) -> dict[str, Any]:
    await find_source(name).disable()
    return {"source": name, "enabled": False}


@app.post("/v1/sources/{name}/run", auth="app:operate")
async def run(name: str) -> dict[str, Any]:
    await find_source(name).run_soon()
    return {"source": name, "due": True}


@app.post("/v1/sources/{name}/reset", auth="app:operate")
async def reset(name: str) -> dict[str, Any]:
    await find_source(name).reset()
    return {"source": name, "cursor": None}


def find_source(name: str) -> Source:
    """Return the source of this name, or answer 404."""
    found = app.sources.get(name)
    if found is None:
        raise ps.HttpError(404, f"There is no source {name[:60]!r}.")
    return found


@app.get("/v1/listings")
async def list_listings(
    near: str | None = None,
    max_price: float | None = None,
    rooms: float | None = None,
    since: str | None = None,
    deal: Literal["rent", "sublet", "swap", "any"] = "rent",
    format: Literal["json", "geojson", "csv"] = "json",
    limit: Most = 100,
) -> Any:
    wanted = Filter(deal=deal, max_price=max_price, min_rooms=rooms, max_rooms=rooms, near=read_near(near))
    rows = await reading.find_listings(wanted, since, limit)
    match format:
        case "geojson":
            return ps.Reply(feeds.geojson(rows), "application/geo+json")
        case "csv":
            return ps.Reply(feeds.csv_text(rows), "text/csv; charset=utf-8")
        case _:
            return {"listings": [reading.listing_shown(row) for row in rows]}


def read_near(text: str | None) -> tuple[float, float, float] | None:
    if not text:
        return None
    try:
        lat, lon, kilometres = (float(part) for part in text.split(","))
    except ValueError as error:
        raise ps.HttpError(
            422, "near is latitude,longitude,kilometres, such as 52.23,21.01,3.", field="near"
        ) from error
    return lat, lon, kilometres


@app.get("/v1/homes")
async def list_homes(starred: bool = True, hidden: bool = False, limit: Most = 100) -> list[dict[str, Any]]:
    """Return the homes that a person marked."""
    rows = await db.rows(reading.MARKED, starred=int(starred), hidden=int(hidden), most=limit)
    return [row.asdict() for row in rows]


@app.get("/v1/homes/{id}")
async def show_home(id: str) -> dict[str, Any]:
    found = await reading.find_home(id)
    if found is None:
        raise ps.HttpError(404, f"There is no home {id[:60]!r}.")
    return found


@app.post("/v1/homes/{id}/join")
async def join(id: str, given: Other) -> dict[str, Any]:
    for each in (id, given.id):
        await show_home(each)
    if id == given.id:
        raise ps.HttpError(422, "A home cannot be joined with itself.", field="id")
    await homes.unite(id, given.id)
    return {"home": id}


@app.post("/v1/homes/{id}/split")
async def split(id: str, given: Other) -> dict[str, Any]:
    await show_home(id)
    made = await homes.split(id, given.id)
    if made == id:
        raise ps.HttpError(422, "The home has no such listing, or only this one.", field="id")
    return {"home": made}


@app.post("/v1/homes/{id}/hide")
async def hide(id: str, given: Marked) -> dict[str, Any]:
    db.write("update homes set hidden = :on where id = :id", id=id, on=int(given.on), expect=1)
    return {"home": id, "hidden": given.on}


@app.post("/v1/homes/{id}/star")
async def star(id: str, given: Marked) -> dict[str, Any]:
    db.write("update homes set starred = :on where id = :id", id=id, on=int(given.on), expect=1)
    return {"home": id, "starred": given.on}


@app.post("/v1/searches", status=201)
async def create_search(given: NewSearch, request: ps.Request) -> dict[str, Any]:
    key = request.headers.get("idempotency-key") or f"{given.person}\n{given.name}"
    id = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    await searches.create(given, id)
    found = await reading.meet_now(id, given.filter)
    return {"id": id, "matches": found}


@app.get("/v1/searches")
async def list_searches() -> list[dict[str, Any]]:
    return [msgspec.to_builtins(each) for each in await searches.every()]


@app.get("/v1/searches/{id}")
async def show_search(id: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(await searches.find(id))
    return found


@app.put("/v1/searches/{id}")
async def change_search(id: str, given: NewSearch) -> dict[str, Any]:
    await searches.find(id)
    await searches.create(given, id)
    return {"id": id, "matches": await reading.meet_now(id, given.filter)}


@app.delete("/v1/searches/{id}")
async def delete_search(id: str) -> dict[str, Any]:
    await searches.delete(id)
    return {"id": id, "deleted": True}


@app.post("/v1/searches/{id}/preview")
async def preview(id: str, limit: Most = 20) -> dict[str, Any]:
    search = await searches.find(id)
    rows = await reading.find_listings(search.filter, None, limit)
    return {"search": id, "listings": [reading.listing_shown(row) for row in rows]}


@app.get("/v1/searches/{id}/feed.rss")
async def feed_rss(id: str) -> ps.Reply:
    search = await searches.find(id)
    rows = await reading.find_listings(search.filter, None, 100)
    return ps.Reply(feeds.rss(search.name, rows), "application/rss+xml; charset=utf-8")


@app.get("/v1/searches/{id}/feed.ics")
async def feed_ics(id: str) -> ps.Reply:
    search = await searches.find(id)
    rows = await reading.find_listings(search.filter, None, 500)
    return ps.Reply(feeds.ics(search.name, rows, await db.now()), "text/calendar; charset=utf-8")
