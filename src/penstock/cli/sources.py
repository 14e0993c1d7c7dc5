"""`penstock sources`: the sources of connectors, and what an operator does: run, enable, disable, reset."""

from __future__ import annotations

import click

from penstock.app import App
from penstock.cli.command import Noun, looking, looking_at_one, operating_one
from penstock.cli.output import Answer, Facts, Listed, Title, listed
from penstock.views import sources as view
from penstock.views.observer import Observer


@click.group(cls=Noun)
def sources() -> None:
    """List the sources of connectors, and run, enable, disable or reset one.

    `penstock connect` tries a connector before it is part of an app.

    Example:
      penstock sources list
      penstock sources show offers
      penstock sources run offers market.py
    """


@sources.command("list")
@looking
async def list_sources(observer: Observer) -> Answer:
    """List sources: how the last run of each ended, when it runs next, and its open alerts.

    Example:
      penstock sources list
      penstock sources list market.py --json
    """
    return listed(view.SOURCES, await view.SOURCES.read(observer))


@sources.command()
@looking_at_one
async def show(observer: Observer, name: str) -> Answer:
    """Show one source: why it does not run now, and its last runs. Runs that found nothing else than before are not kept.

    Example:
      penstock sources show offers
    """
    row, runs = await view.the_source(observer, name)
    return Answer(
        row | {"runs": runs}, Title(name, row["state"]), "", Facts(view.SOURCE, row), "", Listed(view.RUNS, runs)
    )


@sources.command()
@operating_one
async def run(app: App, name: str) -> Answer:
    """Make a source due now, whatever its cadence and back-off. A worker runs it.

    Example:
      penstock sources run offers
    """
    await app.sources.run_soon(name)
    return Answer({"source": name, "due": True}, f"Made {name} due. See how it ends with: penstock sources show {name}")


@sources.command()
@operating_one
async def enable(app: App, name: str) -> Answer:
    """Run a disabled or resting source again, from the next run on.

    Example:
      penstock sources enable offers
    """
    await app.sources.switch(name, enabled=True)
    return Answer({"source": name, "enabled": True}, f"Enabled {name}. It runs at the next tick of `collect`.")


@sources.command()
@operating_one
async def disable(app: App, name: str) -> Answer:
    """Stop running a source until it is enabled. Its cursor and records stay.

    Example:
      penstock sources disable offers
    """
    await app.sources.switch(name, enabled=False)
    return Answer(
        {"source": name, "enabled": False}, f"Disabled {name}. Enable it with: penstock sources enable {name}"
    )


@sources.command()
@operating_one
async def reset(app: App, name: str) -> Answer:
    """Forget the cursor of a source: its next run reads it from the start. Its records stay.

    Example:
      penstock sources reset offers
    """
    await app.sources.reset(name)
    return Answer({"source": name, "cursor": None}, f"Reset {name}. Its next run reads it from the start.")
