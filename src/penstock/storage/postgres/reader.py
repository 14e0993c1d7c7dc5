"""A connection that only reads, for users' queries. Lives in one thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors

from penstock.contracts.effects import Bindable
from penstock.contracts.store import PROBE, Rows
from penstock.model.allowance import Allowance
from penstock.model.errors import StatementFailed, StoreUnavailable
from penstock.model.statement import one_line, scan, to_psycopg
from penstock.model.usage import Measure
from penstock.storage.postgres.connection import CONFLICTS, READING, PostgresSettings, connect, first_line, is_lost
from penstock.storage.postgres.meter import PostgresMeter
from penstock.storage.transaction import no_clients

BEGIN = "begin isolation level repeatable read read only"
PATIENCE_SECONDS = 10.0  # how long a caller waits for a lost server: a restart takes less
AGAIN_SECONDS = 0.1
LIMITABLE = {"select", "values"}  # a verb is the main one after a `with` clause


class PostgresReader:
    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._connect()

    def _connect(self) -> None:
        self._connection = connect(self._settings, options=READING, name="penstock reader")
        self._is_new = True
        self._meter = PostgresMeter(self._connection) if self._settings.metered else None

    def read(
        self, sql: str, parameters: dict[str, Bindable], *, rows_max: int, seconds_max: float | None = None
    ) -> Rows:
        ends = time.perf_counter() + PATIENCE_SECONDS
        while True:
            try:
                if self._connection.closed:
                    self._connect()
                return self._read(sql, parameters, rows_max, seconds_max)
            except StoreUnavailable:
                if time.perf_counter() > ends:
                    raise
                time.sleep(AGAIN_SECONDS)
            except psycopg.Error as error:
                again = is_lost(self._connection, error) or isinstance(error, CONFLICTS)
                if not again or time.perf_counter() > ends:
                    raise self._refused(sql, seconds_max, error) from error
                self._connection.close()  # nothing is lost with a query: it is asked again

    def ask(self, queries: Sequence[tuple[str, dict[str, Bindable]]], allowance: Allowance) -> list[Rows]:
        raise no_clients()

    def _refused(self, sql: str, seconds_max: float | None, error: psycopg.Error) -> StatementFailed:
        try:
            self._connection.execute("rollback")
        except psycopg.Error:
            self._connection.close()
        if isinstance(error, errors.QueryCanceled) and seconds_max is not None:
            return StatementFailed(
                f"A statement took longer than {seconds_max:g} s and was cancelled: {one_line(sql)}", sql=sql
            )
        return StatementFailed(
            f"The database refused a query: {first_line(error)}. It was: {one_line(sql)}",
            sql=sql,
            cause=first_line(error),
        )

    def _read(self, sql: str, parameters: dict[str, Bindable], rows_max: int, seconds_max: float | None) -> Rows:
        connection = self._connection
        if self._is_new:
            # The engine's tables and views can be read by their plain names, after the user's own.
            connection.execute(
                "select set_config('search_path', current_setting('search_path') || ', penstock', false)"
            )
            self._is_new = False
        connection.execute(BEGIN)
        if seconds_max is not None:
            connection.execute("select set_config('statement_timeout', %s, true)", [str(int(seconds_max * 1000))])
        if sql.startswith(PROBE):
            connection.execute("set local enable_seqscan = off; set local enable_bitmapscan = off")
        begun = self._meter.begin(sql, 1) if self._meter is not None else None
        columns, values = self._fetch(sql, parameters, rows_max + 1)
        measure = Measure(sql, 1, 0, 0, 0, 0, 0.0)
        if self._meter is not None and begun is not None:
            measure = self._meter.end(begun, rows_written=0)
        connection.execute("rollback")  # which takes settings back that a query changed by set_config
        return Rows(columns, values, measure)

    def _fetch(
        self, sql: str, parameters: dict[str, Bindable], most: int
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Never more in memory than was asked for. A query is put inside another that ends sooner."""
        text = to_psycopg(sql)
        if scan(sql).verb in LIMITABLE:
            text = f"select * from (\n{text}\n) as penstock_read limit %(penstock_most)s"
        cursor = self._connection.execute(text.encode(), {**parameters, "penstock_most": most})
        columns = tuple(column.name for column in cursor.description or ())
        return columns, cursor.fetchmany(most) if cursor.description else []

    def close(self) -> None:
        self._connection.close()
