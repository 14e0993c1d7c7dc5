"""`python -m penstock_systems.standins.notifications`: the fake servers on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import click
import uvicorn

import penstock as ps
from penstock_systems.standins.notifications.resend import Faults
from penstock_systems.standins.notifications.server import make_servers
from penstock_systems.standins.notifications.smtp import SmtpFaults, serve_smtp

GRACE_SECONDS = 2


@click.command()
@click.option("--count", type=click.Path(dir_okay=False, path_type=Path), help="The file that keeps what arrived.")
@click.option("--seed", default=1, show_default=True, help="The same seed, the same faults.")
@click.option(
    "--port", default=8789, show_default=True, type=click.IntRange(0, 65_535), help="0 takes any that is free."
)
@click.option("--smtp", is_flag=True, help="Serve SMTP as well, on a port that is free. Needs aiosmtpd.")
@click.option("--faults", default="{}", metavar="JSON", help='Shares and times, such as {"lost": 0.01, "rate": 2}.')
@click.option("--smtp-faults", default="{}", metavar="JSON", help='Shares, such as {"lost": 0.01}.')
def main(count: Path | None, seed: int, port: int, smtp: bool, faults: str, smtp_faults: str) -> None:
    """Serve fakes of Resend, webhook receivers, Slack, Discord and Telegram on loopback."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        asyncio.run(_serve(listening, count, seed, smtp, Faults(**json.loads(faults)), json.loads(smtp_faults)))


async def _serve(
    listening: socket.socket, count: Path | None, seed: int, smtp: bool, faults: Faults, smtp_faults: dict[str, float]
) -> None:
    clock = ps.Client().clock

    def now() -> float:
        return clock.now() / 1_000_000

    app = make_servers(now, count=count, seed=seed, faults=faults)
    said = f"Fake servers of notifications: http://127.0.0.1:{listening.getsockname()[1]}"
    if smtp:
        mail = await serve_smtp(app.state.arrivals, now, seed=seed, faults=SmtpFaults(**smtp_faults))
        said += f" smtp://127.0.0.1:{mail.sockets[0].getsockname()[1]}"
    click.echo(said)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS)
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    main()
