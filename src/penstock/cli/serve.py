"""`penstock serve`: an app's routes, queues and database over HTTP, until a signal. It runs no handlers."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import click

from penstock import logs
from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.command import CliCommand, this_output
from penstock.cli.listening import PORT_MAX, listen, make_server, tokens_for, url_of
from penstock.cli.output import FINE, INTERRUPTED, Output
from penstock.cli.reference import load
from penstock.config import KnownToken
from penstock.model.errors import BadConfig
from penstock.model.redaction import address_shown
from penstock.views.view import printable
from penstock.web.connection import AddressLimit
from penstock.web.ui.access import Access


@click.command(cls=CliCommand)
@click.argument("app", metavar="[APP]", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    envvar="PENSTOCK_PORT",
    help="The port to listen on, 8787 unless penstock.toml or PENSTOCK_PORT says otherwise; 0 takes any that is free.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="The IP address of a reverse proxy in front, which may use every connection; repeatable.",
)
def serve(app: str | None, host: str, port: int | None, proxies: tuple[str, ...]) -> int:
    """Serve an app over HTTP until Ctrl-C: its routes, queues and database, and the dashboard at /ui.

    Handlers do not run here: start `penstock run` beside it. Requests need a token: PENSTOCK_TOKEN, or those of
    penstock.toml. Without any, one is made for this run and printed, but only on an address that no other machine can reach.

    Example:
      penstock serve market.py
      PENSTOCK_TOKEN=... penstock serve market.py --host 0.0.0.0 --port 80
    """
    served = load(app) if app is not None else _without_code()
    tokens, secret = tokens_for(served.config, host)
    limit = AddressLimit(proxies=tuple(map(_address, proxies)))
    listening = listen(host, served.config.port if port is None else port)
    detach = logs.attach(served.events, served.config.log)
    try:
        return asyncio.run(_serve(this_output(), served, listening, limit, tokens, secret))
    finally:
        listening.close()
        detach()


def _without_code() -> App:
    """Return an app without code: its queues are those registered in the database."""
    found = targets.find(None, None)
    return App(found.name, database=found.address, config=found.config)


def _address(proxy: str) -> str:
    try:
        return str(ipaddress.ip_address(proxy))
    except ValueError as error:
        raise BadConfig(f"--proxy is {proxy!r}, which is not an IP address.", field="proxy") from error


async def _serve(
    output: Output,
    app: App,
    listening: socket.socket,
    limit: AddressLimit,
    tokens: list[KnownToken],
    secret: str | None,
) -> int:
    url = url_of(listening)
    async with app:
        access = Access(tokens, app.config.dashboard.hosts)
        server = make_server(app, tokens, limit, access)
        server.handle_signals()
        _announce(output, app, url, secret, f"{url}/ui/" + (f"login?link={access.make_link()}" if secret else ""))
        await server.serve(sockets=[listening])
    return INTERRUPTED if server.interrupted else FINE


def _announce(output: Output, app: App, url: str, secret: str | None, dashboard: str) -> None:
    """Write the address and the token before the first request can arrive: a program that started this reads them."""
    if output.json:
        facts = {"app": app.name, "database": address_shown(app.database), "url": url, "dashboard": dashboard}
        output.show(facts if secret is None else {**facts, "token": secret}, lambda _: None)
        output.out.flush()
        return
    output.err.write(
        f"{printable(app.name)}: serving {printable(address_shown(app.database))} at {url}. Ctrl-C stops.\n"
    )
    if secret is not None:
        output.err.write(f"No token is configured. The token of this run: {secret}\n")
    once = ", which logs in once" if secret is not None else ""
    output.err.write(f"Dashboard: {dashboard}{once}\n")
