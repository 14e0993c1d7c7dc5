"""The half of a transaction, as a function given to `atomically` sees it, that is alike on every store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from penstock.contracts.effects import Bindable, Ran
from penstock.model.allowance import Allowance
from penstock.model.errors import BadStatement, UnitClosed
from penstock.model.parameters import bind
from penstock.model.row import Row, row_type
from penstock.model.statement import readable, writable
from penstock.model.usage import Measure

Found = tuple[tuple[str, ...], list[tuple[Any, ...]]]  # columns, and the values of each row


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
