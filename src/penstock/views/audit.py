"""The audit: what operators changed, who they were, and what was there before."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.model.sql_files import load
from penstock.views.observer import Observer
from penstock.views.view import FLAGS, Column, Row, View, shaped, short

SQL = load("penstock.views", "nouns.sql")
LISTED_MAX = 10_000
VALUE_SHOWN, VALUES_SHOWN = 24, 3  # characters of a value before and after; values


async def rows(observer: Observer, name: str | None, verb: str | None, *, limit: int = 50) -> list[Row]:
    found = await observer.rows(SQL["audit_listed"], name=name, verb=verb, most=limit)
    fields = "at actor origin verb kind name before after count"
    values = [{**row.asdict(), "before": _decoded(row.before), "after": _decoded(row.after)} for row in found]
    return [shaped(fields, each) for each in values]


def _decoded(text: str | None) -> dict[str, Any]:
    return {} if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _changed(row: Row) -> str:
    before, after = row["before"], row["after"]
    parts = [
        f"{name}: {_value(name, before[name])} to {_value(name, after.get(name))}"
        if name in before
        else f"{name}: {_value(name, value)}"
        for name, value in (dict.fromkeys(before) | after).items()
    ]
    more = f" and {len(parts) - VALUES_SHOWN} more" if len(parts) > VALUES_SHOWN else ""
    return ", ".join(parts[:VALUES_SHOWN]) + more + (f" ({row['count']:,})" if row["count"] > 1 else "")


def _value(name: str, value: object) -> str:
    value = bool(value) if name in FLAGS else value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return short(text, VALUE_SHOWN)


AUDIT = View(
    "audit",
    (
        Column("at", "when", "time"),
        Column("actor", "who"),
        Column("verb", "what", of=lambda row: f"{row['verb']} {row['name']}"),
        Column("after", "changed", "prose", of=_changed),
        Column("origin", "from", rank=1),
    ),
    rows,
    "No operator has changed anything that matches.",
)
