"""A connection that only reads, for users' queries. Lives in one thread."""

from __future__ import annotations

from contextlib import nullcontext

import apsw

from penstock.contracts.ledger import Bindable
from penstock.contracts.store import Rows
from penstock.model.errors import StatementFailed
from penstock.model.statement import one_line
from penstock.model.usage import Measure
from penstock.storage.sqlite.connection import at_most, connect, countable, disconnect, query, translated
from penstock.storage.sqlite.meter import Meter
from penstock.storage.sqlite.session import Settings


class SqliteReader:
    def __init__(self, settings: Settings) -> None:
        self._path = settings.path
        self._connection = connect(settings.path, synchronous=settings.synchronous, vfs=settings.vfs, read_only=True)
        self._meter = Meter(self._connection) if settings.metered else None

    def read(
        self, sql: str, parameters: dict[str, Bindable], *, rows_max: int, seconds_max: float | None = None
    ) -> Rows:
        text = countable(sql)
        rows: int | None = None
        if self._meter is not None:
            self._meter.begin(text, parameters)
        try:
            timed = nullcontext() if seconds_max is None else at_most(self._connection, seconds_max, sql)
            with translated(self._path), timed:
                columns, values = query(self._connection, text, parameters, rows_max + 1)
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
