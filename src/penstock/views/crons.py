"""Cron tasks: when each runs next, and how its last run and those of the last day ended."""

from __future__ import annotations

from penstock.model.firing import Rule
from penstock.model.times import iso_z
from penstock.views.observer import Observer
from penstock.views.view import COUNT, DUE, PROSE, STATE, TEXT, TIME, Column, Row, View, short

LISTED_MAX = 10_000
DAY_MICROS = 86_400_000_000
ERROR_SHOWN = 80  # characters
LISTED = """
select timers.name, timers.due, timers.number, timers.rule, timers.paused, ticks.status, ticks.fired_at, ticks.error
from penstock_timers as timers
left join penstock_ticks as ticks
on ticks.schedule = timers.name
and ticks.due = (
  select max(due)
  from penstock_ticks
  where schedule = timers.name
)
where timers.kind = 'cron'
order by timers.name
limit :most
"""
ENDED = """
select status, count(*) as runs
from penstock_ticks
where schedule = :task
and due > :since
group by status
order by runs desc
"""


async def rows(observer: Observer) -> list[Row]:
    since = observer.now() - DAY_MICROS
    tasks = {} if observer.app is None else observer.app.crons.tasks
    found = []
    for row in await observer.rows(LISTED, most=LISTED_MAX):
        rule = Rule.parse(row.rule)
        ended = await observer.rows(ENDED, task=row.name, since=since)
        found.append(
            {
                "name": row.name,
                "expression": rule.expression,
                "zone": rule.zone,
                "next_at": None if row.paused else iso_z(row.due),
                "fired": row.number,
                "paused": bool(row.paused),
                "reason": tasks[row.name].reason if row.name in tasks else "",
                "last_at": None if row.fired_at is None else iso_z(row.fired_at),
                "last_status": row.status,
                "last_error": row.error,
                "last_day": {each.status: each.runs for each in ended},
            }
        )
    return found


def _last_day(row: Row) -> str:
    return ", ".join(f"{runs:,} {status}" for status, runs in row["last_day"].items())


def _schedule(row: Row) -> str:
    return str(row["expression"]) + ("" if row["zone"] == "UTC" else f" {row['zone']}")


CRONS = View(
    "crons",
    (
        Column("name", "task", TEXT),
        Column("expression", "schedule", TEXT, of=_schedule),
        Column("next_at", "next", DUE),
        Column("paused", "", STATE, rank=1, of=lambda row: "paused" if row["paused"] else None),
        Column("last_at", "last run", TIME),
        Column("last_status", "ended", STATE),
        Column("last_error", "error", PROSE, rank=2, of=lambda row: short(row["last_error"] or "", ERROR_SHOWN)),
        Column("last_day", "last 24 h", PROSE, rank=3, of=_last_day),
        Column("fired", "runs", COUNT, rank=4),
        Column("reason", "reason", PROSE, rank=5),
    ),
    rows,
    "No cron task has been declared yet. `penstock run` registers the tasks of an app.",
)
