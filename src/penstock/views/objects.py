"""Objects: where each lives, what it has saved, and when its alarm is due."""

from __future__ import annotations

import msgspec

from penstock.model.limits import near
from penstock.model.sql_files import load
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, shaped

SQL = load("penstock.views", "nouns.sql")
OBJECT_FIELDS = "class name owner epoch hint alarm_at alarm_lost saved_at bytes"
NAMES_MAX = 1_000  # names that a misspelt one is compared with
INTERNAL = {"AlertCondition", "Controller", "Remembered", "TrialRecord"}  # the engine's own classes


async def rows(observer: Observer, class_name: str | None = None, *, limit: int = 100) -> list[Row]:
    found = await observer.rows(SQL["objects_listed"], **{"class": class_name, "name": None, "most": limit})
    return [shaped(OBJECT_FIELDS, each.asdict()) for each in found]


async def one(observer: Observer, class_name: str, name: str) -> Row | str:
    """Return the object with its state, or a sentence with the names that resemble it."""
    found = await observer.rows(SQL["objects_listed"], **{"class": class_name, "name": name, "most": 1})
    if not found:
        known = [f"{each['class']}/{each['name']}" for each in await rows(observer, limit=NAMES_MAX)]
        return f"There is no object {class_name}/{name}. {near(f'{class_name}/{name}', known)}"
    facts = found[0].asdict()
    return shaped(f"{OBJECT_FIELDS} created_at state", {**facts, "state": msgspec.json.decode(facts["state"])})


NAME = Column("name", "object", of=lambda row: f"{row['class']}/{row['name']}")
OWNER = Column(
    "owner", "lives in", "text", 2, of=lambda row: None if row["owner"] is None else f"worker {row['owner']}"
)
LOST = Column("alarm_lost", "", "state", rank=1, of=lambda row: "lost" if row["alarm_lost"] else None)
OBJECTS = View(
    "objects",
    (
        NAME,
        Column("alarm_at", "alarm", "due"),
        LOST,
        Column("saved_at", "saved", "time"),
        Column("bytes", "size", "bytes", rank=3),
        OWNER,
    ),
    rows,
    "There is no such object. One is created when a method of it is first called.",
    is_internal=lambda row: row["class"] in INTERNAL,
)
OBJECT = (
    OWNER,
    Column("alarm_at", "alarm", "exact_time"),
    LOST,
    Column("saved_at", "saved", "exact_time"),
    Column("created_at", "created", "exact_time"),
    Column("bytes", "size", "bytes"),
)
