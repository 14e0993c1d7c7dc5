"""The cost of a month: what was used and its price, what paid calls cost, and how near each ceiling and budget is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from penstock.app import App
from penstock.contracts.calls import NANOS
from penstock.data.usage import MonthUsage, Reading, month_usage
from penstock.model.ceiling import Ceiling, used_of
from penstock.model.prices import Usage
from penstock.model.prices import cost as price
from penstock.model.sql_files import load
from penstock.model.times import day_of, month_of, to_micros
from penstock.views.observer import Observer, Target
from penstock.views.view import Column, Row, View, short, small_usd_text

SQL = load("penstock.views", "nouns.sql")
KINDS_MAX = 1_000  # providers and operations
STATEMENT_SHOWN = 300  # characters
SHOWN = 10  # queues and statements
USED = ("rows_read", "rows_written", "queue_operations", "blob_reads", "blob_writes", "object_seconds", "requests")


async def cost(observer: Observer, month: str | None) -> Row:
    """Return a month's usage, price, ceilings and paid calls, in the agreed shape."""
    usage = await month_usage(observer, month, now=observer.now())
    objects = await observer.rows(SQL["cost_objects"], month=usage.month)
    return {
        "month": usage.month,
        "usage": _only(usage.total, *USED),
        "usd": round(usage.usd, 9),
        "ceilings": list(ceilings(observer.target, usage)),
        "tasks": [_only(each, "task", "rows_read", "rows_written") for each in usage.tasks],
        "queues": usage.queues,
        "objects": [{**row.asdict(), "seconds": float(row.seconds)} for row in objects],
        "blobs": None if observer.app is None else blobs(observer.app),
        "api": await paid(observer, usage.month),
        "bill": [msgspec.structs.asdict(line) for line in usage.bill.lines if line.used],
        "statements": [
            _only(each, "task", "rows_read", "rows_written") | {"sql": each.statement}
            for each in usage.statements[:SHOWN]
        ],
    }


def _only(thing: object, *names: str) -> Row:
    return {name: getattr(thing, name) for name in names}


def blobs(app: App) -> Row:
    """Return what the app's folders store now, and what a month of that costs."""
    found = [folder.stored() for folder in app._blob_folders]
    stored = sum(each.size_bytes for each in found)
    return {
        "blobs": sum(each.blobs for each in found),
        "bytes": stored,
        "usd": round(price(Usage(blob_bytes=stored)).usd, 9),
        "is_complete": all(each.is_complete for each in found),
    }


def ceilings(target: Target, usage: MonthUsage) -> Iterator[Row]:
    """Yield the ceilings of the whole app, then those of its tasks, which only the app's code has."""
    if target.config.ceiling is not None:
        yield from _ceiling(None, target.config.ceiling, usage.total)
    spent = {each.task: Usage(rows_read=each.rows_read, rows_written=each.rows_written) for each in usage.tasks}
    for task in () if target.app is None else target.app.crons.tasks.values():
        if task.ceiling is not None:
            yield from _ceiling(task.name, task.ceiling, spent.get(task.metered_as, Usage()))


def _ceiling(task: str | None, ceiling: Ceiling, usage: Usage) -> Iterator[Row]:
    for measure, most in ceiling.limits.items():
        used = used_of(measure, usage)
        yield {"task": task, "unit": measure, "most": most, "used": round(used, 9), "reached": used >= most}


