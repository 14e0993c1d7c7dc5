"""The pages of operation: cost, workers, activity, audit and the system."""

from __future__ import annotations

import platform
import shutil
from typing import Any

import penstock
from penstock.contracts import running_handlers
from penstock.contracts.calls import NANOS
from penstock.contracts.history import Entry
from penstock.data.usage import month_usage, size
from penstock.model.errors import StoreError
from penstock.model.ids import as_text
from penstock.model.queue import is_internal
from penstock.model.redaction import redacted
from penstock.model.times import day_of, iso_z, month_of
from penstock.views import audit as audit_view
from penstock.views import cost as cost_view
from penstock.views import queues as queue_views
from penstock.views.view import Column, Row, View, micros_of, short
from penstock.web.ui import forecast
from penstock.web.ui.page import LISTED, MINUTE, SQL, Facts, Page, PageLook, per_minute

WINDOW = 2_000  # deliveries that one request goes through where some are left out
HANDLERS = 2_000
SHOWN = 10
CALLS = 5_000  # paid calls that kinds are summed from, the newest
SQLITE = "select sqlite_version() as version"
MINUTES = 60
DAY = 86_400_000_000

ACTIVITY = View(
    "activity",
    (
        Column("ended_at", "ended", "time"),
        Column("status", "status", "state"),
        Column("name", "type"),
        Column("queue", "queue"),
        Column("attempt", "attempt", "count"),
        Column("took_ms", "took", "took"),
        Column("error", "error", "prose"),
    ),
    empty="Nothing has ended.",
)


async def cost(look: PageLook) -> Facts:
    month = look.text("month")
    usage = await month_usage(look.reading, month, now=look.now)
    is_now = usage.month == month_of(look.now)
    since = micros_of(f"{usage.month}-01T00:00:00Z")
    limits = list(cost_view.ceilings(look.reading.target, usage))
    for each in limits:
        each["reached_at"] = forecast.reached_at(each["used"], each["most"], since, look.now) if is_now else None
    return {
        "month": usage.month,
        "is_now": is_now,
        "usd": round(usage.usd, 9),
        "ceilings": limits,
        "tasks": [
            {"task": task.task, "rows_read": task.rows_read, "rows_written": task.rows_written}
            for task in usage.tasks[:SHOWN]
        ],
        "queues": sorted(usage.queues.items(), key=lambda each: -each[1])[:SHOWN],
        "bill": [
            {"name": line.name, "used": line.used, "charged": line.charged, "usd": line.usd}
            for line in usage.bill.lines
            if line.used
        ],
        "statements": [
            {"task": each.task, "rows_read": each.rows_read, "rows_written": each.rows_written, "sql": each.statement}
            for each in usage.statements[:SHOWN]
        ],
        "paid": await paid(look, usage.month, since),
    }


async def paid(look: PageLook, month: str, since: int) -> Facts:
    """Return what paid calls have cost. Budgets are declared by the app: without its code only what was spent is known."""
    until = since + 31 * DAY
    calls = await look.reading.rows(SQL["calls"], since=since, until=until, most=CALLS)
    budgets = {each.service: each.budgets for each in (look.reading.app.gateways if look.reading.app else ())}
    services, found = sorted({row.service for row in calls} | set(budgets)), []
    for service in services:
        for scope, period in (("day", day_of(look.now)), ("month", month)):
            rows = await look.reading.rows(SQL["spent"], service=service, scope=scope, period=period)
            row, most = rows[0] if rows else None, getattr(budgets.get(service), scope, None)
            reserved, settled = (row.reserved / NANOS, row.settled / NANOS) if row else (0.0, 0.0)
            began = row.began_at if row else since
            facts = {"service": service, "scope": scope, "calls": row.calls if row else 0}
            facts |= {"reserved": reserved, "settled": settled, "used": reserved + settled, "most": most}
            at = None if most is None else forecast.reached_at(reserved + settled, most, began, look.now)
            found.append({**facts, "reached_at": at})
    kinds: dict[tuple[str, str], Row] = {}
    for row in calls:
        key = row.provider, row.operation
        each = kinds.setdefault(key, {"provider": key[0], "operation": key[1], "calls": 0, "usd": 0.0})
        each["calls"] += 1
        each["usd"] += row.cost / NANOS
    dearest = sorted(kinds.values(), key=lambda each: -each["usd"])[:SHOWN]
    return {"spent": found, "kinds": dearest, "newest": len(calls) if len(calls) == CALLS else None}


async def workers(look: PageLook) -> Facts:
    reading = look.reading
    processes = await queue_views.processes(reading)
    rows = await reading.rows(SQL["handlers"], most=HANDLERS)
    serves: dict[int, dict[str, list[str]]] = {}
    for row in rows:
        serves.setdefault(row.worker, {}).setdefault(row.queue, []).append(row.type)
    found = []
    for each in processes:
        alive = reading.is_alive(each)
        found.append(
            {
                "id": each.id,
                "host": each.host,
                "pid": each.pid,
                "started_at": iso_z(each.started_at),
                "alive": alive,
                "state": {True: "running", False: "died", None: "on another host"}[alive],
                "role": "worker" if each.runs_handlers else "supervisor, server or producer",
                "queues": [name for name in sorted(serves.get(each.id, {})) if not is_internal(name)],
                "internal_queues": sum(map(is_internal, serves.get(each.id, {}))),
                "handlers": _running(look, each.id) if alive else [],
            }
        )
    return {"workers": sorted(found, key=lambda row: (row["alive"] is not False, row["id"]))}


def _running(look: PageLook, worker: int) -> list[Row]:
    """Return the handlers that a worker of this host runs now."""
    cells = look.reading.lookout.cells(worker)
    if cells is None or cells[0] != running_handlers.MARK:
        return []
    return [
        {"rows": len(list(running_handlers.rows_of(cells, handler)))} for handler in running_handlers.running(cells)
    ]


