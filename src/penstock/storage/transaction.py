"""The half of users' statements inside a commit that is alike on every store: equal ones in a row, errors with their line,
and the transaction as a function given to `atomically` sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from penstock.contracts.effects import Atomic, Bindable, Call, Ran, Write, WriteMany, where
from penstock.contracts.ledger import Calls
from penstock.model.allowance import Allowance
from penstock.model.errors import BadStatement, LostUpdate, PenstockError, StatementFailed, UnitClosed
from penstock.model.parameters import bind
from penstock.model.row import Row, row_type
from penstock.model.statement import one_line, readable, writable
from penstock.model.usage import Measure

Found = tuple[tuple[str, ...], list[tuple[Any, ...]]]  # columns, and the values of each row


def alike(calls: Calls, start: int) -> list[Write | WriteMany]:
    """Return the calls from `start` on that belong to the same task and have the same text."""
    unit, first = calls[start]
    found: list[Write | WriteMany] = []
    if isinstance(first, Atomic):
        return found
    for place in range(start, len(calls)):
        other, call = calls[place]
        if isinstance(call, Atomic) or call.sql != first.sql or other.task != unit.task:
            break
        found.append(call)
    return found


def check_expected(call: Write | WriteMany, changes: int) -> None:
    """Raise LostUpdate where a write changed another number of rows than it expects."""
    if isinstance(call, Write) and call.expect is not None and changes != call.expect:
        raise LostUpdate(
            f"expected to change {call.expect} rows, changed {changes}: {one_line(call.sql)}",
            expected=call.expect,
            changed=changes,
        )


def located(error: Exception, call: Call, refusal: str | None) -> Exception:
    """Return the error as the handler's own, pointing at the line that made the call; `refusal` is what the database said,
    if the error is the database's."""
    named = error
    if refusal is not None:
        sql = "" if isinstance(call, Atomic) else call.sql
        shown = f" It was: {one_line(sql)}" if sql else ""
        named = StatementFailed(f"The database refused a statement: {refusal}.{shown}", sql=sql, cause=refusal)
    line = where(call.line)
    if isinstance(named, PenstockError):
        named.facts["line"] = line
    named.add_note(f"called at {line}")
    return named


def no_clients() -> BadStatement:
    return BadStatement(
        "SQL over HTTP works only on SQLite, and this database is on PostgreSQL. Query PostgreSQL directly.",
        dialect="postgres",
    )


class UsersTransaction(ABC):
    """The commit itself, with everything its unit wrote before it."""

    def __init__(self, measures: list[tuple[str, Measure]], task: str) -> None:
        self._measures = measures
        self._task = task
        self._changes = 0  # by the last statement
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        if raised is None:
            self._check_open()
        self._ended = True

    def rows(self, sql: str, given: object = None, /, **named: object) -> list[Row]:
        columns, values = self._run(sql, bind(readable(sql), given, named))
        made = row_type(columns)
        return [made(value) for value in values]

    def first(self, sql: str, given: object = None, /, **named: object) -> Row | None:
        found = self.rows(sql, given, **named)
        return found[0] if found else None

    def value(self, sql: str, given: object = None, /, **named: object) -> Any:
        found = self.first(sql, given, **named)
        return None if found is None else found[0]

    def column(self, sql: str, given: object = None, /, **named: object) -> list[Any]:
        return [row[0] for row in self.rows(sql, given, **named)]

    def write(self, sql: str, given: object = None, /, **named: object) -> int:
        self._run(sql, bind(writable(sql), given, named))
        return self._changes

    def run(self, sql: str, bound: dict[str, Bindable], allowance: Allowance) -> Ran:
        raise no_clients()

    def _check_open(self) -> None:
        if self._ended:
            raise UnitClosed

    @abstractmethod
    def _run(self, sql: str, bound: dict[str, Bindable]) -> Found:
        """Runs one statement if the transaction is open, notes how many rows it changed and what it cost."""
