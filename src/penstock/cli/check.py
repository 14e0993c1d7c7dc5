"""`penstock check`: what is wrong with an app, found before it runs. Each finding names the line and what to do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import apsw
import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.command import Command
from penstock.cli.doctor import DECLARE, undeclared
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Marked
from penstock.cli.reference import load
from penstock.model.errors import BadStatement, PenstockError
from penstock.readiness import autonomy
from penstock.readiness.autonomy import Hot, annotated, slow
from penstock.readiness.lints import Finding, counts, fixed_batches, singletons
from penstock.readiness.topology import loose_ends
from penstock.views.observer import Target


def _tasks(app: App) -> Iterator[Finding]:
    return fixed_batches((task.name, task.function) for task in app.crons.tasks.values())


def _names(app: App) -> Iterator[Finding]:
    return singletons(_modules(app))


def _queues(app: App) -> Iterator[Finding]:
    return loose_ends(app.queues.values(), _modules(app), alerted=bool(app.sinks))


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


class Check(NamedTuple):
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
CHECKS: dict[str, Check] = {
    "fixed-batch": Check("No cron task calls a service for each of a batch", _tasks),
    "singleton-name": Check("Singletons are addressed by their one name", _names),
    "hot-queries": Check("Hot queries go by an index, without scan or sort", _plans),
    "undeclared-queues": Check("Every queue that holds messages is declared", _undeclared),
    "rationale": Check("Every cron task has a reason for its schedule", autonomy.reasons),
    "open-routes": Check("Every route asks for a scope or a service key", autonomy.open_routes, note=True),
    "topology": Check("Every message has a sender, a handler, and a handler of its dead letters", _queues, loose=True),
    "exit-condition": Check("Every cron task looks before it works", autonomy.exits, loose=True),
    "ceiling": Check("Every cron task has a ceiling", autonomy.ceilings, loose=True),
    "trial": Check("A trial is declared: output comes before input", autonomy.trials, loose=True),
    "counting": Check("No cron task and no status route counts a whole table", _counts, loose=True),
    "smoke": Check("The app has a status route that `penstock smoke` can ask", autonomy.smoke, loose=True),
    "owner": Check("The deployment names its owner", annotated("owner", RESPONSIBLE, '"market team"'), loose=True),
    "expected-cost": Check(f"The deployment says {EXPECTED}", annotated("usd_expected", EXPECTED, "1.5"), loose=True),
    "audience": Check(
        f"The deployment says {READERS}", annotated("audience", READERS, '"two analysts, weekly"'), loose=True
    ),
}


@click.command(cls=Command)
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
    parts = [*map(_mark, shown), *(["", skipped] if len(shown) < len(checks) else [])]
    return Answer({"passed": passed, "checks": checks}, *parts, code=FINE if passed else BAD_ANSWER)


def _mark(each: dict[str, Any]) -> Marked:
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
