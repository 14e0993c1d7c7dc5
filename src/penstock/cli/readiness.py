"""`penstock trial` and `penstock smoke`: a few items through every stage of an app, and a request to every status route."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import httpx2

from penstock.app import App
from penstock.cli.command import Command, by_this_user, this_output
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Marked, NotFound, draw
from penstock.cli.reference import load
from penstock.gateway import standins as standing_in
from penstock.model.errors import BadConfig
from penstock.readiness.trial import ITEMS, Passed
from penstock.web.site import make_site
from penstock.web.tokens import KnownToken, hashed

WAIT_SECONDS = 10.0
SHOWN = 200  # characters of an answer

app_argument = click.argument("app", metavar="APP")


# -- trial --------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@app_argument
@click.option("--standins", is_flag=True, help="Against the app's fake servers, in virtual time: seconds, no network.")
@click.option("--items", type=click.IntRange(1, 1_000), default=ITEMS, show_default=True, help="Items to follow.")
@click.option("--seed", type=int, default=1, show_default=True, help="With --standins: repeat a trial exactly.")
def trial(app: str, standins: bool, items: int, seed: int) -> Answer:
    """Follow a few items through every stage of an app.

    Each stage is asked what became of these very items. It runs on a temporary database. The app's own
    database records that it passed; an app that requires a trial does not start before. Exit code 1 if a stage fails.

    Example:
      penstock trial appstore --standins
      penstock trial market.py --items 3
    """
    found, output = load(app), this_output()
    if not found.trial:
        raise NotFound(f"{app} declares no trial. `@app.trial.stage(...)` above a query declares a stage of one.")
    followed: list[Passed] = []

    def report(passed: Passed) -> None:
        followed.append(passed)
        if not output.json:
            text = f"{passed.stage:<14} {passed.items} of {passed.of} items passed"
            draw(output.console(), [Marked("pass" if passed.passed else "fail", text)])
            output.out.flush()

    with TemporaryDirectory(prefix="penstock-trial-") as folder:
        if standins:
            _in_virtual_time(found, items, seed, report, Path(folder))
        else:
            _in_real_time(found, items, report, Path(folder))
    passed = len(followed) == len(found.trial.stages) and all(each.passed for each in followed)
    if passed:
        asyncio.run(_note(found))
    facts = {"passed": passed, "stages": [each._asdict() for each in followed]}
    if passed:
        return Answer(facts, "", "Every stage passed.", f"Start it with: penstock run {app}")
    last = followed[-1:]
    why = [
        f"Of {each.of} items {each.items} passed stage {each.stage}; it needs {each.least}. Check what triggers it and what "
        "it reads. The log above has its failures."
        for each in last
    ]
    return Answer(facts, "", *why, code=BAD_ANSWER)


def _in_virtual_time(app: App, items: int, seed: int, report: Callable[[Passed], None], folder: Path) -> None:
    from penstock import testing

    async def main() -> None:
        running = testing.TestApp(app, seed=seed, folder=folder)
        standing_in.mount(app.standins, lambda: running.now.timestamp())
        async with running:
            await app.trial.follow(lambda seconds: running.advance(seconds=seconds), report, items=items)

    with chdir(folder):
        testing.run(main, seed=seed)


def _in_real_time(app: App, items: int, report: Callable[[Passed], None], folder: Path) -> None:
    if urls := os.environ.get(standing_in.VARIABLE):
        standing_in.forward(app.standins, urls.split(","))

    async def main() -> None:
        running = asyncio.ensure_future(app.run())
        following = asyncio.ensure_future(app.trial.follow(asyncio.sleep, report, items=items))
        both: set[asyncio.Future[Any]] = {running, following}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running  # it failed, and raises why
            await following
        finally:
            following.cancel()
            app.stop()
            with suppress(asyncio.CancelledError):
                await running

    before, app.database = app.database, str(folder / "trial.db")
    try:
        with chdir(folder):
            asyncio.run(main())
    finally:
        app.database = before


async def _note(app: App) -> None:
    with by_this_user():
        async with app:
            await app.trial.note_passed()


# -- smoke --------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@app_argument
@click.option("--url", metavar="URL", help="Of a running server, as `penstock serve` prints it; none is needed.")
def smoke(app: str, url: str | None) -> Answer:
    """Request every status route of an app.

    Each has to answer with 200: /health, the state of every controller, and the app's own status routes. Without --url they
    are called in this process, on the app's database. A running server needs a token: PENSTOCK_TOKEN. Exit code 1 if a route
    failed.

    Example:
      penstock smoke appstore
      penstock smoke appstore --url http://127.0.0.1:8787
    """
    found = load(app)
    if url is not None and not os.environ.get("PENSTOCK_TOKEN"):
        raise BadConfig("A server needs a token: set PENSTOCK_TOKEN to one that it knows.", field="PENSTOCK_TOKEN")
    routes = asyncio.run(_requested(found, routes_of(found), url))
    passed = all(each["passed"] for each in routes)
    return Answer({"passed": passed, "routes": routes}, *map(_mark, routes), code=FINE if passed else BAD_ANSWER)


def _mark(each: dict[str, Any]) -> Marked:
    error = "" if each["passed"] else "  " + " ".join(str(part) for part in (each["status"], each["error"]) if part)
    return Marked("pass" if each["passed"] else "fail", f"{each['route']}{error}")


def routes_of(app: App) -> list[str]:
    controllers = [f"/v1/controllers/{name}/status" for name in app.controllers.names()]
    own = sorted(each.path for each in app.routes.ordered() if each.is_status)
    return ["/health", "/health/deep", *controllers, *own]


async def _requested(app: App, routes: list[str], url: str | None) -> list[dict[str, Any]]:
    secret = secrets.token_urlsafe(16)
    site = make_site(app, tokens=[KnownToken("smoke", hashed(secret))])
    token = os.environ.get("PENSTOCK_TOKEN", "") if url else secret
    client = httpx2.AsyncClient(
        transport=None if url else httpx2.ASGITransport(app=site, raise_app_exceptions=False),
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
    error_text = None if passed else answer.text[:SHOWN]
    return {"route": route, "passed": passed, "status": answer.status_code, "error": error_text}
