"""What is asked of an app that is let loose: of its cron tasks, its status routes, its trial and its deployment."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.model.errors import BadStatement
from penstock.readiness.lints import Finding

if TYPE_CHECKING:
    from penstock.app import App

# As SQLite tells it.
_SCAN = re.compile(r"^SCAN (?!CONSTANT|\d+ CONSTANT)\w+( USING (COVERING )?INDEX (?P<index>\w+))?", re.IGNORECASE)
_SORT = re.compile(r"TEMP B-TREE", re.IGNORECASE)
_CHOOSES = re.compile(r"\bwhere\b", re.IGNORECASE)


def exits(app: App) -> Iterator[Finding]:
    for task in app.crons.tasks.values():
        if task.when is None:
            text = f"Cron task {task.name!r} runs at every due time, also when there is no work."
            yield Finding(*_place(task), text, "Give it `when=`, a cheap query that returns whether there is work.")


def ceilings(app: App) -> Iterator[Finding]:
    for task in app.crons.tasks.values():
        if task.ceiling is None and app.config.ceiling is None:
            text = f"Cron task {task.name!r} has no ceiling: it can use any number of rows."
            yield Finding(*_place(task), text, "Give it `ceiling=ps.Ceiling(...)`, or set [ceiling] in penstock.toml.")


def reasons(app: App) -> Iterator[Finding]:
    for task in app.crons.tasks.values():
        if len(task.reason.split()) < 3:
            text = f"Cron task {task.name!r} has no reason of three words or more for its schedule: {task.reason!r}."
            yield Finding(*_place(task), text, "State in `reason=` what changes how fast, in three words or more.")


def trials(app: App) -> Iterator[Finding]:
    if not app.trial:
        text = "The app requires a trial and declares none."
        yield Finding("", 0, text, "Write `@app.trial.stage(...)` above a function for each stage.")


def smoke(app: App) -> Iterator[Finding]:
    if not any(route.is_status for route in app.routes.ordered()):
        text = "The app has no status route, so `penstock smoke` cannot test it."
        yield Finding("", 0, text, 'Write `@app.get("/v1/.../status")` above a function that returns its state.')


def open_routes(app: App) -> Iterator[Finding]:
    for route in app.routes.ordered():
        if route.auth is None:
            text = f"{route.method} {route.path} answers anyone: its auth is None."
            yield Finding(*_place(route), text, "Give it a scope or a ps.ServiceKey, or leave it open.")


def annotated(name: str, what: str, example: str) -> Callable[[App], Iterator[Finding]]:
    """Return a check of one setting of the deployment."""

    def look(app: App) -> Iterator[Finding]:
        if getattr(app.config.readiness, name) in ("", None):
            fix = f"Write `{name} = {example}` under [readiness]."
            yield Finding("", 0, f"penstock.toml does not set {what}.", fix)

    return look


def _place(declared: Any) -> tuple[str, int]:
    if isinstance(declared.function, FunctionType):
        return declared.function.__code__.co_filename, declared.function.__code__.co_firstlineno
    return "", 0


class Hot(NamedTuple):
    sql: str
    file: str
    line: int


def slow(queries: Iterable[Hot], explain: Callable[[str], list[str]], lists: Collection[str]) -> Iterator[Finding]:
    """`explain` gives the plan of a statement, a line each, or raises BadStatement; `lists` are the indexes that hold only
    some of the rows: to go through one of those from its beginning is to go through a work list. Who chooses none of the
    rows may take them in the order of any index."""

    def is_bad(line: str, sql: str) -> bool:
        scan = _SCAN.search(line)
        index = None if scan is None else scan["index"]
        read_through = scan is not None and (index is None or (index not in lists and bool(_CHOOSES.search(sql))))
        return read_through or bool(_SORT.search(line))

    for hot in queries:
        try:
            plan = explain(hot.sql)
        except BadStatement as error:
            yield Finding(hot.file, hot.line, str(error), "Write it for the tables that the migrations make.")
            continue
        bad = [line for line in plan if is_bad(line, hot.sql)]
        if bad:
            text = f"A hot query uses more than an index: {'; '.join(bad)}: {' '.join(hot.sql.split())[:120]}"
            yield Finding(hot.file, hot.line, text, "Add an index that has its conditions first and its order next.")
