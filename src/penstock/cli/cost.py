"""`penstock cost`: what a month has used and what a platform would have charged for it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import target as targets
from penstock.cli.output import Output, fill, money_shown, table
from penstock.data.usage import MonthUsage, month_usage

if TYPE_CHECKING:
    from rich.console import Console

STATEMENTS_SHOWN = 10
USAGE_TOLD = ("rows_read", "rows_written", "queue_operations", "blob_reads", "object_seconds", "requests")


@click.command()
@targets.target_argument
@targets.database_option
@click.option("--month", metavar="YYYY-MM", help="Another month than this one.")
@click.pass_obj
def cost(output: Output, target: str | None, database: str | None, month: str | None) -> None:
    """What a month has used, by task and statement, and its price.

    Nothing is charged here: the prices are those of a cloud platform, to compare with and to notice a statement that
    reads too much. Rows read are an estimate that is never too low.

    \b
    Example:
      penstock cost market.py
      penstock cost --database market.db --month 2026-10 --json
    """
    found = targets.find(target, database)
    usage = asyncio.run(_look(found, month))
    output.show(_told(usage), lambda console: _draw(console, usage))


async def _look(found: targets.Target, month: str | None) -> MonthUsage:
    with targets.reading(found) as reading:
        return await month_usage(reading, month, now=time.time_ns() // 1_000)


def _told(usage: MonthUsage) -> dict[str, Any]:
    return {
        "month": usage.month,
        "usage": {name: getattr(usage.total, name) for name in USAGE_TOLD},
        "usd": round(usage.usd, 9),
        "ceilings": [],
        "tasks": [
            {"task": task.task, "rows_read": task.rows_read, "rows_written": task.rows_written} for task in usage.tasks
        ],
    }


def _draw(console: Console, usage: MonthUsage) -> None:
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
    dear = table(("task", "left"), ("read", "right"), ("written", "right"), ("statement", "left"))
    shown = [
        (each.task or "-", f"{each.rows_read:,}", f"{each.rows_written:,}", each.statement[:300])
        for each in usage.statements[:STATEMENTS_SHOWN]
    ]
    console.print()
    console.print(fill(dear, shown))
