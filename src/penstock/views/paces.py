"""Paces: how fast each outside service is asked, the limit that was found, and the controllers that go by one."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.control.limiter_words import STATES
from penstock.control.pace import NO_FIGURES, AdaptivePace
from penstock.control.zoning import ZonesPace
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, rate_text

SQL = load("penstock.views", "nouns.sql")
LISTED_MAX = 1_000


async def rows(observer: Observer) -> list[Row]:
    """Return every saved pace: those of controllers, and those that handlers share."""
    now = observer.now()
    return [_row(each, now) for each in await observer.rows(SQL["paces_saved"], most=LISTED_MAX)]


def _row(each: Any, now: int) -> Row:
    state = msgspec.json.decode(each.state)
    saved = state.get("pace", {})
    mode = "zones" if "due_ms" in saved else "pilot"
    row: Row = {
        **NO_FIGURES,
        "name": each.name,
        "used_by": "controller" if each[0] == "Controller" else "handlers",
        "mode": mode,
        "rate_per_second": None,
        "requests": state.get("tally", {}).get("dispatched", 0),
        "refused": state.get("tally", {}).get("throttled", 0),
        "next_at": None,
        "closed_until": None,
        "reason": "",
        "saved_at": iso_z(each.saved_at),
    }
    if not saved:
        return row
    if mode == "zones":
        pace: Any = ZonesPace(saved, parallel=1, now=now / 1_000_000)
        next_at = (saved["due_ms"] or 0) * 1_000
    else:
        pace = AdaptivePace(saved, rate=(saved["rate_min"], saved["rate_max"]), parallel=saved["parallel"])
        found = pace.state
        row |= pace.figures(now / 1_000_000)
        row |= {"requests": found.flights.number, "refused": max(row["refused"], found.refusals)}
        next_at = max(found.due, pace.closed_until) * 1_000_000
    closed = pace.closed_until * 1_000_000
    rate = pace.rate_per_second
    row |= {"rate_per_second": rate and round(rate, 4), "reason": pace.words}
    row["next_at"] = iso_z(int(max(next_at, now)))
    row["closed_until"] = iso_z(int(closed)) if closed > now else None
    return row


def _does(row: Row) -> Any:
    if row["closed_until"]:
        return "paused by refusals"
    return STATES.get(row["phase"], row["phase"] or row["mode"])


PACES = View(
    "paces",
    (
        Column("name", "pace"),
        Column("rate_per_second", "rate", "rate"),
        Column("limit_per_second", "limit", "rate"),
        Column("requests", "requests", "count", rank=3),
        Column("refused", "refused", "count", rank=1),
        Column("phase", "state", rank=2, of=_does),
        Column("next_at", "next", "due"),
        Column("used_by", "used by", rank=4),
        Column("reason", "last change", "prose", rank=5),
    ),
    rows,
    "No pace has been saved yet. A controller saves its own, and so does `app.pace(...)` while handlers use it.",
)


# -- controllers --------------------------------------------------------------------------------------------


def controller_state(row: Row) -> str:
    if not row["running"]:
        return "stopped"
    return f"cooling down, {row['cooldown_remaining_s']} s left" if row["in_cooldown"] else "running"


CONTROLLERS = View(
    "controllers",
    (
        Column("name", "controller"),
        Column("running", "state", "state", of=controller_state),
        Column("rate_per_second", "rate", "rate", rank=1),
        Column("completions_per_minute", "done/min", "number"),
        Column("success_rate_pct", "success", "percent", rank=2),
        Column("mode", "mode", rank=3),
    ),
    lambda app: app.controllers.list(),
    "The app has no controllers.",
)


def _success(row: Row) -> str:
    rolling = row["rolling"]
    return f"{rolling['success_rate_pct']:.1f} % of {rolling['sample_size']:,} in 5 minutes"


def _lifetime(row: Row) -> str:
    ever = row["lifetime"]
    return f"{ever['completed']:,} done, {ever['failed']:,} failed of {ever['dispatched']:,}"


def _pace(row: Row) -> str:
    return f"{rate_text(row['rate_per_second'])}, {row['current_batch_size']:,} at once"


CONTROLLER = (
    Column("", "pace", of=_pace),
    Column("completions_per_minute", "done per minute", "number"),
    Column("projected_per_day", "projected per day", "count"),
    Column("", "success", of=_success),
    Column("", "since the start", of=_lifetime),
    Column("last_tick_at", "last tick", "exact_time"),
    Column("next_tick_at", "next tick", "exact_time"),
)
TICKS = (Column("at", "when", "time"), Column("text", "why the pace changed", "prose"))
