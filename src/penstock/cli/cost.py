"""`penstock cost`: what a month has used, what a platform would have charged for it, and how near each ceiling is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import target as targets
from penstock.cli.output import Output, bytes_shown, fill, money_shown, table
from penstock.data.spending import Budget, MonthSpending, month_spending
from penstock.data.usage import MonthUsage, month_usage
from penstock.model.ceiling import Ceiling, used_of
from penstock.model.errors import StatementFailed
from penstock.model.prices import Usage

if TYPE_CHECKING:
    from rich.console import Console

STATEMENTS_SHOWN = QUEUES_SHOWN = 10
# What objects were asked and took is of a month; what they keep is of now.
OBJECTS = """
select asked.class, asked.requests, asked.micros, asked.saves, count(objects.name) as objects,
  coalesce(sum(length(objects.state)), 0) as bytes
from (
  select substr(task, length('object.') + 1) as class, executions as requests, micros, rows_written as saves
  from penstock_usage
  where month = :month
  and statement = 'penstock:object_requests'
) as asked
left join penstock_objects as objects
on objects.class = asked.class
group by asked.class, asked.requests, asked.micros, asked.saves
order by asked.class
"""
USAGE_TOLD = ("rows_read", "rows_written", "queue_operations", "blob_reads", "object_seconds", "requests")
KINDS_SHOWN = 20


@click.command()
@targets.target_argument
@targets.database_option
@click.option("--month", metavar="YYYY-MM", help="Another month than this one.")
@click.pass_obj
def cost(output: Output, target: str | None, database: str | None, month: str | None) -> None:
    """What a month has used, by task and statement, and its price; what paid calls have cost beside it.

    Nothing is charged here: the prices are those of a cloud platform, to compare with and to notice a statement that
    reads too much. Rows read are an estimate that is never too low. What was paid to others, to models and searches, is
    real money: that of the calls an app made through its gateway, and what is left of their budgets.

    \b
    Example:
      penstock cost market.py
      penstock cost --database market.db --month 2026-10 --json
    """
    found = targets.find(target, database)
    usage, objects, spending = asyncio.run(_look(found, month))
    ceilings = list(ceilings_of(found, usage))

    def draw(console: Console) -> None:
        _draw(console, usage, ceilings, objects)
        _draw_paid(console, spending)

    output.show(_told(usage, ceilings, objects) | {"api": _paid(spending)}, draw)


async def _look(
    found: targets.Target, month: str | None
) -> tuple[MonthUsage, list[dict[str, Any]], MonthSpending | None]:
    with targets.reading(found) as reading:
        usage = await month_usage(reading, month, now=reading.now())
        objects = [_object(*row) for row in reading.ask(OBJECTS, month=usage.month)]
        return usage, objects, await _look_at_paid(reading, found, usage.month)


def _object(name: str, requests: int, micros: int, saves: int, count: int, size: int) -> dict[str, Any]:
    return {
        "class": name,
        "requests": requests,
        "seconds": micros / 1_000_000,
        "saves": saves,
        "count": count,
        "bytes": size,
    }


def ceilings_of(found: targets.Target, usage: MonthUsage) -> Iterator[dict[str, Any]]:
    """Those of the whole app, then those of its tasks, which only the app itself knows."""
    if found.config.ceiling is not None:
        yield from _ceiling(None, found.config.ceiling, usage.total)
    spent = {each.task: Usage(rows_read=each.rows_read, rows_written=each.rows_written) for each in usage.tasks}
    for task in () if found.app is None else found.app.crons.tasks.values():
        if task.ceiling is not None:
            yield from _ceiling(task.name, task.ceiling, spent.get(task.metered_as, Usage()))


def _ceiling(task: str | None, ceiling: Ceiling, usage: Usage) -> Iterator[dict[str, Any]]:
    for measure, most in ceiling.limits.items():
        used = used_of(measure, usage)
        yield {"task": task, "unit": measure, "most": most, "used": round(used, 9), "reached": used >= most}


def _told(usage: MonthUsage, ceilings: list[dict[str, Any]], objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "month": usage.month,
        "usage": {name: getattr(usage.total, name) for name in USAGE_TOLD},
        "usd": round(usage.usd, 9),
        "ceilings": ceilings,
        "tasks": [
            {"task": task.task, "rows_read": task.rows_read, "rows_written": task.rows_written} for task in usage.tasks
        ],
        "queues": usage.queues,
        "objects": objects,
    }


def _draw(console: Console, usage: MonthUsage, ceilings: list[dict[str, Any]], objects: list[dict[str, Any]]) -> None:
    console.print(f"[bold]{usage.month}[/]  {money_shown(usage.usd)}\n")
    lines = [line for line in usage.bill.lines if line.used]
    if not lines:
        console.print("Nothing was metered in this month. Run an app, or ask for another: `--month 2026-10`.")
        return
    bill = table(("", "left"), ("used", "right"), ("charged", "right"), ("price", "right"))
    rows = [
        (line.name.replace("_", " "), f"{line.used:,.0f}", f"{line.charged:,.0f}", money_shown(line.usd))
        for line in lines
    ]
    console.print(fill(bill, rows))
    if usage.queues:
        queues = table(("queue", "left"), ("operations", "right"))
        console.print()
        console.print(fill(queues, [(name, f"{used:,}") for name, used in list(usage.queues.items())[:QUEUES_SHOWN]]))
    dear = table(("task", "left"), ("read", "right"), ("written", "right"), ("statement", "left"))
    shown = [
        (each.task or "-", f"{each.rows_read:,}", f"{each.rows_written:,}", each.statement[:300])
        for each in usage.statements[:STATEMENTS_SHOWN]
    ]
    console.print()
    console.print(fill(dear, shown))
    if objects:
        drawn = table(
            ("objects", "left"), ("requests", "right"), ("at work", "right"), ("saves", "right"), ("keep", "right")
        )
        facts = [
            (
                each["class"],
                f"{each['requests']:,}",
                f"{each['seconds']:,.0f} s",
                f"{each['saves']:,}",
                f"{each['count']:,}, {bytes_shown(each['bytes'])}",
            )
            for each in objects
        ]
        console.print()
        console.print(fill(drawn, facts))
    if ceilings:
        console.print()
        console.print(
            fill(table(("ceiling", "left"), ("this month", "left"), ("", "left")), map(ceiling_shown, ceilings))
        )


def ceiling_shown(each: dict[str, Any]) -> tuple[str, str, str]:
    digits = 2 if each["unit"] == "usd" else 0
    used = f"{each['used']:,.{digits}f} of {each['most']:,.{digits}f} {each['unit'].replace('_', ' ')}"
    return each["task"] or "the whole app", used, "reached" if each["reached"] else ""


async def _look_at_paid(reading: targets.OnlyReading, found: targets.Target, month: str) -> MonthSpending | None:
    """None where the database is of a Penstock that kept no such calls."""
    gateways = () if found.app is None else found.app.gateways
    limits = [(gateway.service, gateway.budgets) for gateway in gateways]
    try:
        return await month_spending(reading, month, limits, now=reading.now())
    except StatementFailed:
        return None


def _paid(spending: MonthSpending | None) -> dict[str, Any] | None:
    if spending is None:
        return None
    return {
        "usd": spending.usd,
        "reserved_usd": spending.reserved_usd,
        "calls": spending.calls,
        "kinds": [asdict(kind) for kind in spending.kinds],
        "budgets": [asdict(budget) | {"left": budget.left} for budget in spending.budgets],
    }


def _draw_paid(console: Console, spending: MonthSpending | None) -> None:
    if spending is None or not (spending.calls or spending.budgets):
        return
    console.print(f"\n[bold]Paid calls[/]  {dollars(spending.usd)}\n")
    if spending.kinds:
        paid = table(
            ("provider", "left"),
            ("operation", "left"),
            ("calls", "right"),
            ("units", "right"),
            ("cost", "right"),
            ("", "left"),
        )
        rows = [
            (
                kind.provider,
                kind.operation,
                f"{kind.calls:,}",
                f"{kind.units:,}",
                dollars(kind.usd),
                f"{dollars(kind.unknown_usd)} of it at most" if kind.unknown_usd else "",
            )
            for kind in spending.kinds[:KINDS_SHOWN]
        ]
        console.print(fill(paid, rows))
    if spending.budgets:
        console.print(
            fill(table(("budget", "left"), ("used", "left"), ("left", "left")), map(_budget, spending.budgets))
        )


def _budget(budget: Budget) -> tuple[str, str, str]:
    name = (
        f"{budget.service}, each {budget.budget}"
        if budget.budget == "run"
        else f"{budget.service}, this {budget.budget}"
    )
    if budget.budget == "run":
        return name, f"at most {dollars(budget.most)}", ""
    return name, f"{dollars(budget.used)} of {dollars(budget.most)}", dollars(budget.left)


def dollars(usd: float) -> str:
    """Fractions of a cent count here: a call rarely costs a whole one."""
    whole, _, digits = f"{usd:,.6f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"
