"""`penstock check`, `trial` and `smoke`: an app's code, a few items through every stage of it, and its status routes."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import apsw
import click
import httpx2

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.command import CliCommand, by_this_user, this_output
from penstock.cli.doctor import DECLARE, undeclared
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Marked, NotFound, draw
from penstock.cli.reference import load
from penstock.config import KnownToken
from penstock.model.errors import BadConfig, BadStatement, PenstockError
from penstock.outbound import standins as standing_in
from penstock.readiness import autonomy
from penstock.readiness.autonomy import Hot, annotated, slow
from penstock.readiness.lints import Finding, counts, fixed_batches, singletons
from penstock.readiness.topology import fixed_concurrency, loose_ends
from penstock.readiness.trial import ITEMS, Passed
from penstock.services.findings import findings as service_findings
from penstock.services.findings import queue_findings
from penstock.views.observer import Target
from penstock.web.site import make_site
from penstock.web.tokens import hashed


def _tasks(app: App) -> Iterator[Finding]:
    return fixed_batches((task.name, task.function) for task in app.crons.tasks.values())


def _names(app: App) -> Iterator[Finding]:
    return singletons(_modules(app))


def _queues(app: App) -> Iterator[Finding]:
    return loose_ends(app.queues.values(), _modules(app), alerted=bool(app.sinks))


def _concurrency(app: App) -> Iterator[Finding]:
    return fixed_concurrency(app.queues.values(), _modules(app))


def _services(app: App) -> Iterator[Finding]:
    return service_findings(app, _modules(app))


def _undeclared(app: App) -> Iterator[Finding]:
    found = Target(app.database, app.config, app)
    try:
        if targets.is_there(found):
            with targets.reading(found) as reading:
                for queue in undeclared(app, reading):
                    yield Finding("", 0, f"Messages wait in a queue that the app does not declare: {queue}.", DECLARE)
    except PenstockError:
        return  # `penstock doctor` reports what is wrong with a database


def _counts(app: App) -> Iterator[Finding]:
    tasks = ((each.function, each.when) for each in app.crons.tasks.values())
    return counts(chain(*tasks, (each.function for each in app.routes.ordered() if each.is_status and not each.cache)))


def _plans(app: App) -> Iterator[Finding]:
    """Read the plans on an empty database with the app's tables, which is deleted afterwards."""
    if not app.db.hot_queries:
        return
    with TemporaryDirectory(prefix="penstock-check-") as folder:
        before, app.database = app.database, str(Path(folder, "check.db"))
        try:
            asyncio.run(_open_once(app))
            with closing(apsw.Connection(app.database)) as connection:
                lists = {str(name) for (name,) in connection.execute(PARTIAL)}
                yield from slow([Hot(*each) for each in app.db.hot_queries], partial(_plan, connection), lists)
        finally:
            app.database = before


async def _open_once(app: App) -> None:
    async with app:
        pass


def _plan(connection: apsw.Connection, sql: str) -> list[str]:
    try:
        return [str(row[-1]) for row in connection.execute(f"explain query plan {sql}", _Nothing())]
    except apsw.Error as error:
        raise BadStatement(f"A hot query cannot be prepared: {error}: {' '.join(sql.split())[:120]}") from error


class _Nothing(dict[str, None]):
    """A value for every parameter: a plan does not depend on which."""

    def __missing__(self, name: str) -> None:
        return None


class AppCheck(NamedTuple):
    """`loose`: it applies only to apps that require a trial, because they run by themselves. `note`: its findings are listed,
    and the check does not fail."""

    name: str
    look: Callable[[App], Iterator[Finding]]
    loose: bool = False
    note: bool = False


