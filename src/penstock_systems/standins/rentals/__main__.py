"""`python -m penstock_systems.standins.rentals`: the fake portals on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import socket

import click
import uvicorn

import penstock as ps
from penstock_systems.standins.rentals.city import make_city
from penstock_systems.standins.rentals.server import make_portals

GRACE_SECONDS = 2


@click.command()
@click.option("--seed", default=1, show_default=True, help="The same seed, the same city.")
@click.option("--flats", default=3_000, show_default=True, type=click.IntRange(1, 100_000))
@click.option(
    "--port", default=8790, show_default=True, type=click.IntRange(0, 65_535), help="0 takes any that is free."
)
def main(seed: int, flats: int, port: int) -> None:
    """Serve fakes of five portals for rent on loopback."""
    clock = ps.Client().clock
    portals = make_portals(lambda: clock.now() / 1_000_000, city=make_city(seed, flats))
    with socket.create_server(("127.0.0.1", port)) as listening:
        click.echo(f"Fake portals: http://127.0.0.1:{listening.getsockname()[1]}")
        config = uvicorn.Config(portals, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main()
