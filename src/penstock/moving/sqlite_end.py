"""A SQLite file as one end of a move: read in one snapshot, or filled beside its place and put there when it is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from penstock.model.errors import StoreCorrupt
from penstock.model.migration import Migration
from penstock.model.sql_files import load
from penstock.model.statement import one_line
from penstock.moving.tables import (
    BACKUP_OF,
    FACTS,
    HISTORY,
    KINDS_FACT,
    OWN_FACTS,
    CannotMove,
    Marks,
    Row,
    Table,
    TableColumn,
    copied,
    foreign_columns,
    kinds_of,
)
from penstock.storage.schema import VERSION
from penstock.storage.sqlite import connection, history, schema
from penstock.storage.sqlite.turn import Turn

SQL = load("penstock.moving", "sqlite_end.sql")
# Kept in a file of their own: the history's tables, which have no prefix there, and those of data points.
PAST = ("penstock_labels", "penstock_minutes", HISTORY)
POINTS = tuple(f"penstock_{name}" for name in ("points", "sorts", "rolled", "tallies", "samples"))
HISTORY_COLUMNS = ("noted_at", "ended_at", "started_at", "correlation_id", "id", "causation_id", "label", "error")
# What a column may hold, by the kind that it has on PostgreSQL.
FITTING = {
    "int": {"integer"},
    "bool": {"integer"},
    "float": {"real", "integer"},
    "number": {"real", "integer", "text"},
    "bytes": {"blob"},
}


class SqliteEnd:
    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._turn: Turn | None = None
        self._connection: apsw.Connection
        self._triggers: list[str] = []
        self._things: set[str] | None = None
        self._has_past = False
        self._filling: Path | None = None
        self.generic: dict[str, Table] | None = None  # users' tables of another database, kept without their rules

    # -- one moment of it -----------------------------------------------------------------------------------

    def begin_reading(self, *, alone: bool) -> None:
        """With `alone` no process of ours writes meanwhile."""
        if alone:
            self._turn = Turn(self.path)
            self._turn.__enter__()
        with connection.translated(self.path):
            self._connection = connection.connect(self.path, synchronous="full", vfs=None, read_only=True)
            past = history.path_of(self.path)
            if past.exists():
                self._attach(past)
            self._connection.execute("begin")
            self._ask("token")

    def _attach(self, past: Path) -> None:
        try:
            self._connection.execute(SQL["attach"], {"path": str(past)})
            self._has_past = bool(self._connection.execute(SQL["has_past"]).fetchall())  # it may have just been begun
        except apsw.Error as error:
            raise StoreCorrupt(
                f"The history {past} cannot be read ({error}). Nothing depends on it: move it away, and try again."
            ) from error

    def tables(self) -> dict[str, Table]:
        found: dict[str, list[TableColumn]] = {}
        kinds: dict[str, str] = json.loads(self.fact(KINDS_FACT) or "{}")
        for name, column in self._ask("columns"):
            found.setdefault(name, []).append(TableColumn(column, kinds.get(f"{name}.{column}", "")))
        tables = {name: Table(name, tuple(columns)) for name, columns in found.items()}
        if self._has_past:
            past: dict[str, list[TableColumn]] = {HISTORY: [TableColumn(name) for name in HISTORY_COLUMNS]}
            for name, column in self._ask("past_columns"):
                past.setdefault(f"penstock_{name.removeprefix('penstock_')}", []).append(TableColumn(column))
            tables |= {name: Table(name, tuple(columns)) for name, columns in past.items()}
        return tables

    def things(self) -> set[str]:
        if self._things is not None:
            return self._things
        return {f"{kind} {name}" for kind, name in self._ask("things")}

    def strangers(self) -> list[str]:
        virtual = [f"{name} is a virtual table, which only SQLite has." for (name,) in self._ask("virtual")]
        return virtual + foreign_columns(self.tables())

    def misfits(self, table: Table) -> list[str]:
        columns = [column for column in table.columns if column.kind]
        if table.is_engines or not columns:
            return []
        problems: dict[str, None] = {}
        for kinds in self._connection.execute(_typed(table, columns)):
            for column, held in zip(columns, kinds, strict=True):
                if held != "null" and held not in FITTING.get(column.kind, {"text"}):
                    problems[
                        f"{table.name}.{column.name} holds {held} values, and on PostgreSQL it is {column.kind}. Change the "
                        "values, or the column in a migration for PostgreSQL."
                    ] = None
        for column in columns:
            if column.least is not None and column.most is not None:
                bounds = {"least": column.least, "most": column.most}
                for (value,) in self._connection.execute(_beyond(table, column), bounds):
                    problems[
                        f"{table.name}.{column.name} holds {value}, and PostgreSQL's maximum is {column.most}. Make it a "
                        "bigint in a migration for PostgreSQL."
                    ] = None
        return list(problems)

    def count(self, table: Table) -> int:
        return int(next(self._connection.execute(_count(table)))[0])

    def rows(self, table: Table) -> Iterator[Row]:
        try:
            yield from self._connection.execute(SQL["history"] if table.name == HISTORY else _select(table))
        except UnicodeDecodeError as error:
            raise CannotMove(f"{table.name} has text that is not UTF-8 ({error}). Correct it and retry.") from error

    @property
    def origin(self) -> str:
        return self.fact(BACKUP_OF) or self.dialect

    def applied(self) -> list[tuple[str, str]]:
        return [(str(name), str(checksum)) for name, checksum in self._ask("applied")]

    def fact(self, name: str) -> str | None:
        found = self._ask("fact", {"name": name})
        return str(found[0][0]) if found else None

    def marks(self) -> Marks:
        numbers = {str(name): int(last) for name, last in self._ask("drawn")}
        return Marks(numbers, int(self._ask("token")[0][0]))

    # -- filled in one go -----------------------------------------------------------------------------------

    def make(self, migrations: Sequence[Migration], *, now: int) -> None:
        for path in (self.path, history.path_of(self.path)):
            if path.exists():
                raise CannotMove(f"{path} already exists. Move it away, or name another file; nothing was written.")
        self._filling = Path(f"{self.path}-filling")
        self._remove_what_was_begun()
        with connection.translated(self.path):
            past = history.path_of(self._filling)
            _begin_file(past, history.CREATE, history.VERSION, history.APPLICATION_ID)
            _begin_file(self._filling, list(schema.SQL.values()), VERSION, schema.APPLICATION_ID)
            self._connection = connection.connect(self._filling, synchronous="off", vfs=None)
            self._connection.execute("pragma foreign_keys = off").fetchall()
            self._attach(past)
            self._connection.execute("begin immediate")
            for migration in migrations:
                self._apply(migration, now)
            for table in (self.generic or {}).values():
                self._connection.execute(_create(table))
            if self.generic is not None:
                self._note(BACKUP_OF, "postgres")
                self._note(KINDS_FACT, json.dumps(kinds_of(self.generic)))
            self._things = self.things()  # before triggers go, which would act on every row
            for name, text in self._ask("users_triggers"):
                self._triggers.append(text)
                self._connection.execute(_drop_trigger(name))
            for table in copied(self.tables()):
                if not table.is_engines:
                    self._connection.execute(_delete(table))  # migrations may have put rows there

    def _apply(self, migration: Migration, now: int) -> None:
        for statement in migration.statements:
            try:
                self._connection.execute(statement).fetchall()
            except apsw.Error as error:
                raise CannotMove(
                    f"Migration {migration.name} fails on SQLite: {error}. The statement was: {one_line(statement)}. Write "
                    f"{migration.name}.sqlite.sql; nothing was written."
                ) from error
        note = {"name": migration.name, "checksum": migration.checksum, "now": now}
        self._connection.execute(SQL["note_migration"], note)

    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        try:
            with connection.translated(self.path):
                if table.name == HISTORY:
                    self._connection.executemany(SQL["note_entry"], _entries(rows))
                else:
                    self._connection.executemany(_insert(table), rows)
        except (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError) as error:
            raise CannotMove(f"SQLite rejects the rows of {table.name}: {error}. Nothing was written.") from error

    def _note(self, name: str, value: str) -> None:
        self._connection.execute(SQL["note_fact"], {"name": name, "value": value})

    def finish(self, marks: Marks) -> None:
        assert self._filling is not None
        with connection.translated(self.path):
            for statement in self._triggers:
                self._connection.execute(statement)
            broken = self._connection.execute("pragma foreign_key_check").fetchall()
            if broken:
                raise CannotMove(
                    f"Rows of {broken[0][0]} refer to rows of {broken[0][2]} that are not there. Nothing was written."
                )
            drawn = self.marks().numbers
            for (name,) in self._ask("numbered"):
                last = max(drawn.get(name, 0), marks.numbers.get(name, 0))
                self._connection.execute(SQL["forget_mark"], {"name": name})
                self._connection.execute(SQL["set_mark"], {"name": name, "last": last})
            self._connection.execute(SQL["set_token"], {"token": marks.token})
            self._connection.execute("commit")
            connection.disconnect(self._connection)
            put_in_place(self._filling, self.path)
        self._filling = None

    def close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close(True)
        if self._turn is not None:
            self._turn.close()
        if self._filling is not None:
            self._remove_what_was_begun()

    def _remove_what_was_begun(self) -> None:
        assert self._filling is not None
        for path in (self._filling, history.path_of(self._filling)):
            remove(path)

    def _ask(self, statement: str, bound: dict[str, Any] | None = None) -> list[Any]:
        with connection.translated(self.path):
            return self._connection.execute(SQL[statement], bound).fetchall()


def remove(path: Path) -> None:
    """A file of SQLite, with its log."""
    for part in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{part}").unlink(missing_ok=True)


def put_in_place(filled: Path, path: Path) -> None:
    """Gives a file that is whole its name, and the history that belongs to it: first on the disk, then under its name."""
    for made, name in ((history.path_of(filled), history.path_of(path)), (filled, path)):
        if made.exists():
            _to_disk(made)
            # What is left of the log of a deleted database would be taken for this one's.
            for beside in (f"{each}{part}" for each in (made, name) for part in ("-wal", "-shm")):
                Path(beside).unlink(missing_ok=True)
            os.replace(made, name)
    _to_disk(path.parent)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _begin_file(path: Path, statements: Sequence[str], version: int, mark: int) -> None:
    made = connection.open_file(path)
    try:
        made.execute("pragma journal_mode = wal").fetchall()
        made.execute("begin immediate")
        for statement in statements:
            made.execute(statement)
        made.pragma("user_version", version)
        made.pragma("application_id", mark)
        made.execute("commit")
    finally:
        made.close(True)


def _entries(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    """An entry's number is the microsecond it was noted at, or the next that is free."""
    last = 0
    for noted_at, ended_at, started_at, chain, id, cause, label, error in rows:
        last = max(last + 1, noted_at, ended_at)
        yield last, chain, None if id == chain else id, cause, label, last - ended_at, ended_at - started_at, error


