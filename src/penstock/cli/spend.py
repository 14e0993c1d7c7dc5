"""The part of `penstock cost` that is real money: what paid calls have cost, and what is left of their budgets."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.cli import target as targets
from penstock.cli.output import fill, table
from penstock.data.spending import Budget, MonthSpending, month_spending
from penstock.model.errors import StatementFailed

if TYPE_CHECKING:
    from rich.console import Console

KINDS_SHOWN = 20


async def look(reading: targets.OnlyReading, found: targets.Target, month: str) -> MonthSpending | None:
    """None where the database is of a Penstock that kept no such calls."""
    gateways = () if found.app is None else found.app.gateways
    limits = [(gateway.service, gateway.budgets) for gateway in gateways]
    try:
        return await month_spending(reading, month, limits, now=reading.now())
    except StatementFailed:
        return None


def told(spending: MonthSpending | None) -> dict[str, Any] | None:
    if spending is None:
        return None
    return {
        "usd": spending.usd,
        "reserved_usd": spending.reserved_usd,
        "calls": spending.calls,
        "kinds": [asdict(kind) for kind in spending.kinds],
        "budgets": [asdict(budget) | {"left": budget.left} for budget in spending.budgets],
    }


def draw(console: Console, spending: MonthSpending | None) -> None:
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
            fill(table(("budget", "left"), ("used", "left"), ("left", "left")), map(_shown, spending.budgets))
        )


def _shown(budget: Budget) -> tuple[str, str, str]:
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