# -- activity -----------------------------------------------------------------------------------------------


async def activity(look: PageLook) -> Facts:
    """Return the deliveries that ended before a moment, newest first, and what each minute around it came to."""
    at = min(look.number("at", look.now), look.now)
    queue, status = look.text("queue"), look.text("status")
    most = LISTED + 1 if queue is None and status is None else WINDOW
    try:
        entries = await look.reading.ask(lambda file: file.latest(at, most))
        middle = min(look.now, at + MINUTES // 2 * MINUTE)
        counts = await look.reading.ask(lambda file: file.settled(middle - MINUTES * MINUTE, middle))
    except StoreError as error:
        return _no_activity(str(error), at)
    shown = [each for each in entries if queue in (None, each.queue) and _has(each, status)][:LISTED]
    deeds = await look.reading.rows(SQL["audit"], before=at, most=10)
    return {
        "at": iso_z(at),
        "at_micros": at,
        "is_now": at >= look.now - MINUTE,
        "activity": [_entry(each) for each in shown],
        "track": {
            "from": middle // MINUTE * MINUTE - (MINUTES - 1) * MINUTE,
            "done": per_minute(counts, middle, ("acked",), MINUTES),
            "failed": per_minute(counts, middle, ("retried", "dead"), MINUTES),
        },
        "deeds": [_deed(row) for row in deeds],
        "queue": queue,
        "status": status,
        "searched": len(entries),
        "next": entries[-1].ended_at - 1 if len(entries) >= most else None,
        "problem": None,
    }


def _no_activity(problem: str, at: int) -> Facts:
    track = {"from": at, "done": [], "failed": []}
    listed: Facts = {"activity": [], "deeds": [], "queue": None, "status": None, "searched": 0, "next": None}
    return {"at": iso_z(at), "at_micros": at, "is_now": True, "track": track, "problem": problem, **listed}


def _has(entry: Entry, status: str | None) -> bool:
    return status is None or entry.status == status or (status == "failed" and entry.status in ("retried", "dead"))


def _entry(entry: Entry) -> Row:
    return {
        "ended_at": iso_z(entry.ended_at),
        "status": entry.status,
        "name": entry.name,
        "queue": entry.queue,
        "id": as_text(entry.id),
        "attempt": entry.attempt,
        "service": entry.service,
        "took_ms": (entry.ended_at - entry.started_at) / 1_000,
        "error": None if entry.error is None else short(redacted(entry.error), 200),
    }


# -- audit --------------------------------------------------------------------------------------------------


async def audit(look: PageLook) -> Facts:
    before = look.number("before", look.now + DAY)
    rows = await look.reading.rows(SQL["audit"], before=before, most=LISTED + 1)
    found = [_deed(row) for row in rows[:LISTED]]
    actor = look.text("actor")
    return {
        "audit": [row for row in found if actor in (None, row["actor"])],
        "actor": actor,
        "next": rows[LISTED].at if len(rows) > LISTED else None,
    }


def _deed(row: Any) -> Row:
    facts: Row = {name: row[name] for name in ("actor", "origin", "verb", "kind", "name", "count")}
    values = {"before": audit_view._decoded(row.before), "after": audit_view._decoded(row.after)}
    return {"at": iso_z(row.at), **facts, **values, "command": _command(row)}


def _command(row: Any) -> str | None:
    """Return the command that does the same again, where there is one."""
    noun, _, verb = row.verb.partition(" ")
    is_known = noun in ("queues", "cron", "workflows", "controllers", "dead") and row.kind != "page"
    if not is_known or verb in ("refused", "edit"):
        return None
    return f"penstock {noun} {verb} {row.name}"


# -- system -------------------------------------------------------------------------------------------------


async def system(look: PageLook) -> Facts:
    target = look.reading.target
    cap = target.config.limits.database_bytes_max
    grown = await size(look.reading, look.reading.lookout.size_bytes(), cap_bytes=cap, now=look.now)
    sizes = await look.reading.rows(SQL["sizes"])
    usage = await month_usage(look.reading, None, now=look.now)
    database = {
        "path": target.database,
        "bytes": grown.size_bytes,
        "cap_bytes": grown.cap_bytes,
        "level": grown.level,
        "growth_bytes_per_day": grown.growth_bytes_per_day,
        "days_left": grown.days_left,
        "disk_free_bytes": disk_free(look),
    }
    return {
        "database": database,
        "schema": look.reading.lookout.schema_version(),
        "store": "PostgreSQL" if target.file is None else f"SQLite {look.reading.read(SQLITE)[0].version}",
        "versions": {"penstock": penstock.__version__, "python": platform.python_version()},
        "sizes": [{"day": row.day, "bytes": row.bytes} for row in reversed(sizes)],
        "profile": target.config.profile,
        "rows_read": usage.total.rows_read,
        "dashboard_rows": look.dashboard_rows,
        "history_seconds": target.config.limits.history_seconds,
    }


def disk_free(look: PageLook) -> int | None:
    """Return the space on the disk of the database; None where that is another machine's."""
    file = look.reading.target.file
    return None if file is None else shutil.disk_usage(file.absolute().parent).free


PAGES = (
    Page("/cost", "Cost", cost, "cost.html", views={"view": cost_view}),
    Page("/workers", "Workers", workers, "workers.html", every=5.0),
    Page("/activity", "Activity", activity, "activity.html", listing=ACTIVITY, every=5.0),
    Page("/audit", "Audit", audit, "audit.html", listing=audit_view.AUDIT, views={"changed": audit_view._changed}),
    Page("/system", "System", system, "system.html"),
)
