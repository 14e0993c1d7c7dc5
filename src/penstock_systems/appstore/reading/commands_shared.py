"""What the verbs of `penstock appstore` share: which database they look at, and how a list is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click

import penstock as ps
from penstock.commands import (
    Observer,
    Output,
    StatementFailed,
    Target,
    database_option,
    find,
    opened_app,
    reading,
    refuse,
)
from penstock_systems.appstore.reading import people
from penstock_systems.appstore.reading.drawing import Column, draw_rows
from penstock_systems.appstore.reading.queries import MOST, MOST_MAX, Reading
from penstock_systems.appstore.reading.spreadsheet import csv_text

USUAL_FILE = "pipeline-db.db"  # where the pipeline keeps its database unless told otherwise
A_ROW = "select id from market_clusters limit 1"
NOTHING_YET = "Start it: `penstock run appstore`. Name another database with --database."

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

user_option = click.option(
    "--user", metavar="NAME", default=people.ME, show_default=True, help="The owner of the stars and lists."
)
most_option = click.option(
    "--most", type=click.IntRange(1, MOST_MAX), default=MOST, show_default=True, help="The maximum number of rows."
)
csv_option = click.option("--csv", "as_csv", is_flag=True, help="As CSV, for a spreadsheet.")


def listing(command: Command) -> Command:
    """The options of every list."""
    for option in (database_option, csv_option, most_option):
        command = option(command)
    return command


def look(database: str | None, question: Callable[[Reading], Awaitable[T]]) -> T:
    """Opens the database for reading only, and asks."""
    found = _found(database)

    async def asked() -> T:
        with reading(found) as looked:
            _check(found, looked)
            return await question(looked)

    return asyncio.run(asked())


def change(database: str | None, deed: Callable[[ps.App], Awaitable[T]]) -> T:
    """Opens the database beside the workers, and does something to it."""
    found = _found(database)

    async def done() -> T:
        with reading(found) as looked:
            _check(found, looked)
        async with opened_app(found) as app:
            return await deed(app)

    return asyncio.run(done())


def show_list(
    output: Output,
    name: str,
    rows: Sequence[dict[str, Any]],
    columns: Sequence[Column],
    *,
    as_csv: bool,
    none: str,
) -> None:
    """As JSON, as CSV or as a table."""
    if as_csv:
        write_csv(output, rows, [column.key for column in columns])
    else:
        output.show({name: rows}, lambda console: draw_rows(console, rows, columns, none=none))


def write_csv(output: Output, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    if output.json:
        raise refuse("--json and --csv exclude each other. Use one.")
    names = list(dict.fromkeys([*columns, *(key for row in rows for key in row)]))
    output.out.write(csv_text(rows, names))


def _found(database: str | None) -> Target:
    return find(None, database, usual=USUAL_FILE)


def _check(found: Target, looked: Observer) -> None:
    """A database of another app is told from one of the pipeline, before a query stumbles over it."""
    try:
        looked.read(A_ROW)
    except StatementFailed as error:
        message = f"{found.database} is not a database of the App Store pipeline."
        raise ps.BadConfig(message, hint=NOTHING_YET) from error
