"""Tables as both ends of a move see them, and values in a form in which both can be compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from penstock.model.errors import PenstockError
from penstock.model.migration import Migration

ENGINE = "penstock_"
# Not copied: what belongs to processes, what each end has in its own way, and counts that triggers keep there anew.
LEFT_BEHIND = frozenset(f"penstock_{name}" for name in ("tokens", "numbers", "handlers", "counts"))
MIGRATIONS = "penstock_migrations"
FACTS = "penstock_facts"
HISTORY = "penstock_history"
# Of what a backup was made that keeps rows alone, and what the values of its columns were there.
BACKUP_OF, KINDS_FACT = "backup_of", "backup_kinds"
OWN_FACTS = ("schema", "identity", BACKUP_OF, KINDS_FACT)  # each end has its own

Row = Sequence[Any]


class CannotMove(PenstockError):
    """The database cannot be moved as it is, and nothing was written."""


class TableColumn(NamedTuple):
    """`kind` says what values mean on PostgreSQL: int, float, text, bytes, bool, number, time, moment, json, uuid or another
    type's name. Columns of SQLite hold anything, and have none."""

    name: str
    kind: str = ""
    least: int | None = None
    most: int | None = None


class Table(NamedTuple):
    name: str
    columns: tuple[TableColumn, ...]

    @property
    def is_engines(self) -> bool:
        return self.name.startswith(ENGINE)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


class Marks(NamedTuple):
    """The last numbers that were drawn: none of them may come again. By table, and the token of all claims."""

    numbers: dict[str, int]
    token: int


class MoveEnd(Protocol):
    """A database at one end of a move."""

    dialect: str

    def tables(self) -> dict[str, Table]: ...
    def things(self) -> set[str]:
        """What users made besides tables, such as "view best" or "trigger noted on apps"."""

    def rows(self, table: Table) -> Iterator[Row]: ...
    def close(self) -> None:
        """What is not finished leaves no trace."""


class MoveSource(MoveEnd, Protocol):
    """One moment of a database, read from beginning to end."""

    @property
    def origin(self) -> str:
        """The dialect that users' tables were made for: a backup may be of another than it is kept in."""

    def strangers(self) -> list[str]:
        """Tables and columns that the other kind of database cannot have, in words."""

    def misfits(self, table: Table) -> list[str]:
        """What this table holds that does not fit the kinds of its columns, in words."""

    def count(self, table: Table) -> int: ...
    def applied(self) -> list[tuple[str, str]]: ...
    def marks(self) -> Marks: ...


class MoveTarget(MoveEnd, Protocol):
    """A database that is filled in one go: all of it is there after `finish`, and nothing of it before."""

    def make(self, migrations: Sequence[Migration], *, now: int) -> None:
        """The engine's tables, and the users' as the app's migrations make them, without a row."""

    def fill(self, table: Table, rows: Iterable[Row]) -> None: ...
    def finish(self, marks: Marks) -> None: ...


def copied(tables: dict[str, Table]) -> list[Table]:
    """What is copied row by row, the engine's tables first."""
    wanted = [table for table in tables.values() if table.name not in LEFT_BEHIND and table.name != MIGRATIONS]
    return sorted(wanted, key=lambda table: (not table.is_engines, table.name))


def kinds_of(tables: dict[str, Table]) -> dict[str, str]:
    return {f"{table.name}.{column.name}": column.kind for table in tables.values() for column in table.columns}


def foreign_columns(tables: dict[str, Table]) -> list[str]:
    return [
        f"{table.name}.{column.name} is of the type {column.kind}, which only PostgreSQL has."
        for table in copied(tables)
        for column in table.columns
        if column.kind and column.kind not in _NORMAL
    ]


# -- values that can be compared --------------------------------------------------------------------------


class Sum:
    """Counts rows and adds up a digest of each: the same for the same rows in any order."""

    def __init__(self, table: Table) -> None:
        self._normal = [_NORMAL.get(column.kind, _as_it_is) for column in table.columns]
        self._skipped = table.names.index("noted_at") if table.name == HISTORY else None
        self.rows = 0
        self._total = 0

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.add(row)
            yield row

    def add(self, row: Row) -> None:
        values = [
            None if value is None else _converted(normal, value)
            for normal, value in zip(self._normal, row, strict=True)
        ]
        if self._skipped is not None:
            values[self._skipped] = None  # when an entry was noted is also its number on SQLite, which no two share
        self._total += int.from_bytes(blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest())
        self.rows += 1

    @property
    def checksum(self) -> str:
        return f"{self._total % 2**128:032x}"


def _converted(normal: Callable[[Any], object], value: Any) -> object:
    with suppress(ValueError, TypeError, ArithmeticError):
        return normal(value)
    return value


def _as_it_is(value: Any) -> object:
    """A whole number is the same in a column of fractions."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _moment(value: Any) -> object:
    text = str(value)
    with suppress(ValueError):
        return time.fromisoformat(text).isoformat()
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


_NORMAL: dict[str, Callable[[Any], object]] = {
    "int": int,
    "bool": int,
    "float": float,
    "number": lambda value: str(Decimal(str(value)).normalize()),
    "time": _moment,
    "moment": _moment,
    "json": lambda value: json.dumps(json.loads(value), sort_keys=True),
    "uuid": lambda value: UUID(str(value)).hex,
    "bytes": bytes,
    "text": str,
}
