"""`penstock cost`: what a month has used, what a platform would charge for it, and how near each ceiling is."""

from __future__ import annotations

import click

from penstock.cli.command import Command, looking
from penstock.cli.output import Answer, Listed, Title
from penstock.views import cost as view
from penstock.views.observer import Observer
from penstock.views.view import small_usd_text, usd_text


@click.command(cls=Command)
@looking
@click.option("--month", metavar="YYYY-MM", help="Another month than this one.")
async def cost(observer: Observer, month: str | None) -> Answer:
    """Show what a month has used and cost, by task, queue and statement.

    Penstock charges nothing: the prices are those of a cloud platform, to compare with and to find a statement that reads too
    much. Rows read are an estimate that is never too low. Paid calls are real money: those that the app made through its
    gateway, with what is left of their budgets.

    Example:
      penstock cost market.py
      penstock cost --database market.db --month 2026-10 --json
    """
    facts = await view.cost(observer, month)
    bill, statements, api = facts.pop("bill"), facts.pop("statements"), facts["api"]
    queues = [{"name": name, "used": used} for name, used in list(facts["queues"].items())[: view.SHOWN]]
    statements = [each for each in statements if each["task"]]  # others are those of commands and of the engine
    parts: list[object] = [Title(f"{facts['month']}  {usd_text(facts['usd'])}"), "", Listed(view.BILL, bill)]
    lists = (view.QUEUES, queues), (view.STATEMENTS, statements), (view.CLASSES, facts["objects"])
    for shown, rows in (*lists, (view.CEILINGS, facts["ceilings"])) if bill else ():
        parts += ["", Listed(shown, rows)] if rows else []
    if api["calls"] or api["budgets"]:
        parts += ["", Title(f"Paid calls  {small_usd_text(api['usd'])}"), ""]
        parts += [Listed(shown, api[shown.name]) for shown in (view.KINDS, view.BUDGETS) if api[shown.name]]
    return Answer(facts, *parts)
