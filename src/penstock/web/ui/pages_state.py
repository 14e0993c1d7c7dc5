"""The pages of objects, paces and alerts: what objects keep, how fast services are asked, and which conditions hold."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from penstock.control.pace import AdaptivePace
from penstock.control.status import status as controller_status
from penstock.control.zoning import ZonesPace
from penstock.metrics.asking import PLATFORM, named, question
from penstock.model.errors import PenstockError, StoreError
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views import paces as view
from penstock.views.status import conditions
from penstock.views.view import Column, Row, View, micros_of
from penstock.web.ui.page import LISTED, SQL, Facts, NoSuchThing, Page, PageLook

NOUNS = load("penstock.views", "nouns.sql")
DAY = 86_400_000_000
TICKS_SHOWN = 50

RATES_MAX = 300
RATES = load("penstock.web.ui", "points.sql")["rates"]

OBJECTS = View(
    "objects",
    (
        Column("class", "class"),
        Column("name", "object"),
        Column("saved_at", "saved", "time"),
        Column("bytes", "size", "bytes"),
    ),
    empty="There is no object.",
)


async def objects(look: PageLook) -> Facts:
    wanted, first = look.text("class"), look.query.get("from", "")
    if wanted is None:
        bound = {"class": look.query.get("from_class", ""), "name": first}
        rows = await look.reading.rows(SQL["objects"], most=LISTED + 1, **bound)
    else:
        rows = await look.reading.rows(SQL["objects_of_class"], most=LISTED + 1, **{"class": wanted, "name": first})
    found = [await _object(look, row) for row in rows[:LISTED]]
    more = rows[LISTED] if len(rows) > LISTED else None
    following = None if more is None else {"from_class": more["class"], "from": more["name"]}
    return {"objects": found, "class": wanted, "next": following}


async def _object(look: PageLook, row: Any) -> Row:
    alarms = await look.reading.rows(SQL["alarm_of"], name=f"{row['class']}/{row['name']}")
    return {
        "class": row["class"],
        "name": row["name"],
        "owner": row.owner,
        "alarm_at": iso_z(alarms[0].due) if alarms else None,
        "alarm_lost": bool(row.alarm_lost),
        "saved_at": iso_z(row.saved_at),
        "bytes": row.bytes,
    }


async def object_(look: PageLook) -> Facts:
    kind, name = look.parts["class"], look.parts["name"]
    rows = await look.reading.rows(SQL["object_state"], **{"class": kind, "name": name})
    if not rows:
        raise NoSuchThing(f"There is no object {kind}/{name}. One is created when a method of it is first called.")
    (row,) = rows
    alarms = await look.reading.rows(SQL["alarm_of"], name=f"{kind}/{name}")
    return {
        "object": {
            "class": kind,
            "name": name,
            "owner": row.owner,
            "epoch": row.epoch,
            "hint": row.hint,
            "alarm_at": iso_z(alarms[0].due) if alarms else None,
            "alarm_lost": bool(row.alarm_lost),
            "saved_at": iso_z(row.saved_at),
            "created_at": iso_z(row.created_at),
            "bytes": len(bytes(row.state)),
        },
        "state": msgspec.Raw(bytes(row.state)),
    }


# -- paces --------------------------------------------------------------------------------------------------


async def paces(look: PageLook) -> Facts:
    return {"paces": await view.rows(look.reading)}


async def pace(look: PageLook) -> Facts:
    name = look.parts["name"]
    found = [row for row in await view.rows(look.reading) if row["name"] == name]
    if not found:
        raise NoSuchThing(f"There is no pace {name!r}. A pace is saved half a minute after it was first used.")
    row = found[0]
    saved = [
        each
        for each in await look.reading.rows(NOUNS["paces_saved"], most=1_000)
        if each.name == name and (each[0] == "Controller") == (row["used_by"] == "controller")
    ]
    state = msgspec.json.decode(bytes(saved[0].state))
    facts: Facts = {"pace": row, "controller": None, "ticks": [], "bounds": None}
    facts["track"] = await _rates(look, name) if row["used_by"] == "controller" else []
    pace_state = state.get("pace", {})
    if row["mode"] == "pilot" and pace_state:
        facts["bounds"] = {"rate": [pace_state["rate_min"], pace_state["rate_max"]], "parallel": pace_state["parallel"]}
    if row["used_by"] == "controller":
        with suppress(PenstockError, KeyError):
            facts["controller"] = _controller(row, state, look.now)
    facts["ticks"] = (facts["controller"] or {}).get("ticks", [])[-TICKS_SHOWN:][::-1]
    return facts


async def _rates(look: PageLook, name: str) -> list[tuple[float, float]]:
    """Return the rates that workers have noted as data points, oldest first, as seconds and starts a second."""
    text, bound = question(named(PLATFORM, None), RATES, {"name": name})
    try:
        _, rows = await look.reading.ask(lambda file: file.points(text, bound, rows_max=RATES_MAX, seconds_max=1.0))
    except StoreError:
        return []
    return [(micros_of(f"{at}Z") / 1_000_000, rate) for at, rate in reversed(rows) if rate is not None]


def _controller(row: Row, state: dict[str, Any], now: int) -> Row:
    """Return what a controller says of itself, from its saved state."""
    saved = state["pace"]
    made: Any = (
        ZonesPace(saved, parallel=1, now=now / 1_000_000)
        if row["mode"] == "zones"
        else AdaptivePace(saved, rate=(saved["rate_min"], saved["rate_max"]), parallel=saved["parallel"])
    )
    return controller_status(row["name"], row["mode"], state, made, alarm=None, now=now)


# -- alerts -------------------------------------------------------------------------------------------------


async def alerts(look: PageLook) -> Facts:
    app = look.reading.app
    sinks = (
        []
        if app is None
        else [str(getattr(sink, "name", None) or getattr(sink, "__name__", sink)) for sink in app.sinks]
    )
    return {
        "conditions": await conditions(look.reading),
        "sinks": sinks,
        "has_code": bool(app is not None and app.queues),
    }


PAGES = (
    Page("/objects", "Objects", objects, "objects.html", listing=OBJECTS),
    Page("/objects/{class}/{name:path}", "Object", object_, "object.html", every=5.0),
    Page("/pace", "Pace", paces, "paces.html", listing=view.PACES, every=2.0, views={"columns": view.PACES.columns}),
    Page("/pace/{name:path}", "Pace", pace, "pace.html", every=2.0, views={"columns": view.CONTROLLER}),
    Page("/alerts", "Alerts", alerts, "alerts.html", every=5.0),
)
