"""`penstock cron`: which tasks run by the clock, when next and how the last run ended; and run, rest or resume one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import target as targets
from penstock.cli.operating import operating, show_help
from penstock.cli.output import NotFound, Output, code_name, fill, plain, table
from penstock.model.errors import NoSuchSchedule
from penstock.model.firing import Rule
from penstock.model.times import iso_z

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.cron.crons import Crons

LISTED_MAX = 10_000
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
select schedule, status, count(*) as runs
from penstock_ticks
where schedule = :task
and due > :since
group by schedule, status
order by runs desc
"""
DAY_MICROS = 86_400_000_000

name_argument = click.argument("name", metavar="NAME")


@click.group(invoke_without_command=True)
@click.pass_context
def cron(ctx: click.Context) -> None:
    """Cron tasks: list, trigger, pause, resume.

    A task is named as the app names it, which is its function's name unless `name=` says otherwise.

    \b
    Example:
      penstock cron list
      penstock cron trigger crawl
      penstock cron pause crawl market.py
    """
    show_help(ctx)


@cron.command("list")
@targets.target_argument
@targets.database_option
@click.pass_obj
def list_crons(output: Output, target: str | None, database: str | None) -> None:
    """All cron tasks: when each runs next, and how its last run and those of the last day ended.

    Changes nothing. Why a task runs at its pace is told where the app is named. `idle` runs found nothing to do.

    \b
    Example:
      penstock cron list
      penstock cron list market.py --json
    """
    found = targets.find(target, database)
    tasks = {} if found.app is None else found.app.crons.tasks
    crons = [_told(row, tasks[row.name].reason if row.name in tasks else "", ended) for row, ended in _rows(found)]
    output.show({"crons": crons}, lambda console: _draw(console, crons))


def _rows(found: targets.Target) -> list[tuple[Any, dict[str, int]]]:
    with targets.reading(found) as reading:
        since = reading.now() - DAY_MICROS
        rows = reading.ask(LISTED, most=LISTED_MAX)
        ended = [reading.ask(ENDED, task=row.name, since=since) for row in rows]
        return [(row, {each.status: each.runs for each in runs}) for row, runs in zip(rows, ended, strict=True)]


def _told(row: Any, reason: str, ended: dict[str, int]) -> dict[str, Any]:
    rule = Rule.parse(row.rule)
    return {
        "name": row.name,
        "expression": rule.expression,
        "zone": rule.zone,
        "next_at": None if row.paused else iso_z(row.due),
        "fired": row.number,
        "paused": bool(row.paused),
        "reason": reason,
        "last_at": None if row.fired_at is None else iso_z(row.fired_at),
        "last_status": row.status,
        "last_error": row.error,
        "last_day": ended,
    }


def _draw(console: Console, crons: list[dict[str, Any]]) -> None:
    if not crons:
        console.print("No cron task has been declared yet. `penstock run` writes those of an app down.")
        return
    drawn = table(
        ("task", "left"), ("when", "left"), ("next", "left"), ("runs", "right"), ("last day", "left"), ("last", "left")
    )
    rows = [
        (
            each["name"],
            f"{each['expression']} {each['zone']}",
            each["next_at"] or "paused",
            f"{each['fired']:,}",
            ", ".join(f"{runs:,} {status}" for status, runs in each["last_day"].items()) or "-",
            "-" if each["last_at"] is None else f"{each['last_status']} {each['last_at']} {each['last_error'] or ''}",
        )
        for each in crons
    ]
    console.print(fill(drawn, rows))


@cron.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.pass_obj
def trigger(output: Output, name: str, target: str | None, database: str | None) -> None:
    """Run a task once, now, beside its schedule.

    A worker runs it: where none is at work it waits for one. Its schedule stays as it is.

    \b
    Example:
      penstock cron trigger crawl
    """
    _operate(targets.find(target, database), lambda crons: crons.trigger(name))
    _say(output, {"cron": name, "triggered": True}, f"{name} runs as soon as a worker takes it.")


@cron.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.pass_obj
def pause(output: Output, name: str, target: str | None, database: str | None) -> None:
    """Let a task rest until it is resumed.

    A run that has begun is finished. It stays paused over restarts.

    \b
    Example:
      penstock cron pause crawl
    """
    _operate(targets.find(target, database), lambda crons: crons.pause(name))
    _say(output, {"cron": name, "paused": True}, f"{name} rests. `penstock cron resume {name}` lets it go on.")


@cron.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.pass_obj
def resume(output: Output, name: str, target: str | None, database: str | None) -> None:
    """Let a paused task go on with its next fire.

    What passed meanwhile is not made up for.

    \b
    Example:
      penstock cron resume crawl
    """
    _operate(targets.find(target, database), lambda crons: crons.resume(name))
    _say(output, {"cron": name, "paused": False}, f"{name} goes on with its next fire.")


def _operate(found: targets.Target, deed: Callable[[Crons], Awaitable[None]]) -> None:
    async def operate() -> None:
        async with operating(found) as app:
            await deed(app.crons)

    try:
        asyncio.run(operate())
    except NoSuchSchedule as error:
        raise NotFound(str(error), code=code_name(error)) from error


def _say(output: Output, told: dict[str, Any], sentence: str) -> None:
    output.show(told, lambda console: console.print(plain(sentence)))
