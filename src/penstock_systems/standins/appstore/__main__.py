"""`python -m penstock_systems.standins.appstore`: the stand-in on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from pathlib import Path

import click
import uvicorn

from penstock_systems.standins.appstore.app import DAY_SECONDS, FIRST_DAY
from penstock_systems.standins.appstore.catalogue import APPS_MAX, Catalogue
from penstock_systems.standins.appstore.manners import Manners
from penstock_systems.standins.appstore.markets import MARKETS_MAX
from penstock_systems.standins.appstore.store import make_store
from penstock_systems.standins.appstore.truth import write_truth

GRACE_SECONDS = 2  # what requests get to finish in after Ctrl-C


@click.command()
@click.option("--apps", default=3_000, show_default=True, type=click.IntRange(1, APPS_MAX))
@click.option("--markets", default=20, show_default=True, type=click.IntRange(0, MARKETS_MAX))
@click.option("--seed", default=1, show_default=True, help="The seed. The same seed generates the same store.")
@click.option("--without", multiple=True, help="The name of a planted market to leave out. Repeatable.")
@click.option("--port", default=8788, show_default=True, type=click.IntRange(0, 65_535), help="0 selects a free port.")
@click.option(
    "--day", default=0, show_default=True, help="The day the store's calendar starts on; 0 is 1 January 2026."
)
@click.option("--whole-pages", is_flag=True, help="Product pages of half a megabyte, like the real ones.")
@click.option("--strict", is_flag=True, help="Refuses requests like the real store, and bans clients that continue.")
@click.option(
    "--truth",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Writes the planted markets to this file first, for the evaluation.",
)
def main(
    apps: int,
    markets: int,
    seed: int,
    without: tuple[str, ...],
    port: int,
    day: int,
    whole_pages: bool,
    strict: bool,
    truth: Path | None,
) -> None:
    """Serve a seeded App Store on loopback."""
    try:
        catalogue = Catalogue(apps, markets, seed, without=without)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if truth:
        write_truth(catalogue, truth)
    manners = dataclasses.replace(Manners.apple() if strict else Manners(), whole_pages=whole_pages)
    with socket.create_server(("127.0.0.1", port)) as listening:
        click.echo(f"Fake App Store, {apps:,} apps from seed {seed}: http://127.0.0.1:{listening.getsockname()[1]}")
        asyncio.run(_serve(catalogue, listening, day, manners))


async def _serve(catalogue: Catalogue, listening: socket.socket, day: int, manners: Manners) -> None:
    # The calendar starts anew with each run, so that a run can be repeated on another date.
    elapsed = asyncio.get_running_loop().time
    midnight = FIRST_DAY.timestamp() + day * DAY_SECONDS - elapsed()
    store = make_store(catalogue, lambda: midnight + elapsed(), manners)
    config = uvicorn.Config(store, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS)
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    main()
