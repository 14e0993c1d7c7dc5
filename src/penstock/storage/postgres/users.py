"""Users' statements inside a commit: in order, each with its outcome, its line in the user's code and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors

from penstock.contracts.effects import Atomic, Bindable, Call, Write, WriteMany
from penstock.contracts.ledger import Calls
from penstock.model.statement import scan, to_psycopg
from penstock.model.usage import Measure
from penstock.storage.postgres.connection import first_line, is_lost
from penstock.storage.transaction import Found, UsersTransaction, alike, check_expected, located

if TYPE_CHECKING:
    from penstock.storage.postgres.session import PostgresSession

USERS_PLANS = "set local enable_seqscan = on; set local enable_bitmapscan = on"
ENGINES_PLANS = "set local enable_seqscan = off; set local enable_bitmapscan = off"
# Errors that no statement caused: the whole group is run again, or fails as one.
_OF_THE_STORE = (errors.SerializationFailure, errors.DeadlockDetected, errors.DiskFull, errors.OutOfMemory)


def run_calls(session: PostgresSession, calls: Calls, measures: list[tuple[str, Measure]]) -> list[Any]:
    """Run every call in order; equal statements in a row travel together, where a failure need not name its line."""
    outcomes: list[Any] = []
    alone = all(unit is calls[0][0] for unit, _ in calls)
    session.connection.execute(USERS_PLANS)
    start = 0
    while start < len(calls):
        unit, call = calls[start]
        if isinstance(call, Atomic):
            outcomes.append(_atomic(session, unit.task, call, measures))
            start += 1
        else:
            equal = [call] if alone else alike(calls, start)
            outcomes += _statements(session, unit.task, equal, measures)
            start += len(equal)
    session.connection.execute(ENGINES_PLANS)
    return outcomes


def _statements(
    session: PostgresSession, task: str, calls: Sequence[Write | WriteMany], measures: list[tuple[str, Measure]]
) -> list[int]:
    sql = calls[0].sql
    sizes = [len(call.rows) if isinstance(call, WriteMany) else 1 for call in calls]
    rows = [row for call in calls for row in (call.rows if isinstance(call, WriteMany) else [call.parameters])]
    with _located(session, calls[0]), _measured(session, task, sql, len(rows), measures) as measured:
        changes = _run(session, to_psycopg(scan(sql)), rows)
        measured.rows_written = sum(changes)
    at, outcomes = 0, []
    for call, size in zip(calls, sizes, strict=True):
        outcomes.append(sum(changes[at : at + size]))
        with _located(session, call):
            check_expected(call, outcomes[-1])
        at += size
    return outcomes


def _run(session: PostgresSession, text: str, rows: Sequence[dict[str, Bindable]]) -> list[int]:
    """How many rows each execution changed."""
    cursor = session.cursor
    if len(rows) == 1:
        return [_changed(cursor.execute(text, rows[0]))]
    changes: list[int] = []
    if rows:
        cursor.executemany(text, rows, returning=True)
        changes.append(_changed(cursor))
        while cursor.nextset():
            changes.append(_changed(cursor))
    return changes


def _changed(cursor: psycopg.Cursor[Any]) -> int:
    return max(cursor.rowcount, 0)


def _atomic(session: PostgresSession, task: str, call: Atomic, measures: list[tuple[str, Measure]]) -> Any:
    with _located(session, call), PostgresTransaction(session, measures, task) as transaction:
        return call.function(transaction)


@contextmanager
def _located(session: PostgresSession, call: Call) -> Iterator[None]:
    """An error as the handler's own, pointing at the line that made the call."""
    try:
        yield
    except _OF_THE_STORE:
        raise
    except Exception as error:
        of_the_database = isinstance(error, psycopg.Error)
        if of_the_database and is_lost(session.connection, error):
            raise
        raise located(error, call, first_line(error) if of_the_database else None) from error


class _Counting:
    rows_written = 0


@contextmanager
def _measured(
    session: PostgresSession, task: str, sql: str, executions: int, measures: list[tuple[str, Measure]]
) -> Iterator[_Counting]:
    meter, counting = session.meter, _Counting()
    if meter is None:
        yield counting
        return
    begun = meter.begin(sql, executions)
    yield counting
    measures.append((task, meter.end(begun, rows_written=counting.rows_written)))


class PostgresTransaction(UsersTransaction):
    def __init__(self, session: PostgresSession, measures: list[tuple[str, Measure]], task: str) -> None:
        super().__init__(measures, task)
        self._session = session

    def _run(self, sql: str, bound: dict[str, Bindable]) -> Found:
        self._check_open()
        with _measured(self._session, self._task, sql, 1, self._measures) as measured:
            cursor = self._session.cursor.execute(to_psycopg(scan(sql)), bound)
            self._changes = 0 if cursor.description and not scan(sql).writes else _changed(cursor)
            measured.rows_written = self._changes
        if cursor.description is None:
            return (), []
        columns = tuple(column.name for column in cursor.description)
        return columns, cursor.fetchall()
