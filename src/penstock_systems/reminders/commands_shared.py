"""What the commands of the reminders share: the database that they open, the options of a schedule, and tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

import penstock as ps
from penstock.commands import (
    Answer,
    NotFound,
    StatementFailed,
    Target,
    fill,
    find,
    opened_app,
    plain,
    refuse,
    table,
)

USUAL_FILE = "reminders.db"
T = TypeVar("T")


def use(database: str | None, work: Callable[[], Awaitable[T]], *, writes: bool = True) -> T:
    """Open the database beside the workers, and do the work in one unit if it writes."""
    from penstock_systems.reminders.system import app

    found = find(None, database, usual=USUAL_FILE)
    app.database = found.address

    async def run() -> T:
        async with opened_app(Target(found.address, found.config, app)):
            if not writes:
                return await work()
            async with app.unit():
                return await work()

    try:
        return asyncio.run(run())
    except ps.HttpError as error:
        raise (NotFound(str(error)) if error.status == 404 else refuse(str(error))) from error
    except StatementFailed as error:
        message = f"{found.database} is not a database of the reminders."
        raise ps.BadConfig(
            message, hint="Create one: `penstock run reminders`. Name another with --database."
        ) from error


def rule_of(text: str | None) -> dict[str, str] | None:
    """`FREQ=...` is an RRULE, `every ...` an interval, five fields are cron."""
    if text is None:
        return None
    stripped = text.strip()
    if "FREQ=" in stripped.upper():
        return {"rrule": stripped.removeprefix("RRULE:")}
    if stripped.lower().startswith("every "):
        return {"every": stripped[6:]}
    return {"cron": stripped}


def schedule_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--at", metavar="TIME", help="2026-12-24T18:00 in the zone, with +01:00 behind it, or `in 2h`."),
        click.option("--zone", metavar="ZONE", help="Such as Europe/Berlin."),
        click.option("--rule", metavar="RULE", help="`0 9 * * 1-5`, `every 3 days` or `FREQ=MONTHLY;BYDAY=-1FR`."),
        click.option("--until", metavar="DAY", help="The last day, or the last time."),
        click.option("--count", type=click.IntRange(1), help="The number of occurrences."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def say(facts: dict[str, Any], *lines: str) -> Answer:
    return Answer(facts, *map(plain, lines))


def show(facts: dict[str, Any], rows: list[dict[str, Any]], none: str) -> Answer:
    from penstock_systems.reminders.listing import moment

    if not rows:
        return say(facts, none)
    shown = [[row["id"], row["state"], moment(at_of(row)), row["user"], row["title"]] for row in rows]
    return Answer(facts, draw(["ID", "State", "When", "User", "Title"], shown))


def draw(columns: list[str], rows: list[list[str]]) -> Any:
    return fill(table(*((column, "left") for column in columns)), rows)


def times(upcoming: list[dict[str, str]]) -> list[str]:
    return [f"  {each['local']}  ({each['utc']})" for each in upcoming]


def at_of(row: dict[str, Any]) -> int | None:
    """When a reminder is due, or when it ended."""
    found: int | None = row["next_fire_at"] or row["dead_lettered_at"] or row["last_fired_at"]
    return found
