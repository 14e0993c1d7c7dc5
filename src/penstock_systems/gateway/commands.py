"""`penstock gateway`: keys, and what they spent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
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
LISTS = ("models", "providers")
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
    """Create, list, change and revoke keys.

    Example:
      penstock gateway keys add writer --day 2
    """


def bounds(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a key may do."""
    money = (
        ("run", "that one run may cost (header x-run-id)"),
        ("day", "of a day"),
        ("month", "of a month"),
    )
    for name in ("providers", "models"):
        function = click.option(f"--{name}", metavar="A,B", help=f"The {name} that it may use; `all` for all.")(
            function
        )
    for name, of in reversed(money):
        function = click.option(f"--{name}", metavar="USD", help=f"Dollars {of}; `all` for no bound.")(function)
    return function


@keys.command(cls=Command)
@click.argument("name")
@bounds
@database_option
@click.pass_obj
def add(output: Output, /, name: str, database: str | None, **given: str | None) -> None:
    """Create a key, and print its secret once.

    Example:
      penstock gateway keys add writer --day 2 --month 20
    """
    allowed = _allowed(given)
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


@keys.command("set", cls=Command)
@click.argument("name")
@bounds
@database_option
@click.pass_obj
def set_(output: Output, /, name: str, database: str | None, **given: str | None) -> None:
    """Change what a key may do, at once. What is not named stays.

    Its secret stays, too, and what was spent counts.

    Example:
      penstock gateway keys set writer --day 5 --models all
    """
    named = {each: value for each, value in given.items() if value is not None}
    if not named:
        raise click.UsageError("Name what changes, such as --day 5.")
    allowed = _allowed(named)
    new = {each: getattr(allowed, each) for each in named}
    changed = _with(database, lambda app: stored.change(app, name, new))
    shown = ", ".join(
        f"{each} {_text(value)}" for each, value in msgspec.to_builtins(changed).items() if value is not None
    )
    output.show(
        {"name": name, **msgspec.to_builtins(changed)},
        lambda console: console.print(
            f"Changed key {plain(name)}: {shown or 'no bounds'}.", markup=False, highlight=False
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


def _allowed(given: Mapping[str, str | None]) -> Allowed:
    """Read the options of `bounds`. `all` is no bound, as is an option that is not given."""
    read: dict[str, object] = {}
    for name, text in given.items():
        if text is not None and text != "all":
            read[name] = [each.strip() for each in text.split(",") if each.strip()] if name in LISTS else text
    try:
        return msgspec.convert(read, Allowed, strict=False)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"A budget is dollars from 0: {error}.") from error
