"""What is asked of an app that is let loose: of its cron tasks, its status routes, its trial and its deployment."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from types import FunctionType
from typing import NamedTuple, Protocol

from penstock.model.errors import BadStatement
from penstock.readiness.lints import Finding

# As SQLite tells it.
_SCAN = re.compile(r"^SCAN (?!CONSTANT|\d+ CONSTANT)\w+( USING (COVERING )?INDEX (?P<index>\w+))?", re.IGNORECASE)
_SORT = re.compile(r"TEMP B-TREE", re.IGNORECASE)
_CHOOSES = re.compile(r"\bwhere\b", re.IGNORECASE)


class Looked(Protocol):
    """A cron task, as far as it is looked at."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def function(self) -> object: ...
    @property
    def when(self) -> object | None: ...
    @property
    def ceiling(self) -> object | None: ...


def exits(tasks: Iterable[Looked]) -> Iterator[Finding]:
    for task in tasks:
        if task.when is None:
            told = f"Cron task {task.name!r} runs at every due time, also when there is no work."
            yield Finding(*_place(task), told, "Give it `when=`, a cheap query that returns whether there is work.")


def ceilings(tasks: Iterable[Looked], *, of_the_app: bool) -> Iterator[Finding]:
    for task in tasks:
        if task.ceiling is None and not of_the_app:
            told = f"Cron task {task.name!r} has no ceiling: it can use any number of rows."
            yield Finding(*_place(task), told, "Give it `ceiling=ps.Ceiling(...)`, or set [ceiling] in penstock.toml.")


def reasons(tasks: Iterable[Looked]) -> Iterator[Finding]:
    for task in tasks:
        if len(task.reason.split()) < 3:
            told = f"Cron task {task.name!r} has no reason of three words or more for its schedule: {task.reason!r}."
            yield Finding(*_place(task), told, "State in `reason=` what changes how fast, in three words or more.")


def trials(stages: int) -> Iterator[Finding]:
    if not stages:
        told = "The app requires a trial and declares none."
        yield Finding("", 0, told, "Write `@app.trial.stage(...)` above a function for each stage.")


def smoke(routes: int) -> Iterator[Finding]:
    if not routes:
        told = "The app has no status route, so `penstock smoke` cannot test it."
        yield Finding("", 0, told, 'Write `@app.get("/v1/.../status")` above a function that returns its state.')


def annotation(name: str, given: object, what: str, example: str) -> Iterator[Finding]:
    if given in ("", None):
        yield Finding("", 0, f"penstock.toml does not set {what}.", f"Write `{name} = {example}` under [readiness].")


def _place(task: Looked) -> tuple[str, int]:
    if isinstance(task.function, FunctionType):
        return task.function.__code__.co_filename, task.function.__code__.co_firstlineno
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
            told = f"A hot query uses more than an index: {'; '.join(bad)}: {' '.join(hot.sql.split())[:120]}"
            yield Finding(hot.file, hot.line, told, "Add an index that has its conditions first and its order next.")
