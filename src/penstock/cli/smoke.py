"""`penstock smoke`: asks every status route of an app, and tells which does not answer."""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import Any

import click
import httpx2

from penstock.app import App
from penstock.cli.output import BAD_ANSWER, FINE, Output, plain
from penstock.cli.reference import load
from penstock.model.errors import BadConfig
from penstock.web.site import make_site
from penstock.web.tokens import KnownToken, hashed

WAIT_SECONDS = 10.0


@click.command()
@click.argument("app", metavar="APP")
@click.option(
    "--url", metavar="URL", help="Of a server that runs, as `penstock serve` says it; by default none is needed."
)
@click.pass_obj
def smoke(output: Output, app: str, url: str | None) -> int:
    """Ask every status route of an app.

    Each has to answer with 200: /health, the state of every controller, and the routes of the app's own. Without --url the
    routes are asked in this process, on the app's database. A server that runs wants a token: PENSTOCK_TOKEN. Exit code 1
    if one failed, and its name.

    \b
    Example:
      penstock smoke appstore
      penstock smoke appstore --url http://127.0.0.1:8787
    """
    found = load(app)
    if url is not None and not os.environ.get("PENSTOCK_TOKEN"):
        raise BadConfig("A server wants a token: set PENSTOCK_TOKEN to one that it knows.", field="PENSTOCK_TOKEN")
    results = asyncio.run(_asked(found, routes_of(found), url))
    passed = all(each["passed"] for each in results)
    output.show({"passed": passed, "routes": results}, lambda console: _draw(console, results))
    return FINE if passed else BAD_ANSWER


def routes_of(app: App) -> list[str]:
    controllers = [f"/v1/controllers/{name}/status" for name in app.controllers.names()]
    return [
        "/health",
        "/health/deep",
        *controllers,
        *sorted(each.path for each in app.routes.ordered() if each.is_status),
    ]


async def _asked(app: App, routes: list[str], url: str | None) -> list[dict[str, Any]]:
    secret = secrets.token_urlsafe(16)
    site = make_site(app, tokens=[KnownToken("smoke", hashed(secret))])
    inside = httpx2.ASGITransport(app=site, raise_app_exceptions=False)
    token = os.environ.get("PENSTOCK_TOKEN", "") if url else secret
    client = httpx2.AsyncClient(
        transport=None if url else inside,
        base_url=url or "http://penstock",
        headers={"Authorization": f"Bearer {token}"},
        timeout=WAIT_SECONDS,
    )
    try:
        async with client:
            return [await _one(client, route) for route in routes]
    finally:
        await app.close()


async def _one(client: httpx2.AsyncClient, route: str) -> dict[str, Any]:
    try:
        answer = await client.get(route)
    except httpx2.HTTPError as error:
        return {"route": route, "passed": False, "status": None, "error": f"{type(error).__name__}: {error}"}
    passed = answer.status_code == httpx2.codes.OK
    told = None if passed else answer.text[:200]
    return {"route": route, "passed": passed, "status": answer.status_code, "error": told}


def _draw(console: Any, results: list[dict[str, Any]]) -> None:
    for each in results:
        mark = "[green]PASS[/]" if each["passed"] else "[red]FAIL[/]"
        said = " ".join(str(part) for part in (each["status"], each["error"]) if part)
        told = "" if each["passed"] else f"  {plain(said)}"
        console.print(f"{mark}  {plain(each['route'])}{told}")