# -- statements over tables whose names are known at run time ----------------------------------------------------


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _place(table: Table) -> str:
    if table.name in POINTS:
        return f"past.{table.name}"
    return f"past.{table.name.removeprefix('penstock_')}" if table.name in PAST else f"main.{_quoted(table.name)}"


def _columns(table: Table) -> str:
    return ", ".join(_quoted(name) for name in table.names)


def _select(table: Table) -> str:
    own = f" where name not in ({', '.join(map(repr, OWN_FACTS))})" if table.name == FACTS else ""
    return f"select {_columns(table)} from {_place(table)}{own}"


def _count(table: Table) -> str:
    return f"select count(*) from {'past.entries' if table.name == HISTORY else _place(table)}"


def _insert(table: Table) -> str:
    values = ", ".join("?" for _ in table.columns)
    return f"insert into {_place(table)} ({_columns(table)}) values ({values})"


def _delete(table: Table) -> str:
    return f"delete from {_place(table)}"


def _create(table: Table) -> str:
    return f"create table {_place(table)} ({_columns(table)})"


def _drop_trigger(name: str) -> str:
    return f"drop trigger {_quoted(name)}"


def _typed(table: Table, columns: Sequence[TableColumn]) -> str:
    kinds = ", ".join(f"typeof({_quoted(column.name)})" for column in columns)
    return f"select distinct {kinds} from {_place(table)}"


def _beyond(table: Table, column: TableColumn) -> str:
    name = _quoted(column.name)
    outside = f"typeof({name}) = 'integer' and ({name} < :least or {name} > :most)"
    return f"select {name} from {_place(table)} where {outside} limit 1"
