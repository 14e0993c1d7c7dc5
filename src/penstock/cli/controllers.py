"""`penstock controllers`: what each controller does and why, and the levers an operator has: start, stop, reset, tune."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.operating import app_at, operating, refuse, show_help
from penstock.cli.output import NotFound, Output, age_shown, code_name, fill, plain, table
from penstock.model.errors import NoSuchController

if TYPE_CHECKING:
    from rich.console import Console

SAID_LINES = 10  # the last changes of pace that are drawn

name_argument = click.argument("name", metavar="NAME")
app_argument = click.argument("app", metavar="APP")


@click.group(invoke_without_command=True)
@click.pass_context
def controllers(ctx: click.Context) -> None:
    """Controllers: list, status, start, stop, reset, tune.

    The app is named too: how a controller decides its pace is declared there.

    \b
    Example:
      penstock controllers list market.py
      penstock controllers status prices market.py
      penstock controllers stop prices market.py
    """
    show_help(ctx)


@controllers.command("list")
@app_argument
@targets.database_option
@click.pass_obj
def list_controllers(output: Output, app: str, database: str | None) -> None:
    """All controllers of an app, each with its pace and what it has done.

    \b
    Example:
      penstock controllers list market.py
    """

    async def look(opened: App) -> list[dict[str, Any]]:
        return [await opened.controllers.status(name) for name in sorted(opened.controllers)]

    found = _with_app(app, database, look)
    output.show({"controllers": found}, lambda console: _draw_all(console, found))


@controllers.command()
@name_argument
@app_argument
@targets.database_option
@click.pass_obj
def status(output: Output, name: str, app: str, database: str | None) -> None:
    """One controller: pace, success, totals, and why the pace changed.

    It is read from what is saved, and waits for no tick.

    \b
    Example:
      penstock controllers status prices market.py
      penstock controllers status prices market.py --json
    """
    found = _with_app(app, database, lambda opened: opened.controllers.status(name))
    output.show(found, lambda console: _draw(console, found))


@controllers.command()
@name_argument
@app_argument
@targets.database_option
@click.pass_obj
def start(output: Output, name: str, app: str, database: str | None) -> None:
    """Run on, or begin: a cooldown ends, and the next tick comes in a second.

    \b
    Example:
      penstock controllers start prices market.py
    """
    found = _operate(name, "start", app, database)
    _say(output, found, f"{name} runs; its next tick is at {found['next_tick_at']}.")


@controllers.command()
@name_argument
@app_argument
@targets.database_option
@click.pass_obj
def stop(output: Output, name: str, app: str, database: str | None) -> None:
    """Start no further item. What is under way is finished.

    It stays stopped over restarts, until it is started.

    \b
    Example:
      penstock controllers stop prices market.py
    """
    found = _operate(name, "stop", app, database)
    _say(output, found, f"{name} has stopped. `penstock controllers start {name} {app}` lets it go on.")


@controllers.command()
@name_argument
@app_argument
@targets.database_option
@click.option("--keep-stopped", is_flag=True, help="Do not start it if it is stopped.")
@click.pass_obj
def reset(output: Output, name: str, app: str, database: str | None, keep_stopped: bool) -> None:
    """Begin anew, as if it had never run: pace, counts and items set aside.

    What a tick under way learns is dropped. A stopped controller starts, unless `--keep-stopped` is given.

    \b
    Example:
      penstock controllers reset prices market.py
    """
    found = _operate(name, "reset", app, database, keep_stopped=keep_stopped)
    _say(output, found, f"{name} begins anew{'' if found['running'] else ' and is stopped'}.")


@controllers.command()
@name_argument
@app_argument
@targets.database_option
@click.option("--rate", type=float, metavar="R", help="A pilot: starts a second at most.")
@click.option("--parallel", type=int, metavar="N", help="A pilot: items under way at most.")
@click.option("--batch-size", type=int, metavar="N", help="Zones: items a tick.")
@click.option("--interval-ms", type=int, metavar="MS", help="Zones: milliseconds between two ticks.")
@click.pass_obj
def tune(output: Output, /, name: str, app: str, database: str | None, **given: float | None) -> None:
    """Set the pace by hand, within its rails and at once.

    A pilot has a rate and a number under way; zones have a batch and an interval. It goes on from there by itself.

    \b
    Example:
      penstock controllers tune prices market.py --rate 2.5
      penstock controllers tune prices market.py --batch-size 10 --interval-ms 30000
    """
    wanted = {key: value for key, value in given.items() if value is not None}
    if not wanted:
        raise refuse("Say what to tune: --rate and --parallel, or --batch-size and --interval-ms.")
    found = _operate(name, "tune", app, database, **wanted)
    params = found["params"]
    _say(output, found, f"{name}: batch {params['batch_size']}, every {params['interval_human']}.")


def _operate(name: str, verb: str, app: str, database: str | None, **wanted: object) -> dict[str, Any]:
    found: dict[str, Any] = _with_app(app, database, lambda opened: opened.controllers.operate(name, verb, **wanted))
    return found


def _with_app(reference: str, database: str | None, deed: Callable[[App], Awaitable[Any]]) -> Any:
    found = app_at(reference, database)

    async def operate() -> Any:
        async with operating(found) as app:
            return await deed(app)

    try:
        return asyncio.run(operate())
    except NoSuchController as error:
        raise NotFound(str(error), code=code_name(error)) from error


def _say(output: Output, told: dict[str, Any], sentence: str) -> None:
    output.show(told, lambda console: console.print(plain(sentence)))


def _draw_all(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("The app has no controllers.")
        return
    drawn = table(
        ("controller", "left"), ("mode", "left"), ("does", "left"), ("a minute", "right"), ("success", "right")
    )
    rows = [
        (
            each["name"],
            each["mode"],
            _does(each),
            f"{each['completions_per_minute']:,.1f}",
            f"{each['success_rate_pct']:.1f} %",
        )
        for each in found
    ]
    console.print(fill(drawn, rows))


def _does(each: dict[str, Any]) -> str:
    if not each["running"]:
        return "stopped"
    return f"cools down, {each['cooldown_remaining_s']} s left" if each["in_cooldown"] else "runs"


def _draw(console: Console, each: dict[str, Any]) -> None:
    console.print(plain(f"{each['name']} ({each['mode']}): {_does(each)}"))
    lifetime, rolling = each["lifetime"], each["rolling"]
    facts = [
        ("pace", f"{each['rate_per_second']:g} a second, batch {each['current_batch_size']}"),
        ("rate", f"{each['completions_per_minute']:,.1f} a minute, {each['projected_per_day']:,} a day"),
        ("success", f"{rolling['success_rate_pct']:.1f} % of {rolling['sample_size']} ({rolling['confidence']})"),
        ("ever", f"{lifetime['completed']:,} done, {lifetime['failed']:,} failed of {lifetime['dispatched']:,}"),
        ("last tick", f"{age_shown(each['seconds_since_last_tick'])} ago" if each["last_tick_at"] else "never"),
        *((said["at"], said["text"]) for said in each["ticks"][-SAID_LINES:]),
    ]
    console.print(fill(table(("", "left"), ("", "left")), facts))
