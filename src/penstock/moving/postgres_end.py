"""PostgreSQL as one end of a move: read in one snapshot, or filled in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from penstock.model.errors import StoreError
from penstock.model.migration import Migration
from penstock.model.sql_files import load
from penstock.model.statement import one_line, to_psycopg
from penstock.moving.tables import (
    FACTS,
    HISTORY,
    MIGRATIONS,
    OWN_FACTS,
    CannotMove,
    Marks,
    Row,
    Table,
    TableColumn,
    copied,
    foreign_columns,
)
from penstock.storage.postgres import schema
from penstock.storage.postgres.connection import PostgresSettings, connect, first_line, translated

SQL = {name: to_psycopg(text) for name, text in load("penstock.moving", "postgres_end.sql").items()}
PAGE = 2_000  # rows fetched at once
ENGINES = "penstock"
KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "int"),
    **dict.fromkeys(("float4", "float8"), "float"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "enum"), "text"),
    **dict.fromkeys(("date", "time", "timetz", "timestamp"), "time"),
    **dict.fromkeys(("json", "jsonb"), "json"),
    "timestamptz": "moment",
    "bytea": "bytes",
    "bool": "bool",
    "numeric": "number",
    "uuid": "uuid",
}
RANGES = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
AS_THEY_ARE = {"int", "float", "bytes"}


class PostgresEnd:
    dialect = origin = "postgres"

    def __init__(self, address: str) -> None:
        self._settings = PostgresSettings(address, metered=False)
        self._connection = connect(self._settings, name="penstock move")
        self._schemas: dict[str, str] = {}

    # -- one moment of it -----------------------------------------------------------------------------------

    def begin_reading(self, *, alone: bool) -> None:
        """With `alone` no process can begin to work on it meanwhile: it could not be noted among the workers."""
        self._connection.execute("begin isolation level repeatable read")
        if alone:
            self._connection.execute(SQL["hold_off_workers"])
        else:
            self._connection.execute("set transaction read only")

    def tables(self) -> dict[str, Table]:
        found: dict[str, list[TableColumn]] = {}
        for place, plain, name, column, type_name in self._ask("columns"):
            shown = name if plain or place == ENGINES else f"{place}.{name}"
            self._schemas[shown] = place
            columns = found.setdefault(shown, [])
            if (place, name, column) != (ENGINES, HISTORY, "seq"):  # drawn anew, in the same order
                bound = RANGES.get(type_name)
                within = (-bound, bound - 1) if bound else (None, None)
                columns.append(TableColumn(column, KINDS.get(type_name, type_name), *within))
        return {name: Table(name, tuple(columns)) for name, columns in found.items()}

    def things(self) -> set[str]:
        return {f"{kind} {name}" for kind, name in self._ask("things")}

    def strangers(self) -> list[str]:
        return foreign_columns(self.tables())

    def misfits(self, table: Table) -> list[str]:
        return []  # what a column holds is of its type

    def count(self, table: Table) -> int:
        return int(self._only(sql.SQL("select count(*) from {}").format(self._name(table.name))))

    def rows(self, table: Table) -> Iterator[Row]:
        with self._errors(), self._connection.cursor(name="penstock_move", binary=True) as cursor:
            cursor.itersize = PAGE
            yield from cursor.execute(self._select(table))

    def _select(self, table: Table) -> sql.Composed:
        wanted = sql.SQL(", ").join(_as_read(column) for column in table.columns)
        selected = sql.SQL("select {} from {}").format(wanted, self._name(table.name))
        if table.name == FACTS:
            return selected + sql.SQL(" where name <> all({})").format(sql.Literal(list(OWN_FACTS)))
        return selected + sql.SQL(" order by seq") if table.name == HISTORY else selected

    def applied(self) -> list[tuple[str, str]]:
        return self._ask("applied") if MIGRATIONS in self.tables() else []

    def marks(self) -> Marks:
        drawn = {name: int(last) for name, last in self._ask("drawn")}
        return Marks(
            {name: last for name, last in drawn.items() if name != "penstock_tokens"}, drawn["penstock_tokens"]
        )

    # -- filled in one go -----------------------------------------------------------------------------------

    def make(self, migrations: Sequence[Migration], *, now: int) -> None:
        with self._errors():
            self._connection.execute("begin")
            self._refuse_unless_empty()
            schema.ensure(self._connection, self._settings)
            done = dict(self.applied())
            for migration in migrations:
                if migration.name not in done:
                    self._apply(migration, now)
            tables = self.tables()
            self._triggers = [self._name(name) for name in tables if not name.startswith("penstock_")]
            for each in self._triggers:
                self._connection.execute(_triggers(each, "disable"))
            # Any order of filling will do, and each is checked when it is put back.
            self._keys = self._ask("foreign_keys")
            for place, name, key, _ in self._keys:
                self._connection.execute(_drop(place, name, key))
            for table in copied(tables):  # migrations may have put rows there
                self._connection.execute(self._clear(table))

    def _refuse_unless_empty(self) -> None:
        tables = self.tables()
        kept = {FACTS, MIGRATIONS, "penstock_numbers"}
        full = [name for name in tables if name not in kept and self._only(self._any_row(name))]
        if full:
            raise CannotMove(
                f"{self._settings.shown} is not empty: there are rows in {', '.join(sorted(full))}. Name an empty database "
                "(`createdb` creates one); nothing was written."
            )

    def _any_row(self, name: str) -> sql.Composed:
        return sql.SQL("select exists (select 1 from {})").format(self._name(name))

    def _apply(self, migration: Migration, now: int) -> None:
        for statement in migration.statements:
            try:
                self._connection.execute(statement.encode())
            except psycopg.Error as error:
                raise CannotMove(
                    f"Migration {migration.name} fails on PostgreSQL: {first_line(error)}. The statement was: "
                    f"{one_line(statement)}. Write {migration.name}.postgres.sql; nothing was written."
                ) from error
        note = {"name": migration.name, "checksum": migration.checksum, "now": now}
        self._connection.execute(SQL["note_migration"], note)

    def _clear(self, table: Table) -> sql.Composed:
        cleared = sql.SQL("delete from {}").format(self._name(table.name))
        return (
            cleared + sql.SQL(" where name <> all({})").format(sql.Literal(list(OWN_FACTS)))
            if table.name == FACTS
            else cleared
        )

    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        columns = sql.SQL(", ").join(sql.Identifier(name) for name in table.names)
        command = sql.SQL("copy {} ({}) from stdin").format(self._name(table.name), columns)
        try:
            with translated(self._settings), self._connection.cursor().copy(command) as copy:
                for row in rows:
                    copy.write_row(row)
        except psycopg.Error as error:
            raise CannotMove(
                f"PostgreSQL rejects the rows of {table.name}: {first_line(error)}. {_where(error)}Nothing was written."
            ) from error

    def finish(self, marks: Marks) -> None:
        with self._errors():
            for place, name, key, definition in self._keys:
                self._put_back(place, name, key, definition)
            for each in self._triggers:
                self._connection.execute(_triggers(each, "enable"))
            for place, plain, name, column, sequence in self._ask("sequences"):
                shown = name if plain or place == ENGINES else f"{place}.{name}"
                highest = self._only(
                    sql.SQL("select max({}) from {}").format(sql.Identifier(column), self._name(shown))
                )
                last = max(int(highest or 0), marks.numbers.get(shown, 0))
                if last > 0:
                    self._ask("set_sequence", {"sequence": sequence, "last": last})
            self._ask("set_sequence", {"sequence": "penstock.penstock_tokens", "last": max(1, marks.token)})
            self._connection.execute("commit")
            self._connection.execute("analyze")  # or the first queries would be planned for empty tables

    def _put_back(self, place: str, name: str, key: str, definition: str) -> None:
        try:
            self._connection.execute(_add(place, name, key, definition))
        except psycopg.IntegrityError as error:
            raise CannotMove(
                f"Rows of {name} refer to rows that are not there ({key}): {first_line(error)}. Nothing was written."
            ) from error

    def close(self) -> None:
        self._connection.close()

    # -- asking ---------------------------------------------------------------------------------------------

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with translated(self._settings):
                yield
        except psycopg.Error as error:
            raise StoreError(
                f"{self._settings.shown} refuses: {first_line(error)}. The user of this address must own the database, or "
                "be allowed to create a schema and tables in it and read all of them."
            ) from error

    def _ask(self, statement: str, bound: dict[str, Any] | None = None) -> list[Any]:
        with self._errors():
            return self._connection.execute(SQL[statement], bound or {}).fetchall()

    def _only(self, query: sql.Composed) -> Any:
        with self._errors():
            row = self._connection.execute(query).fetchone()
        return None if row is None else row[0]

    def _name(self, shown: str) -> sql.Identifier:
        place = self._schemas[shown]
        return sql.Identifier(place, shown.removeprefix(f"{place}."))


def _as_read(column: TableColumn) -> sql.Composable:
    """Numbers and bytes as they are; what SQLite has no type for as PostgreSQL writes it, from which it reads it again."""
    name = sql.Identifier(column.name)
    if column.kind in AS_THEY_ARE:
        return name
    if column.kind == "moment":  # in the one form in which SQLite's texts are compared; it is read as UTC again
        return sql.SQL("cast({} at time zone 'UTC' as text)").format(name)
    return sql.SQL("cast({} as {})").format(name, sql.SQL("integer" if column.kind == "bool" else "text"))


def _triggers(name: sql.Identifier, change: str) -> sql.Composed:
    return sql.SQL("alter table {} {} trigger user").format(
        name, sql.SQL("enable" if change == "enable" else "disable")
    )


def _drop(place: str, name: str, key: str) -> sql.Composed:
    return sql.SQL("alter table {} drop constraint {}").format(sql.Identifier(place, name), sql.Identifier(key))


def _add(place: str, name: str, key: str, written_by_the_server: str) -> sql.Composed:
    add = sql.SQL("alter table {} add constraint {} ").format(sql.Identifier(place, name), sql.Identifier(key))
    return add + sql.SQL(written_by_the_server)


def _where(error: psycopg.Error) -> str:
    context = error.diag.context
    return "" if context is None else f"({one_line(context, 300)}) "