PARTIAL = """
select indexes.name from sqlite_schema as tables, pragma_index_list(tables.name) as indexes
where tables.type = 'table' and indexes.partial
"""
RESPONSIBLE, EXPECTED = "who is responsible for the app", "what a month is expected to cost"
READERS = "who reads the app's alerts and figures"
CHECKS: dict[str, AppCheck] = {
    "fixed-batch": AppCheck("No cron task calls a service for each of a batch", _tasks),
    "singleton-name": AppCheck("Singletons are addressed by their one name", _names),
    "hot-queries": AppCheck("Hot queries go by an index, without scan or sort", _plans),
    "undeclared-queues": AppCheck("Every queue that holds messages is declared", _undeclared),
    "services": AppCheck("Services call only what they declare, and touch only their own tables", _services),
    "command-queues": AppCheck("Each service has one queue of commands of its own", queue_findings),
    "rationale": AppCheck("Every cron task has a reason for its schedule", autonomy.reasons),
    "concurrency": AppCheck("Every fixed number of handlers has a reason", _concurrency),
    "open-routes": AppCheck("Every route asks for a scope or a service key", autonomy.open_routes, note=True),
    "topology": AppCheck(
        "Every message has a sender, a handler, and a handler of its dead letters", _queues, loose=True
    ),
    "exit-condition": AppCheck("Every cron task looks before it works", autonomy.exits, loose=True),
    "ceiling": AppCheck("Every cron task has a ceiling", autonomy.ceilings, loose=True),
    "trial": AppCheck("A trial is declared: output comes before input", autonomy.trials, loose=True),
    "counting": AppCheck("No cron task and no status route counts a whole table", _counts, loose=True),
    "smoke": AppCheck("The app has a status route that `penstock smoke` can ask", autonomy.smoke, loose=True),
    "owner": AppCheck("The deployment names its owner", annotated("owner", RESPONSIBLE, '"market team"'), loose=True),
    "expected-cost": AppCheck(
        f"The deployment says {EXPECTED}", annotated("usd_expected", EXPECTED, "1.5"), loose=True
    ),
    "audience": AppCheck(
        f"The deployment says {READERS}", annotated("audience", READERS, '"two analysts, weekly"'), loose=True
    ),
}


@click.command(cls=CliCommand)
@click.argument("app", metavar="APP")
def check(app: str) -> Answer:
    """Check an app before it runs.

    It reads the code, and creates the tables in a temporary database. In the app's own database it reads which queues hold
    messages. Exit code 1 if a check failed.

    Example:
      penstock check market.py
      penstock check package.market:app --json
    """
    checks = list(_checked(load(app)))
    passed = all(each["status"] != "fail" for each in checks)
    shown = [each for each in checks if each["status"] != "skip"]
    skipped = (
        f"{len(checks) - len(shown)} checks are only for apps that require a trial: ps.App(..., require_trial=True)"
    )
    parts = [*map(_finding_mark, shown), *(["", skipped] if len(shown) < len(checks) else [])]
    return Answer({"passed": passed, "checks": checks}, *parts, code=FINE if passed else BAD_ANSWER)


def _finding_mark(each: dict[str, Any]) -> Marked:
    if each["status"] == "pass":
        return Marked("pass", each["name"])
    place = f"{each['file']}:{each['line']}: " if each["file"] else ""
    return Marked(each["status"], each["name"], f"{place}{each['message']}", f"→ {each['fix']}")


def _checked(app: App) -> Iterator[dict[str, Any]]:
    nothing = {"file": None, "line": None, "message": "", "fix": ""}
    for id, check in CHECKS.items():
        if check.loose and not app.requires_trial:
            why = {"message": "only for an app that requires a trial"}
            yield {"id": id, "name": check.name, "status": "skip", **nothing, **why}
            continue
        found = list(check.look(app))
        for each in found:
            yield {"id": id, "name": check.name, "status": "note" if check.note else "fail", **each._asdict()}
        if not found:
            yield {"id": id, "name": check.name, "status": "pass", **nothing}


def _modules(app: App) -> list[ModuleType]:
    """Return the modules of the app and of its package: its tasks, handlers and objects."""
    own = [module for module in list(sys.modules.values()) if any(each is app for each in vars(module).values())]
    packages = {module.__name__.rpartition(".")[0] for module in own} - {""}
    return [
        module
        for name, module in sorted(sys.modules.items())
        if module in own or any(name.startswith(f"{package}.") for package in packages)
    ]


WAIT_SECONDS = 10.0
SHOWN = 200  # characters of an answer

app_argument = click.argument("app", metavar="APP")


# -- trial --------------------------------------------------------------------------------------------------


@click.command(cls=CliCommand)
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


@click.command(cls=CliCommand)
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
    return Answer({"passed": passed, "routes": routes}, *map(_route_mark, routes), code=FINE if passed else BAD_ANSWER)


def _route_mark(each: dict[str, Any]) -> Marked:
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
