"""The history on PostgreSQL: tables of their own, written without waiting for the disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from penstock.contracts.history import Entry, Run
from penstock.model.errors import StatementFailed, StoreError
from penstock.model.statement import to_psycopg
from penstock.storage.history import DAY, DELIVERIES_MAX, MINUTE, MINUTES_MAX, StoredHistory, entry
from penstock.storage.postgres import schema
from penstock.storage.postgres.connection import (
    CONFLICTS,
    PostgresSettings,
    connect,
    first_line,
    is_lost,
    statements,
    translated,
)

T = TypeVar("T")

TRIES = 5
COLUMNS = ("ended_at", "started_at", "correlation_id", "id", "causation_id", "error")
LABEL = ("kind", "service", "queue", "name", "source", "attempt", "status")
ASKABLE = {("penstock", f"penstock_{name}") for name in ("points", "sorts", "rolled", "tallies")}
FOR_A_QUESTION = """
select set_config('statement_timeout', %s, true), set_config('search_path', 'penstock', true)
"""


class PostgresHistory(StoredHistory):
    """Connects when it is first needed. What a crash of the server loses is the last second of it."""

    def __init__(self, settings: PostgresSettings, *, read_only: bool = False) -> None:
        super().__init__()
        self._settings = PostgresSettings(settings.url, "off", metered=False)
        self._read_only = read_only
        self._sql = _of_file("history.")
        self._points_sql = _of_file("points.")
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    # -- adding -----------------------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry]) -> str | None:
        if entries:
            self._transact(lambda connection: self._append(connection, entries))
        return None

    def _append(self, connection: psycopg.Connection[tuple[Any, ...]], entries: Sequence[Entry]) -> None:
        noted_at = max(entry.ended_at for entry in entries)
        labels = self._labels_of(connection, entries, noted_at // DAY * DAY)
        columns = {name: [getattr(entry, name) for entry in entries] for name in COLUMNS}
        connection.execute(self._sql["append"], {"noted_at": noted_at, "label": labels, **columns})
        counted = Counter(
            (entry.ended_at // MINUTE * MINUTE, label) for entry, label in zip(entries, labels, strict=True)
        )
        minutes = {
            "minute": [minute for minute, _ in counted],
            "label": [label for _, label in counted],
            "count": list(counted.values()),
        }
        connection.execute(self._sql["count_minutes"], minutes)

    def _labels_of(
        self, connection: psycopg.Connection[tuple[Any, ...]], entries: Sequence[Entry], day: int
    ) -> list[int]:
        known = self._labels_of_day(day)
        keys = [tuple(getattr(each, name) for name in LABEL) for each in entries]
        for key in sorted(set(keys) - known.keys()):
            bound = {**dict(zip(LABEL, key, strict=True)), "seen": day}
            row = connection.execute(self._sql["label"], bound).fetchone()
            assert row is not None
            known[key] = row[0]
        return [known[key] for key in keys]

    def prune(self, before: int, limit: int) -> int:
        def remove(connection: psycopg.Connection[tuple[Any, ...]]) -> int:
            connection.execute(self._sql["prune_minutes"], {"kept": MINUTES_MAX * MINUTE})
            removed = connection.execute(self._sql["prune"], {"before": before, "limit": limit}).rowcount
            if not removed:
                connection.execute(self._sql["prune_labels"], {"before": before, "day": DAY})
                self._labels.clear()
            return removed

        return self._transact(remove)

    def transact(self, work: Callable[[Run], T]) -> T:
        def run_all(connection: psycopg.Connection[tuple[Any, ...]]) -> T:
            def run(name: str, bound: Mapping[str, Any]) -> list[tuple[Any, ...]]:
                cursor = connection.execute(self._points_sql[name], bound)
                return cursor.fetchall() if cursor.description else []

            return work(run)

        return self._transact(run_all)

    def _transact(self, work: Callable[[psycopg.Connection[tuple[Any, ...]]], T]) -> T:
        for tried in range(TRIES):
            connection = self._connect()
            try:
                with connection.transaction():
                    return work(connection)
            except BaseException as error:
                self._labels.clear()  # some may be rolled back
                if not isinstance(error, psycopg.Error):
                    raise
                if tried + 1 == TRIES or not (isinstance(error, CONFLICTS) or is_lost(connection, error)):
                    raise StoreError(f"The history cannot be written now ({first_line(error)}).") from error
                if is_lost(connection, error):
                    self.close()
        raise AssertionError("a try ends in a result or an error")

    # -- asking -----------------------------------------------------------------------------------------

    def of_message(self, id: bytes) -> list[Entry]:
        return [entry(row) for row in self._rows("of_message", {"id": id, "limit": DELIVERIES_MAX})]

    def points(
        self, sql: str, bound: dict[str, Any], *, rows_max: int, seconds_max: float
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        try:
            connection = self._connect()
            if not self._has_points(connection):
                return (), []
            with connection.transaction():
                connection.execute("set transaction isolation level repeatable read read only")
                connection.execute(FOR_A_QUESTION, [str(int(seconds_max * 1_000))])
                text = to_psycopg(sql).encode()
                (plan,) = connection.execute(b"explain (verbose, format json) " + text, bound).fetchall()[0]
                _refuse_others(json.loads(plan))
                cursor = connection.execute(text, bound)
                return tuple(column.name for column in cursor.description or ()), cursor.fetchmany(rows_max + 1)
        except errors.QueryCanceled as error:
            raise StatementFailed(
                f"A statement took longer than {seconds_max:g} s and was cancelled: a question to data points"
            ) from error
        except psycopg.Error as error:
            if self._connection is None or is_lost(self._connection, error):
                self.close()
                raise StoreError(f"The data points cannot be read now ({first_line(error)}).") from error
            raise StatementFailed(f"The query was refused: {first_line(error)}.", cause=first_line(error)) from error

    def bytes(self) -> int:
        return int(self._rows("bytes", {})[0][0])

    def _rows(self, name: str, bound: dict[str, Any]) -> list[Any]:
        try:
            return self._connect().execute(self._sql[name], bound).fetchall()
        except psycopg.Error as error:
            self.close()
            raise StoreError(f"The history cannot be read now ({first_line(error)}).") from error

    # -- the connection ---------------------------------------------------------------------------------

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._labels.clear()
            with translated(self._settings):
                self._connection = connect(self._settings, name="penstock history")
                if not self._read_only:
                    schema.ensure(self._connection, self._settings)
                    self._make_points(self._connection)
        return self._connection

    def _has_points(self, connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
        (found,) = connection.execute(self._sql["has_points"]).fetchall()
        return found[0] is not None

    def _make_points(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """A database of before there were data points gets their tables."""
        if not self._has_points(connection):
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock(%s)", [schema.MAKING])
                for name, statement in self._points_sql.items():
                    if name.startswith(("create_", "index_")):
                        connection.execute(statement)


def _of_file(file: str) -> dict[str, str]:
    return {name.removeprefix(file): sql for name, sql in statements().items() if name.startswith(file)}


def _refuse_others(plan: Any) -> None:
    """Refuse a question that reads anything but data points: the plan names every table, whatever the text looks like."""
    for node in _nodes(plan):
        table = node.get("Relation Name")
        if (table is not None and (node.get("Schema"), table) not in ASKABLE) or node.get("Function Name"):
            raise StatementFailed(
                f"The query was refused: only points, hours and days can be read here, not {table or 'functions'}."
            )


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    if isinstance(plan, list):
        for part in plan:
            yield from _nodes(part)
    elif isinstance(plan, dict):
        yield plan
        for part in plan.values():
            yield from _nodes(part)
