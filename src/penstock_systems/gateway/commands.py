"""`penstock gateway`: keys, and what they spent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import msgspec

import penstock as ps
from penstock.commands import Command, Noun, Output, database_option, fill, find, opened_app, plain, table
from penstock_systems.gateway import keys as stored
from penstock_systems.gateway import reading
from penstock_systems.gateway.keys import Allowed

USUAL_FILE = "gateway.db"
DAYS_MAX = 400
TITLES = {"usd_at_most": "at most", "prompt_tokens": "prompt", "completion_tokens": "answer", "revoked_at": "revoked"}

T = TypeVar("T")


@click.group(cls=Noun)
def gateway() -> None:
    """Keys of the gateway, and what they spent.

    Start the gateway with `penstock run gateway`.

    Example:
      penstock gateway keys add writer --day 2 --month 20 --models gpt-4o-mini
      penstock gateway spend --by tag --days 30
    """


@gateway.group(cls=Noun)
def keys() -> None:
    """Create, list and revoke keys.

    Example:
      penstock gateway keys add writer --day 2
    """


@keys.command(cls=Command)
@click.argument("name")
@click.option("--run", type=float, metavar="USD", help="Dollars that one run may cost (header x-run-id).")
@click.option("--day", type=float, metavar="USD", help="Dollars of a day.")
@click.option("--month", type=float, metavar="USD", help="Dollars of a month.")
@click.option("--models", metavar="A,B", help="The models that it may use; all without this option.")
@click.option("--providers", metavar="A,B", help="The providers that it may use; all without this option.")
@database_option
@click.pass_obj
def add(
    output: Output,
    name: str,
    run: float | None,
    day: float | None,
    month: float | None,
    models: str | None,
    providers: str | None,
    database: str | None,
) -> None:
    """Create a key, and print its secret once.

    Example:
      penstock gateway keys add writer --day 2 --month 20
    """
    given = {"run": run, "day": day, "month": month, "models": _list(models), "providers": _list(providers)}
    try:
        allowed = msgspec.convert(given, Allowed)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"A budget is dollars from 0: {error}.") from error
    secret = _with(database, lambda app: stored.create(app, name, allowed))
    output.show(
        {"name": name, "key": secret},
        lambda console: console.print(
            f"Created key {plain(name)}. Its secret is shown only now:\n{secret}\n"
            f"Revoke it with: penstock gateway keys revoke {plain(name)}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        ),
    )


@keys.command("list", cls=Command)
@database_option
@click.pass_obj
def list_(output: Output, database: str | None) -> None:
    """List the keys with their budgets.

    Example:
      penstock gateway keys list
    """

    async def listed(app: ps.App) -> list[dict[str, Any]]:
        return [
            {"name": row.name, **msgspec.to_builtins(stored.read(row.settings)), "revoked_at": row.revoked_at}
            for row in await app.db.rows(stored.LIST)
        ]

    _show(output, "keys", _with(database, listed), "There is no key. Make one with: penstock gateway keys add NAME")


@keys.command(cls=Command)
@click.argument("name")
@database_option
@click.pass_obj
def revoke(output: Output, name: str, database: str | None) -> None:
    """Revoke a key at once.

    Example:
      penstock gateway keys revoke writer
    """
    _with(database, lambda app: stored.revoke(app, name))
    output.show({"revoked": name}, lambda console: console.print(f"Revoked key {plain(name)}.", markup=False))


@gateway.command(cls=Command)
@click.option("--by", type=click.Choice(reading.BYS), default="key", show_default=True, help="What to sum by.")
@click.option("--days", type=click.IntRange(1, DAYS_MAX), default=30, show_default=True, help="How far to look back.")
@database_option
@click.pass_obj
def spend(output: Output, by: reading.By, days: int, database: str | None) -> None:
    """Print what was spent. `usd_at_most` is of calls whose answer was lost, and of those that are under way.

    Example:
      penstock gateway spend --by correlation --days 7
    """
    _show(output, "spend", _with(database, lambda app: _spent(app, by, days, 1_000)), "Nothing was spent.")


@gateway.command(cls=Command)
@click.option("--by", type=click.Choice(reading.BYS), default="correlation", show_default=True, help="What to sum by.")
@click.option("--most", type=click.IntRange(1, 100), default=10, show_default=True, help="The number of rows.")
@database_option
@click.pass_obj
def top(output: Output, by: reading.By, most: int, database: str | None) -> None:
    """Print what cost most in the last 24 hours.

    Example:
      penstock gateway top --by tag
    """
    _show(output, "top", _with(database, lambda app: _spent(app, by, 1, most)), "Nothing was spent in the last day.")


async def _spent(app: ps.App, by: reading.By, days: int, most: int) -> list[dict[str, Any]]:
    return await reading.spend(app.db, by, since=await app.db.ago(f"{days}d"), most=most)


def _with(database: str | None, work: Callable[[ps.App], Awaitable[T]]) -> T:
    found = find(None, database, usual=USUAL_FILE)

    async def done() -> T:
        async with opened_app(found) as app:
            return await work(app)

    return asyncio.run(done())


def _show(output: Output, name: str, rows: list[dict[str, Any]], none: str) -> None:
    columns = list(rows[0]) if rows else []

    def draw(console: Any) -> None:
        if not rows:
            console.print(none, markup=False)
            return
        titles = [TITLES.get(each, each) for each in columns]
        sides = ["right" if isinstance(rows[0][column], int | float) else "left" for column in columns]
        console.print(
            fill(table(*zip(titles, sides, strict=True)), ([_text(row[each]) for each in columns] for row in rows))
        )

    output.show({name: rows}, draw)


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.6f}".rstrip("0").rstrip(".")
        case list() | tuple():
            return ", ".join(map(str, value))
    return str(value)


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [each.strip() for each in text.split(",") if each.strip()]
