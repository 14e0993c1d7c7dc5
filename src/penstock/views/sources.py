"""The sources of connectors: how the last run of each ended, when it runs next, and why not before."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.connect.running import SQL as SOURCES_SQL
from penstock.model.errors import NoSuchSource
from penstock.model.limits import near
from penstock.model.times import text_of_micros
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, shaped, short

FIELDS = (
    "name kind state reason verdict last_run_at last_success_at next_at usual cursor consecutive_failures alerts "
    "last_error"
)
RUN_FIELDS = "started_at ended_at verdict candidates inserted changed gone back requests refused cursor_after error"
ERROR_SHOWN = 80  # characters


async def rows(observer: Observer) -> list[Row]:
    """Return all sources; none in a database that never had one, whose tables are missing."""
    if not await observer.rows(SOURCES_SQL["has_sources"]):
        return []
    now = text_of_micros(observer.now())
    return [source_row(row, now) for row in await observer.rows(SOURCES_SQL["sources"])]


async def the_source(observer: Observer, name: str) -> tuple[Row, list[Row]]:
    """Return the source of this name and its last runs. Raise NoSuchSource where there is none."""
    for row in await rows(observer):
        if row["name"] == name:
            found = await observer.rows(SOURCES_SQL["runs"], name=name, most=20)
            return row, [run_row(each) for each in found]
    raise NoSuchSource(f"There is no source {name!r}. {near(name, [row['name'] for row in await rows(observer)])}")


def source_row(row: Any, now: str) -> Row:
    """Return a row of the statement `sources` as it is shown. Times in it are text in UTC, as `now` is."""
    memory = msgspec.json.decode(row.memory or "{}")
    counts, alerts = sorted(memory.get("counts", [])), memory.get("alerts", [])
    state, reason, following = _standing(row, now)
    usual = counts[len(counts) // 2] if counts else None
    found = {"state": state, "reason": reason, "next_at": following, "usual": usual, "alerts": alerts}
    return _timed(shaped(FIELDS, {**row.asdict(), **found}))


def run_row(row: Any) -> Row:
    return _timed(shaped(RUN_FIELDS, row.asdict()))


def _timed(row: Row) -> Row:
    return {
        name: f"{at.replace(' ', 'T')}Z" if name.endswith("_at") and (at := row[name]) else row[name] for name in row
    }


def _standing(row: Any, now: str) -> tuple[str, str, str | None]:
    """Return the state of a source, why it does not run now, and when it runs next at the earliest."""
    verdict = row.verdict or "never run"
    if not row.enabled:
        return "disabled", f"It is disabled. Enable it with: penstock sources enable {row.name}", None
    if (row.last_started_at or "") > (row.last_run_at or ""):
        return "running", f"It runs since {row.last_started_at} UTC.", None
    following = max(row.next_run_at or "", row.backoff_until or "") or None
    ended = f"It has {verdict}." if row.verdict is None else f"Its last run ended as {verdict}"
    ended += f": {row.last_error}" if row.last_error else "." if row.verdict else ""
    if row.disabled_reason:
        return "resting", f"It rests and is tried at {following} UTC, after {row.disabled_reason}. {ended}", following
    if (row.backoff_until or "") > now:
        return verdict, f"It rests until {row.backoff_until} UTC. {ended}", following
    if following is None or following <= now:
        waits = "It is due: a worker runs it at the next tick of the cron task `collect`."
        return verdict, f"{waits} {ended}", following
    return verdict, f"It runs at the first tick of the cron task `collect` after {following} UTC. {ended}", following


NAME = Column("name", "source")
STATE = (
    Column("state", "state", "state"),
    Column("last_run_at", "last run", "time"),
    Column("next_at", "next", "due"),
    Column("usual", "usual", "count", rank=3),
    Column("alerts", "alerts", rank=1, of=lambda row: ", ".join(row["alerts"])),
)
SOURCES = View(
    "sources",
    (
        NAME,
        *STATE,
        Column("last_error", "error", "prose", rank=2, of=lambda row: short(row["last_error"] or "", ERROR_SHOWN)),
    ),
    rows,
    "No source has been declared yet. `app.connector(...)` declares one.",
)
SOURCE = (
    *STATE,
    Column("last_success_at", "last good run", "time"),
    Column("consecutive_failures", "bad runs", "count"),
    Column("cursor", "cursor"),
    Column("reason", "why", "prose"),
)
RUNS = View(
    "runs",
    (
        Column("started_at", "began", "time"),
        Column("verdict", "verdict", "state"),
        *(Column(name, name, "count", rank=2) for name in ("candidates", "inserted", "changed", "gone", "requests")),
        Column("error", "error", "prose", rank=1, of=lambda row: short(row["error"] or "", ERROR_SHOWN)),
    ),
    empty="It has not run yet, or every run found what it knew.",
)
