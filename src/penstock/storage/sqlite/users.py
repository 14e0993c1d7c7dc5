"""Users' statements inside a commit: in order, each with its outcome, its line in the user's code and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from penstock.contracts.effects import Atomic, Bindable, Call, Ran, Write, WriteMany
from penstock.contracts.ledger import Calls
from penstock.model.allowance import Allowance
from penstock.model.errors import StatementFailed
from penstock.model.usage import Measure
from penstock.storage.sqlite.connection import countable, query
from penstock.storage.transaction import Found, UsersTransaction, alike, check_expected, located

if TYPE_CHECKING:
    from penstock.storage.sqlite.session import SqliteSession

# No statement caused an error of the file system; the session translates these for the whole group.
_OF_THE_STORE = (
    apsw.FullError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
)


def run_calls(session: SqliteSession, calls: Calls, measures: list[tuple[str, Measure]]) -> list[Any]:
    """Run every call in order. Equal statements in a row are measured together, since measuring has a price."""
    run = _Run(session, measures)
    with session.guard.users():
        start = 0
        while start < len(calls):
            unit, call = calls[start]
            if isinstance(call, Atomic):
                run.atomic(unit.task, call)
                start += 1
            else:
                equal = alike(calls, start)
                run.statements(unit.task, countable(call.sql), equal)
                start += len(equal)
    return run.outcomes


class _Run:
    def __init__(self, session: SqliteSession, measures: list[tuple[str, Measure]]) -> None:
        self._session = session
        self._execute = session.cursor.execute
        self._changes = session.connection.changes
        self._measures = measures
        self._returned = 0  # rows that `returning` gave
        self.outcomes: list[Any] = []

    def statements(self, task: str, sql: str, calls: list[Write | WriteMany]) -> None:
        meter = self._session.meter
        self._returned = 0
        if meter is not None:
            many = [call.rows if isinstance(call, WriteMany) else (call.parameters,) for call in calls]
            values = next((rows[0] for rows in many if rows), None)
            meter.begin(sql, values, executions=sum(map(len, many)))
        for call in calls:
            try:
                if type(call) is Write:
                    self._write(sql, call)
                elif type(call) is WriteMany:
                    self.outcomes.append(sum(self._run(sql, row) for row in call.rows))
            except _OF_THE_STORE:
                raise
            except Exception as error:
                raise located(error, call, _refusal(error, call)) from error
        if meter is not None:
            self._measures.append((task, meter.end(sql, rows=self._returned)))

    def atomic(self, task: str, call: Atomic) -> None:
        try:
            with SqliteTransaction(self._session, self._measures, task) as transaction:
                self.outcomes.append(call.function(transaction))
        except _OF_THE_STORE:
            raise
        except Exception as error:
            raise located(error, call, _refusal(error, call)) from error

    def _write(self, sql: str, call: Write) -> None:
        changes = self._run(sql, call.parameters)
        self.outcomes.append(changes)
        if call.expect is not None:
            check_expected(call, changes)

    def _run(self, sql: str, bound: dict[str, Bindable]) -> int:
        """Runs a statement to its end: one with `returning` would otherwise still be under way at the commit."""
        self._returned += len(self._execute(sql, bound).fetchall())
        return self._changes()


def _refusal(error: Exception, call: Call) -> str | None:
    of_a_statement = isinstance(error, TypeError | OverflowError) and not isinstance(call, Atomic)
    return str(error) if of_a_statement or isinstance(error, apsw.Error | apsw.SQLError) else None


class SqliteTransaction(UsersTransaction):
    def __init__(self, session: SqliteSession, measures: list[tuple[str, Measure]], task: str) -> None:
        super().__init__(measures, task)
        self._session = session

    def _check_open(self) -> None:
        super()._check_open()
        # Otherwise what follows would be committed by itself, outside the unit and without its fence.
        if not self._session.connection.in_transaction:
            raise StatementFailed(
                "A statement rolled the whole commit back (`or rollback`, or `raise(rollback, ...)` in a trigger), so "
                "nothing more can be done in it. Use `or abort`."
            )

    def run(self, sql: str, bound: dict[str, Bindable], allowance: Allowance) -> Ran:
        self._check_open()
        session, connection = self._session, self._session.connection
        text, before, meter = countable(sql), connection.total_changes(), session.meter
        named = session.value("upkeep.engine_names")
        if meter is not None:
            meter.begin(text, bound)
        columns, values = session.guard.ask(text, bound, allowance)
        changes = connection.changes() if connection.total_changes() != before else 0
        last_row_id = connection.last_insert_rowid()
        measure = Measure(sql, 1, 0, 0, 0, 0, 0.0)
        if session.guard.defined:
            # SQLite asks the guard about none of these.
            if session.guard.hides_calls(text) or session.value("upkeep.engine_names") > named:
                raise StatementFailed(
                    "A definition may neither take a name of the engine's, nor name its tables, nor call slow functions."
                )
            if meter is not None:
                meter.forget()
        elif meter is not None:
            measure = meter.end(text, rows=len(values))
            self._measures.append((self._task, measure))
        return Ran(columns, values, changes, last_row_id, measure)

    def _run(self, sql: str, bound: dict[str, Bindable]) -> Found:
        self._check_open()
        meter = self._session.meter
        text = countable(sql)
        if meter is not None:
            meter.begin(text, bound)
        found = query(self._session.connection, text, bound)
        self._changes = self._session.connection.changes()  # before the meter looks at the program: that sets it to 0
        if meter is not None:
            self._measures.append((self._task, meter.end(text, rows=len(found[1]))))
        return found