async def paid(observer: Observer, month: str) -> Row:
    """Return what paid calls have cost. Budgets are declared by the app: without its code none is known."""
    now = observer.now()
    rows = await observer.rows(SQL["cost_sums"], month=month, day=day_of(now), most=KINDS_MAX)
    used = {(row.service, row.scope): (row.reserved + row.settled) / NANOS for row in rows}
    months = [row for row in rows if row.scope == "month"]
    gateways = () if observer.app is None else observer.app.gateways
    limits = [
        (gateway.service, scope, most)
        for gateway in gateways
        for scope, most in (
            ("run", gateway.budgets.run),
            ("day", gateway.budgets.day),
            ("month", gateway.budgets.month),
        )
        if most is not None and (scope != "day" or month == month_of(now))
    ]
    return {
        "usd": round(sum(row.reserved + row.settled for row in months) / NANOS, 9),
        "reserved_usd": round(sum(row.reserved for row in months) / NANOS, 9),
        "calls": sum(row.calls for row in months),
        "kinds": await _kinds(observer, month),
        "budgets": [
            _budget(*limit, 0.0 if limit[1] == "run" else round(used.get(limit[:2], 0.0), 9)) for limit in limits
        ],
    }


async def _kinds(reading: Reading, month: str) -> list[Row]:
    since = datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)
    until = (since + timedelta(days=31)).replace(day=1)
    rows = await reading.rows(SQL["cost_by_kind"], since=to_micros(since), until=to_micros(until), most=KINDS_MAX)
    names = ("service", "provider", "operation", "calls", "units")
    return [
        {**dict(zip(names, row, strict=False)), "usd": row.cost / NANOS, "unknown_usd": row.unknown / NANOS}
        for row in rows
    ]


def _budget(service: str, budget: str, most: float, used: float) -> Row:
    left = max(0.0, round(most - used, 9))
    return {"service": service, "budget": budget, "most": most, "used": used, "left": left}


# -- columns ------------------------------------------------------------------------------------------------


def ceiling_text(row: Row) -> str:
    digits = 2 if row["unit"] == "usd" else 0
    return f"{row['used']:,.{digits}f} of {row['most']:,.{digits}f} {row['unit'].replace('_', ' ')}"


def _at_most(row: Row) -> str | None:
    return f"{small_usd_text(row['unknown_usd'])} at most" if row["unknown_usd"] else None


def _used(row: Row) -> str:
    return f"at most {small_usd_text(row['most'])}" if row["budget"] == "run" else small_usd_text(row["used"])


BILL = View(
    "bill",
    (
        Column("name", "used in the month", of=lambda row: row["name"].replace("_", " ")),
        Column("used", "used", "number"),
        Column("charged", "charged", "number", rank=1),
        Column("usd", "price", "usd"),
    ),
    empty="Nothing was metered in this month. Run an app, or ask for another month: --month 2026-10",
)
QUEUES = View("queues", (Column("name", "queue"), Column("used", "operations", "count")))
STATEMENTS = View(
    "statements",
    (
        Column("task", "task"),
        Column("rows_read", "read", "count"),
        Column("rows_written", "written", "count"),
        Column("sql", "statement", "prose", of=lambda row: short(row["sql"], STATEMENT_SHOWN)),
    ),
)
CLASSES = View(
    "objects",
    (
        Column("class", "objects"),
        Column("requests", "requests", "count"),
        Column("seconds", "running", "span"),
        Column("saves", "saves", "count", rank=1),
        Column("count", "kept", "count"),
        Column("bytes", "size", "bytes"),
    ),
)
CEILINGS = View(
    "ceilings",
    (
        Column("task", "ceiling", of=lambda row: row["task"] or "the whole app"),
        Column("used", "this month", of=ceiling_text),
        Column("reached", "", "state", of=lambda row: "reached" if row["reached"] else None),
    ),
)
KINDS = View(
    "kinds",
    (
        Column("provider", "provider"),
        Column("operation", "operation"),
        Column("calls", "calls", "count"),
        Column("units", "units", "count", rank=1),
        Column("usd", "cost", "small_usd"),
        Column("unknown_usd", "unknown outcome", rank=2, of=_at_most),
    ),
)
BUDGETS = View(
    "budgets",
    (
        Column("service", "service"),
        Column("budget", "budget of a"),
        Column("used", "used", of=_used),
        Column("most", "of", "small_usd"),
        Column("left", "left", "small_usd", of=lambda row: None if row["budget"] == "run" else row["left"]),
    ),
)
