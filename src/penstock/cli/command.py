"""What commands are made of: help with an example, the database that is opened for them, and a question before a loss."""

from __future__ import annotations

import asyncio
import getpass
import inspect
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import wraps
from textwrap import indent
from typing import Any

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.output import Answer, Output, Verbatim
from penstock.model.limits import near
from penstock.runtime.audit import operated_by
from penstock.stores import checked_address
from penstock.views.observer import Observer, Target, observe

yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
name_argument = click.argument("name", metavar="NAME")
all_option = click.option("--all", "internals", is_flag=True, help="Show what is internal too; --json has all.")


def limit_option(most: int, default: int = 100) -> Callable[[Any], Any]:
    return click.option(
        "--limit", type=click.IntRange(1, most), default=default, show_default=True, help="The maximum number of rows."
    )


class CliCommand(click.Command):
    """A command whose help ends with an example."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        text, _, example = inspect.cleandoc(self.help or "").partition("\n\nExample:\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)
        if example:
            formatter.write(f"\n  Example:\n{indent(example, '  ')}\n")


class Noun(CliCommand, click.Group):
    """A group of verbs, in the order of its file. Without a verb it answers with its help."""

    command_class = CliCommand

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **{**options, "invoke_without_command": True})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is None:
            first = next(iter(self.commands))
            hint = near(cmd_name, self.commands)
            if targets.names_target(cmd_name):
                hint = f"Write the command before the app or database: {ctx.command_path} {first} {cmd_name}"
            raise click.UsageError(f"There is no command {cmd_name!r}. {hint}", ctx)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(200)) for name, verb in self.commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        answer = super().invoke(ctx)
        return answer if ctx.invoked_subcommand else Answer({"commands": list(self.commands)}, Verbatim(ctx.get_help()))


# -- what is opened for a command ---------------------------------------------------------------------------


Function = Callable[..., Awaitable[Answer]]


def opening(
    open_target: Callable[[Target], Any],
    argument: Callable[[Any], Any] = targets.target_argument,
    *,
    least: int = 1,
    optional: str = "",
) -> Callable[[Function], Callable[..., Answer]]:
    """Take an app or a database, and call the function with what `open_target` opens there.

    With `optional`, the argument of this name may be left out although the app or database stands behind it."""

    def decorate(function: Function) -> Callable[..., Answer]:
        @wraps(function)
        def command(**given: Any) -> Answer:
            database = given.pop("database")
            if "app" in given:
                found = app_at(given.pop("app"), database)
            elif "words" in given:
                given["names"], target = targets.split(given.pop("words"), least=least)
                found = targets.find(target, database)
            else:
                target, word = given.pop("target"), given.get(optional)
                if target is None and word is not None and targets.names_target(word):
                    target, given[optional] = word, None
                found = targets.find(target, database)

            async def main() -> Answer:
                async with open_target(found) as opened:
                    return await function(opened, **given)

            return asyncio.run(main())

        made: Callable[..., Answer] = argument(targets.database_option(command))
        return made

    return decorate


@asynccontextmanager
async def _observing(found: Target) -> AsyncIterator[Observer]:
    with targets.reading(found) as opened:
        yield opened


@asynccontextmanager
async def opened_app(found: Target) -> AsyncIterator[App]:
    """The app with its database open. Migrations are left to `penstock migrate`, and no database is created."""
    with targets.reading(found):
        pass  # it says what is wrong with the database before anything is opened that writes
    app = found.app or App(found.name, database=found.address, config=found.config)
    with by_this_user():
        await app._open(migrate=False)
        try:
            yield app
        finally:
            await app.close()


def beside(app: App) -> AbstractContextManager[Observer]:
    """Read what a command needs to know beside an open app: what is not the app's own work is not metered."""
    return observe(Target(app.database, app.config, app))


looking = opening(_observing)
operating = opening(opened_app)
operating_app = opening(opened_app, click.argument("app", metavar="APP"))


def on_name(decorate: Callable[[Function], Callable[..., Answer]]) -> Callable[[Function], Callable[..., Answer]]:
    """Take the name of one thing, and then what `decorate` takes."""
    return lambda function: name_argument(decorate(function))


looking_at_one, operating_one, operating_one_of_app = map(on_name, (looking, operating, operating_app))


def looking_at(optional: str) -> Callable[[Function], Callable[..., Answer]]:
    return opening(_observing, optional=optional)


def operating_on(metavar: str, *, least: int = 1) -> Callable[[Function], Callable[..., Answer]]:
    """Take names, perhaps an app or a database behind them, and call the function with the app and the names."""
    words = click.argument("words", metavar=f"{metavar} [APP | DATABASE]", nargs=-1, required=least > 0)
    return opening(opened_app, words, least=least)


def by_this_user() -> AbstractContextManager[None]:
    """Record what is changed inside as the work of the user who runs this command."""
    return operated_by(this_user(), "cli")


def this_user() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"  # it has no name on this host
    return f"{user}@{socket.gethostname()}"


def app_at(reference: str, database: str | None) -> Target:
    """Return the app, and its own database or the one that is named."""
    found = targets.find(reference, None)
    if found.app is None:
        raise refuse(f"{found.database} is a database. Name the app (market.py), and the database with --database.")
    if database is None:
        return found
    found.app.database = checked_address(database)
    return Target(database, found.config, found.app)


def this_output() -> Output:
    output: Output = click.get_current_context().find_root().obj
    return output


def refuse(message: str) -> click.UsageError:
    return click.UsageError(message, ctx=click.get_current_context(silent=True))


def confirm(output: Output, action: str, *, yes: bool) -> None:
    """Ask before an action that cannot be undone, such as "purge 12 messages". Raise unless the answer is yes."""
    if yes:
        return
    if output.json or not sys.stdin.isatty():
        raise refuse(f"This would {action}, and there is no terminal to ask on. Add --yes to do it.")
    if not click.confirm(f"{action[0].upper()}{action[1:]}?", err=True):
        output.err.write("Nothing was changed.\n")
        raise click.Abort
