"""Cron tasks: when each runs next, and how its last run and those of the last day ended."""

from __future__ import annotations

from penstock.model.firing import FiringRule
from penstock.model.sql_files import load
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, shaped, short

SQL = load("penstock.views", "nouns.sql")
FIELDS = "name expression zone next_at fired paused reason last_at last_status last_error last_day"
LISTED_MAX = 10_000
DAY_MICROS = 86_400_000_000
ERROR_SHOWN = 80  # characters


async def rows(observer: Observer) -> list[Row]:
    since = observer.now() - DAY_MICROS
    tasks = {} if observer.app is None else observer.app.crons.tasks
    found = []
    for row in await observer.rows(SQL["crons_listed"], most=LISTED_MAX):
        rule = FiringRule.parse(row.rule)
        ended = await observer.rows(SQL["crons_ended"], task=row.name, since=since)
        facts = {
            **row.asdict(),
            "expression": rule.expression,
            "zone": rule.zone,
            "next_at": None if row.paused else row.due,
            "reason": tasks[row.name].reason if row.name in tasks else "",
            "last_day": {each.status: each.runs for each in ended},
        }
        found.append(shaped(FIELDS, facts))
    return found


def _last_day(row: Row) -> str:
    return ", ".join(f"{runs:,} {status}" for status, runs in row["last_day"].items())


def _schedule(row: Row) -> str:
    return str(row["expression"]) + ("" if row["zone"] == "UTC" else f" {row['zone']}")


CRONS = View(
    "crons",
    (
        Column("name", "task"),
        Column("expression", "schedule", of=_schedule),
        Column("next_at", "next", "due"),
        Column("paused", "", "state", rank=1, of=lambda row: "paused" if row["paused"] else None),
        Column("last_at", "last run", "time"),
        Column("last_status", "ended", "state"),
        Column("last_error", "error", "prose", rank=2, of=lambda row: short(row["last_error"] or "", ERROR_SHOWN)),
        Column("last_day", "last 24 h", "prose", rank=3, of=_last_day),
        Column("fired", "runs", "count", rank=4),
        Column("reason", "reason", "prose", rank=5),
    ),
    rows,
    "No cron task has been declared yet. `penstock run` registers the tasks of an app.",
)
