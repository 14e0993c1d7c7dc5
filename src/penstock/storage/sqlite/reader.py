"""A connection that only reads, for users' queries. Lives in one thread."""

from __future__ import annotations

from itertools import islice

import apsw

from penstock.contracts.ledger import Bindable
from penstock.contracts.store import Rows
from penstock.model.errors import StatementFailed
from penstock.model.statement import one_line
from penstock.model.usage import Measure
from penstock.storage.sqlite.connection import connect, translated
from penstock.storage.sqlite.meter import Meter
from penstock.storage.sqlite.session import Settings


class SqliteReader:
    def __init__(self, settings: Settings) -> None:
        self._path = settings.path
        self._connection = connect(settings.path, synchronous=settings.synchronous, vfs=settings.vfs, read_only=True)
        self._meter = Meter(self._connection) if settings.metered else None

    def read(self, sql: str, parameters: dict[str, Bindable], *, rows_max: int) -> Rows:
        if self._meter is not None:
            self._meter.begin(sql)
        cursor = self._connection.cursor()
        try:
            with translated(self._path):
                cursor.execute(sql, parameters)
                columns = tuple(column[0] for column in cursor.get_description()) if cursor.has_vdbe else ()
                values = list(islice(cursor, rows_max + 1))
        except apsw.Error as error:
            raise StatementFailed(
                f"The database refused a query: {error}. It was: {one_line(sql)}", sql=sql, cause=str(error)
            ) from error
        finally:
            # A cursor left in the middle of its rows would hold a snapshot, and the log could not be reused.
            cursor.close()
            measure = self._meter.end(sql) if self._meter is not None else Measure(sql, 1, 0, 0, 0, 0, 0.0)
        return Rows(columns, values, measure)

    def close(self) -> None:
        self._connection.close(True)
