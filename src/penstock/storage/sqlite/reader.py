"""A connection that only reads, for users' queries. Lives in one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import apsw

from penstock.contracts.effects import Bindable
from penstock.contracts.store import Rows
from penstock.model.allowance import Allowance
from penstock.model.errors import StatementFailed
from penstock.model.statement import one_line
from penstock.model.usage import Measure
from penstock.storage.sqlite.connection import Values, connect, countable, disconnect, query, translated
from penstock.storage.sqlite.guard import Guard, at_most
from penstock.storage.sqlite.meter import SqliteMeter
from penstock.storage.sqlite.session import BEGIN_READING, ROLLBACK, SQL, SqliteSettings


class SqliteReader:
    def __init__(self, settings: SqliteSettings) -> None:
        self._path = settings.path
        self._connection = connect(settings.path, synchronous=settings.synchronous, vfs=settings.vfs, read_only=True)
        self._guard = Guard(self._connection, SQL["upkeep.calls"])
        self._meter = SqliteMeter(self._connection) if settings.metered else None

    def read(self, sql: str, bound: dict[str, Bindable], *, rows_max: int, seconds_max: float | None = None) -> Rows:
        timed = nullcontext() if seconds_max is None else at_most(self._connection, seconds_max, sql)
        return self._measured(sql, bound, rows_max, timed, partial(query, self._connection, rows_max=rows_max + 1))

    def ask(self, queries: Sequence[tuple[str, dict[str, Bindable]]], allowance: Allowance) -> list[Rows]:
        fetch = partial(self._guard.ask, allowance=allowance)
        self._connection.execute(BEGIN_READING)
        try:
            with self._guard.users():  # the meter has SQLite compile a text before the client's own rights hold
                return [self._measured(sql, bound, allowance.rows_max, nullcontext(), fetch) for sql, bound in queries]
        finally:
            self._connection.execute(ROLLBACK)

    def _measured(
        self,
        sql: str,
        bound: dict[str, Bindable],
        rows_max: int,
        timed: AbstractContextManager[None],
        fetch: Callable[[str, dict[str, Bindable]], tuple[tuple[str, ...], list[Values]]],
    ) -> Rows:
        text = countable(sql)
        rows: int | None = None
        if self._meter is not None:
            self._meter.begin(text, bound)
        try:
            with translated(self._path, reads_only=True), timed:
                columns, values = fetch(text, bound)
                rows = len(values) if len(values) <= rows_max else None  # the meter may know it only if that was all
        except apsw.Error as error:
            raise StatementFailed(
                f"The database refused a query: {error}. It was: {one_line(sql)}", sql=sql, cause=str(error)
            ) from error
        finally:
            measure = Measure(sql, 1, 0, 0, 0, 0, 0.0)
            if self._meter is not None:
                measure = self._meter.end(text, rows=rows, rows_max=rows_max + 1)
        return Rows(columns, values, measure)

    def close(self) -> None:
        disconnect(self._connection)
