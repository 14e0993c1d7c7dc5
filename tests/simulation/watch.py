"""Watches every change that a process commits, row by row, from inside SQLite: what rolls back was never there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from penstock.testing.process import Process, current_process

QUEUES = frozenset(
    (
        "effects",
        "penstock_counters",
        "penstock_dead",
        "penstock_messages",
        "penstock_queues",
        "penstock_workers",
    )
)
RUNS = frozenset(
    (
        "effects",
        "penstock_dead",
        "penstock_messages",
        "penstock_runs",
        "penstock_signals",
        "penstock_steps",
    )
)


class Change(NamedTuple):
    """One row before and after; None where there was none."""

    table: str
    old: dict[str, Any] | None
    new: dict[str, Any] | None


Committed = Callable[[Process, list[Change]], None]


class Watch:
    def __init__(self, columns: dict[str, tuple[str, ...]], tables: Set[str], committed: Committed) -> None:
        self._columns = {table: columns[table] for table in tables}
        self._committed = committed

    @contextmanager
    def on(self) -> Iterator[None]:
        apsw.connection_hooks.append(self._attach)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(self._attach)

    def _attach(self, connection: apsw.Connection) -> None:
        # Keeps the plan that was made for a text; otherwise SQLite prepares some texts anew at every use.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        process = current_process()
        if process is None:
            return
        pending: list[Change] = []

        def changed(update: apsw.PreUpdate) -> None:
            table = update.table_name
            if (names := self._columns.get(table)) is not None:
                old = None if update.old is None else dict(zip(names, update.old, strict=True))
                new = None if update.new is None else dict(zip(names, update.new, strict=True))
                pending.append(Change(table, old, new))

        def committed() -> bool:
            if pending:
                changes = pending[:]
                pending.clear()
                self._committed(process, changes)
            return False

        connection.preupdate_hook(changed)
        connection.set_commit_hook(committed)
        connection.set_rollback_hook(pending.clear)


def columns_of(connection: apsw.Connection) -> dict[str, tuple[str, ...]]:
    return {
        table: tuple(name for (name,) in connection.execute("select name from pragma_table_info(?)", (table,)))
        for table in sorted(QUEUES | RUNS)
    }
