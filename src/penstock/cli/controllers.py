"""`penstock controllers` and `penstock paces`: how fast each service is asked and why, and what an operator does about it."""

from __future__ import annotations

import click

from penstock.app import App
from penstock.cli.command import CliCommand, Noun, looking, operating_app, operating_one_of_app, refuse
from penstock.cli.output import Answer, Facts, Listed, Title, listed
from penstock.views import paces as view
from penstock.views.observer import Observer
from penstock.views.view import View

TICKS_SHOWN = 10  # the last changes of pace


@click.command(cls=CliCommand)
@looking
async def paces(observer: Observer) -> Answer:
    """List paces: the rate of each, the limit that was found, and refusals.

    A controller has a pace, and so has each `app.pace(...)` that handlers share. They are saved every half minute. The
    limit is empty until the service has refused a request for the first time.

    Example:
      penstock paces
      penstock paces market.db --json
    """
    return listed(view.PACES, await view.PACES.read(observer))


@click.group(cls=Noun)
def controllers() -> None:
    """List controllers, and start, stop, reset or tune one.

    Name the app too: how a controller decides its pace is declared in its code.

    Example:
      penstock controllers list market.py
      penstock controllers status prices market.py
      penstock controllers stop prices market.py
    """


@controllers.command("list")
@operating_app
async def list_controllers(app: App) -> Answer:
    """List the controllers of an app, each with its pace and success.

    Example:
      penstock controllers list market.py
    """
    return listed(view.CONTROLLERS, await view.CONTROLLERS.read(app))


@controllers.command()
@operating_one_of_app
async def status(app: App, name: str) -> Answer:
    """Show one controller: pace, success, totals, and why the pace changed.

    It is read from what is saved, without waiting for a tick.

    Example:
      penstock controllers status prices market.py
      penstock controllers status prices market.py --json
    """
    row = await app.controllers.status(name)
    ticks = View("ticks", view.TICKS, empty="The pace has not changed yet.")
    parts = "", Facts(view.CONTROLLER, row), "", Listed(ticks, row["ticks"][-TICKS_SHOWN:])
    return Answer(row, Title(f"{name} ({row['mode']})", view.controller_state(row)), *parts)


@controllers.command()
@operating_one_of_app
async def start(app: App, name: str) -> Answer:
    """Start a controller, or end its cooldown. The next tick follows within a second.

    Example:
      penstock controllers start prices market.py
    """
    row = await app.controllers.operate(name, "start")
    return Answer(row, f"Started controller {name}. See it with: penstock controllers status {name} APP")


@controllers.command()
@operating_one_of_app
async def stop(app: App, name: str) -> Answer:
    """Stop a controller. It starts no further item; those that run are finished.

    It stays stopped over restarts, until it is started.

    Example:
      penstock controllers stop prices market.py
    """
    row = await app.controllers.operate(name, "stop")
    return Answer(row, f"Stopped controller {name}. Start it with: penstock controllers start {name} APP")


@controllers.command()
@operating_one_of_app
@click.option("--keep-stopped", is_flag=True, help="Do not start it if it is stopped.")
async def reset(app: App, name: str, keep_stopped: bool) -> Answer:
    """Delete the learned rate, the counts and the items that were set aside.

    What a running tick learns is dropped. A stopped controller starts, unless `--keep-stopped` is given.

    Example:
      penstock controllers reset prices market.py
    """
    row = await app.controllers.operate(name, "reset", keep_stopped=keep_stopped)
    return Answer(row, f"Reset controller {name}. It is {view.controller_state(row)}.")


@controllers.command()
@operating_one_of_app
@click.option("--rate", type=float, metavar="R", help="Mode pilot: starts a second at most.")
@click.option("--parallel", type=int, metavar="N", help="Mode pilot: items that run at once, at most.")
@click.option("--batch-size", type=int, metavar="N", help="Mode zones: items a tick.")
@click.option("--interval-ms", type=int, metavar="MS", help="Mode zones: milliseconds between two ticks.")
async def tune(app: App, name: str, **given: float | None) -> Answer:
    """Set the pace by hand, within the declared limits and at once.

    The mode pilot has a rate and a number of items at once; zones have a batch and an interval. It adapts from there.

    Example:
      penstock controllers tune prices market.py --rate 2.5
      penstock controllers tune prices market.py --batch-size 10
    """
    wanted = {key: value for key, value in given.items() if value is not None}
    if not wanted:
        raise refuse("Nothing to tune. Give --rate and --parallel, or --batch-size and --interval-ms.")
    row = await app.controllers.operate(name, "tune", **wanted)
    set_to = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in wanted.items())
    return Answer(row, f"Tuned controller {name}: {set_to}. See it with: penstock controllers status {name} APP")
