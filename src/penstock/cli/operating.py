"""What commands that change something share: an open app, a question before what cannot be undone, a bar."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.output import NotFound, Output, code_name
from penstock.model.errors import BadMessage, BadParameter, NoSuchLetter, NoSuchQueue, TooLarge
from penstock.runtime.audit import operated_by
from penstock.stores import checked_address

yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal to ask on.")


def show_help(ctx: click.Context) -> None:
    """A noun without a verb: says which verbs there are."""
    if ctx.invoked_subcommand is None:
        output: Output = ctx.obj
        assert isinstance(ctx.command, click.Group)
        output.show({"commands": list(ctx.command.commands)}, lambda console: console.out(ctx.get_help()))


@asynccontextmanager
async def operating(found: targets.Target) -> AsyncIterator[App]:
    """The app with its database open. Migrations are left to `penstock migrate`, and no database is made."""
    with targets.reading(found):
        pass  # says what is wrong with it before anything is opened that writes
    app = found.app or App(found.name, database=found.address, config=found.config)
    with plainly(), by_this_user():
        await app.open(migrate=False)
        try:
            yield app
        finally:
            await app.close()


def by_this_user() -> AbstractContextManager[None]:
    """Record what is changed inside as the work of the user who runs this command."""
    return operated_by(this_user(), "cli")


def this_user() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"  # it has no name on this host
    return f"{user}@{socket.gethostname()}"


def app_at(reference: str, database: str | None) -> targets.Target:
    """For what only the app's code can tell: the app, and its own database or the one that is named."""
    found = targets.find(reference, None)
    if found.app is None:
        raise refuse(f"{found.database} is a database. Name the app (market.py), and the database with --database.")
    if database is None:
        return found
    found.app.database = checked_address(database)
    return targets.Target(database, found.config, found.app)


@contextmanager
def plainly() -> Iterator[None]:
    """What was asked for is not there, or does not fit: both have exit codes of their own."""
    try:
        yield
    except (NoSuchQueue, NoSuchLetter) as error:
        raise NotFound(str(error), code=code_name(error)) from error
    except (BadMessage, TooLarge) as error:
        raise BadParameter(str(error), code=code_name(error)) from error


def refuse(message: str) -> click.UsageError:
    return click.UsageError(message, ctx=click.get_current_context(silent=True))


def confirm(output: Output, deed: str, *, yes: bool) -> None:
    """Asks before a deed that cannot be undone: "purge 12 messages". Goes on only after a yes."""
    if yes:
        return
    if output.json or not sys.stdin.isatty():
        raise refuse(f"This would {deed}, and there is nobody to ask. Add --yes if you are sure.")
    if not click.confirm(f"{deed[0].upper()}{deed[1:]}?", err=True):
        output.err.write("Nothing was changed.\n")
        raise click.Abort


@contextmanager
def progress(output: Output, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's stderr, moved by calling what it gives with how much is done by now; elsewhere nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    more = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    shown = not output.json and output.err.isatty()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *more)
    with Progress(*columns, console=Console(file=output.err), transient=True, disable=not shown) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
