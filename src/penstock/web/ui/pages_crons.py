"""The pages of cron tasks: when each runs next and how its last runs ended."""

from __future__ import annotations

from typing import Any

from penstock.model.firing import FiringRule
from penstock.model.times import iso_z
from penstock.views.view import Column, Row, View, short
from penstock.web.ui.page import BEFORE_ALL, LISTED, SQL, Facts, NoSuchThing, Page, PageLook

TASKS = 200
SQUARES = 30  # last runs of a task in the list
FIRES = 5

CRONS = View(
    "crons",
    (
        Column("name", "task"),
        Column("expression", "schedule"),
        Column("next_at", "next", "due"),
        Column("last_status", "ended", "state"),
        Column("last_at", "last run", "time"),
    ),
    empty="No cron task has been declared yet.",
)
TICKS = View(
    "ticks",
    (
        Column("due", "due", "time"),
        Column("status", "ended", "state"),
        Column("phase", "phase"),
        Column("late_ms", "late", "took"),
        Column("took_ms", "took", "took"),
        Column("rows_read", "rows read", "count"),
        Column("rows_written", "written", "count"),
        Column("error", "error", "prose"),
    ),
    empty="It has not run yet.",
)


async def crons(look: PageLook) -> Facts:
    rows = await look.reading.rows(SQL["crons"], most=TASKS)
    return {"crons": [await _task(look, row, SQUARES) for row in rows]}


async def _task(look: PageLook, row: Any, ticks: int, before: int = BEFORE_ALL) -> Row:
    app, rule = look.reading.app, FiringRule.parse(row.rule)
    task = None if app is None else app.crons.tasks.get(row.name)
    found = await look.reading.rows(SQL["ticks"], task=row.name, before=before, most=ticks)
    last = _tick(found[0]) if found else None
    return {
        "name": row.name,
        "expression": rule.expression,
        "zone": rule.zone,
        "in_words": rule.schedule().fields.explain(),
        "next_at": None if row.paused else iso_z(row.due),
        "paused": bool(row.paused),
        "fired": row.fired,
        "reason": "" if task is None else task.reason,
        "last_at": last and last["fired_at"],
        "last_status": last and last["status"],
        "last_error": last and last["error"],
        "ticks": [_tick(each) for each in found],
    }


def _tick(row: Any) -> Row:
    took = None if row.finished_at is None or row.started_at is None else (row.finished_at - row.started_at) / 1_000
    return {
        "due": iso_z(row.due),
        "at": row.due,
        "fired_at": iso_z(row.fired_at),
        "status": row.status,
        "phase": row.phase,
        "missed": row.missed,
        "late_ms": None if row.started_at is None else max(0, row.started_at - row.due) / 1_000,
        "took_ms": took,
        "rows_read": row.rows_read,
        "rows_written": row.rows_written,
        "error": None if row.error is None else short(row.error, 300),
    }


async def cron(look: PageLook) -> Facts:
    name = look.parts["name"]
    rows = [row for row in await look.reading.rows(SQL["crons"], most=TASKS) if row.name == name]
    if not rows:
        raise NoSuchThing(f"There is no cron task {name!r}.")
    task = await _task(look, rows[0], LISTED + 1, look.number("before", BEFORE_ALL))
    ticks = task.pop("ticks")
    rule, at = FiringRule.parse(rows[0].rule), rows[0].due
    fires = [at]
    while len(fires) < FIRES:
        fires.append(rule.schedule().next_after(fires[-1]))
    return {
        "cron": task,
        "ticks": ticks[:LISTED],
        "next": ticks[LISTED]["at"] if len(ticks) > LISTED else None,
        "fires": [iso_z(each) for each in fires],
    }


PAGES = (
    Page("/cron", "Cron", crons, "crons.html", listing=CRONS, every=5.0),
    Page(
        "/cron/{name:path}", "Cron task", cron, "cron.html", listing=TICKS, every=5.0, views={"columns": TICKS.columns}
    ),
)
