"""`python -m penstock_systems.standins.paid`: the fake paid services on this machine, until Ctrl-C."""

from __future__ import annotations

import socket

import click
import uvicorn

import penstock as ps
from penstock_systems.standins.paid import make_paid

GRACE_SECONDS = 2


@click.command()
@click.option("--seed", default=1, show_default=True, help="The same seed, the same answers.")
@click.option("--seconds", default=0.2, show_default=True, help="How long a chat takes.")
@click.option(
    "--port", default=8790, show_default=True, type=click.IntRange(0, 65_535), help="0 takes any that is free."
)
def main(seed: int, seconds: float, port: int) -> None:
    """Serve a fake of a chat service and of a web search on loopback."""
    clock = ps.Client().clock
    app = make_paid(lambda: clock.now() / 1_000_000, seconds=seconds, seed=seed)
    with socket.create_server(("127.0.0.1", port)) as listening:
        click.echo(f"Fake paid services: http://127.0.0.1:{listening.getsockname()[1]}")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
