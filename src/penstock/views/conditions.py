"""The conditions that an app has reported: which are open, and since when."""

from __future__ import annotations

import msgspec

from penstock.data.usage import Reading
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views.view import Row

SQL = load("penstock.views", "nouns.sql")
READ_MAX = 1_000


async def conditions(reading: Reading) -> list[Row]:
    """Return what is known of each condition: those that hold first."""
    found = []
    for row in await reading.rows(SQL["conditions"], most=READ_MAX):
        state = msgspec.json.decode(bytes(row.state))
        reported = state.get("told_at", [])
        found.append(
            {
                "name": row.name,
                "title": state.get("title", ""),
                "is_open": bool(state.get("is_open")),
                "repeats": state.get("repeats", 0),
                "sent_at": iso_z(reported[-1]) if reported else None,
                "changed_at": iso_z(row.saved_at),
            }
        )
    return sorted(found, key=lambda each: (not each["is_open"], each["name"]))
