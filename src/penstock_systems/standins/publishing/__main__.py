"""`python -m penstock_systems.standins.publishing`: what the brand system calls, on this machine, until Ctrl-C."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import click
import uvicorn

import penstock as ps
from penstock_systems.standins.notifications import Arrivals
from penstock_systems.standins.publishing import PAGES, SocialFaults, make_world

GRACE_SECONDS = 2


@click.command()
@click.option("--count", type=click.Path(dir_okay=False, path_type=Path), help="The file that keeps what was posted.")
@click.option("--seed", default=1, show_default=True, help="The same seed, the same pages and faults.")
@click.option("--faults", default="{}", metavar="JSON", help='Shares of the posts, such as {"lost": 0.1}.')
@click.option(
    "--port", default=8792, show_default=True, type=click.IntRange(0, 65_535), help="0 takes any that is free."
)
@click.option(
    "--own-pages", is_flag=True, help="The search finds pages of this address, for callers without `--standins`."
)
def main(count: Path | None, seed: int, faults: str, port: int, own_pages: bool) -> None:
    """Serve fakes of a gateway, of web pages, of four social networks and of a Ghost site on loopback."""
    clock = ps.Client().clock
    given = SocialFaults(**json.loads(faults))
    with socket.create_server(("127.0.0.1", port)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = make_world(
            lambda: clock.now() / 1_000_000,
            arrivals=Arrivals(count),
            faults=given,
            seed=seed,
            pages_at=url if own_pages else PAGES,
        )
        click.echo(f"Fake servers for brands: {url}")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
