"""The history on SQLite: a file beside the database that may be lost, and that is set aside rather than in the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain as flattened
from pathlib import Path
from typing import Any, TypeVar

import apsw

from penstock.contracts.history import Entry, Run
from penstock.model.errors import StatementFailed, StorageFull, StoreCorrupt, StoreError, StoreUnavailable
from penstock.model.sql_files import BOTH, load
from penstock.storage.history import DAY, DELIVERIES_MAX, MINUTE, MINUTES_MAX, StoredHistory, entry
from penstock.storage.private import identity
from penstock.storage.sqlite.connection import open_file, query
from penstock.storage.sqlite.guard import at_most
from penstock.storage.sqlite.turn import Turn

T = TypeVar("T")

SQL = load("penstock.storage.sqlite", "history.sql")
POINTS = load(BOTH, "points.sql")
CREATE = [sql for name, sql in (SQL | POINTS).items() if name.startswith(("create_", "index_"))]

VERSION = 1
APPLICATION_ID = 0x50454E48  # "PENH": the history of a database, and not one itself
BUSY_MILLISECONDS = 5_000  # neighbours add for a tenth of a second at a time; what cannot be added now is retried
PAGES_BEFORE_CHECKPOINT = 4_000  # about 16 MB, as in the database's own log

# A statement lets others run Python meanwhile and then waits for its turn again, which beside busy handlers takes longer
# than the insert. So one statement adds many rows: as many as fit into the 16 KB of text up to which it is kept prepared.
ROWS_A_STATEMENT = (500, 20)
_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?)"
_SHORT = _VALUES.replace(" ", "")
APPEND_MANY = {count: SQL["append"].replace(_VALUES, ",".join([_SHORT] * count)) for count in ROWS_A_STATEMENT}

PRAGMAS = (
    "pragma journal_mode = wal",
    # A commit waits for no disk, only the copying back of the log does. With the power the last entries are lost; with
    # `off` the whole file might be.
    "pragma synchronous = normal",
    "pragma trusted_schema = off",
    "pragma cache_size = -8000",
)


_TABLES = ("labels", "entries", "minutes", "told", "sqlite_schema", "sqlite_master")


class _Unusable(Exception):
    """The file is there and cannot be what this Penstock writes to."""


# What does not end by waiting: the file is damaged, or nothing that we can write, or not a file at all.
_BEYOND_HELP = (
    _Unusable,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.SQLError,
    apsw.MismatchError,
    apsw.ConstraintError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
)


def path_of(database: str | Path) -> Path:
    return Path(f"{database}-history")


class SqliteHistory(StoredHistory):
    """Opens its file when it is first needed. One that only reads makes no file and changes none."""

    def __init__(self, database: str | Path, *, read_only: bool = False) -> None:
        super().__init__()
        self._database = Path(database)
        self._path = path_of(database)
        self._read_only = read_only
        self._connection: apsw.Connection | None = None
        self._opened: tuple[int, int] | None = None

    # -- adding -----------------------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry]) -> str | None:
        if not entries:
            return None
        with self._errors():
            try:
                self._append(entries)
                return None
            except _BEYOND_HELP as error:
                kept = self._set_aside()
                self._append(entries)
                return f"The history {self._path} could not be used ({error}) and was replaced by a new one{kept}."

    def _append(self, entries: Sequence[Entry]) -> None:
        with self._transaction() as connection:
            last: Any = connection.execute(SQL["last"]).get
            first = max(last + 1, max(entry.ended_at for entry in entries))
            rows = self._rows_of(connection, entries, first)
            done = 0
            for count, sql in APPEND_MANY.items():
                while len(rows) - done >= count:
                    connection.execute(sql, tuple(flattened.from_iterable(rows[done : done + count])))
                    done += count
            for row in rows[done:]:
                connection.execute(SQL["append"], row)
            connection.execute(SQL["count_minutes"], {"first": first})

    def _rows_of(self, connection: apsw.Connection, entries: Sequence[Entry], first: int) -> list[tuple[Any, ...]]:
        day = first // DAY * DAY
        labels = self._labels_of_day(day)
        rows: list[tuple[Any, ...]] = []
        for seq, (ended_at, chain, id, cause, *sort, started_at, error) in enumerate(entries, first):
            key = tuple(sort)
            label = labels.get(key)
            if label is None:
                label = labels[key] = connection.execute(SQL["label"], (*key, day)).get
            later = None if id == chain else id
            rows.append((seq, chain, later, cause, label, seq - ended_at, ended_at - started_at, error))
        return rows

    def prune(self, before: int, limit: int) -> int:
        with self._errors(), self._transaction() as connection:
            connection.execute(SQL["prune_minutes"], {"kept": MINUTES_MAX * MINUTE, "limit": limit})
            connection.execute(SQL["prune_labels"], {"now": before, "day": DAY, "limit": limit})
            connection.execute(SQL["prune"], {"before": before, "limit": limit})
            return connection.changes()

    def transact(self, work: Callable[[Run], T]) -> T:
        with self._errors(), self._transaction() as connection:
            return work(lambda name, bound: connection.execute(POINTS[name], dict(bound)).fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        connection = self._connect()
        assert connection is not None
        # `immediate`: one that began by reading could not go on to write once a neighbour has.
        connection.execute("begin immediate")
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            self._labels.clear()  # some may be rolled back
            if connection.in_transaction:
                connection.execute("rollback")
            raise

    # -- asking -----------------------------------------------------------------------------------------

    def of_message(self, id: bytes) -> list[Entry]:
        bound = {"id": id, "limit": DELIVERIES_MAX}
        return [entry(row) for row in self._rows("of_first_message", bound) or self._rows("of_later_message", bound)]

    def bytes(self) -> int:
        with self._errors():
            connection = self._connect()
            if connection is None:
                return 0
            pages, free, size = (int(connection.pragma(name)) for name in ("page_count", "freelist_count", "page_size"))
            return (pages - free) * size

    def points(
        self, sql: str, bound: dict[str, Any], *, rows_max: int, seconds_max: float
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        with self._errors():
            connection = self._connect()
            if connection is None or not connection.execute(SQL["has_points"]).get:
                return (), []
            connection.authorizer = _only_points
            try:
                with at_most(connection, seconds_max, "a question to data points"):
                    return query(connection, sql, bound, rows_max + 1)
            except (apsw.SQLError, apsw.AuthError, apsw.RangeError, apsw.TooBigError) as error:
                raise StatementFailed(f"The query was refused: {error}.", cause=str(error)) from error
            finally:
                connection.authorizer = None

    def _rows(self, name: str, bound: dict[str, Any]) -> list[Any]:
        with self._errors():
            connection = self._connect()
            return [] if connection is None else connection.execute(SQL[name], bound).fetchall()

    # -- the file ---------------------------------------------------------------------------------------

    def close(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close(True)
            except apsw.Error:
                pass  # it could not copy its log back; the next process that opens the file does
            self._connection = None

    def _connect(self) -> apsw.Connection | None:
        """Return the connection, opened again where the file was removed or set aside; None if there is no file."""
        found = identity(self._path)
        if self._connection is not None:
            if found == self._opened:
                return self._connection
            self.close()
        self._opened = found
        self._labels.clear()
        if self._read_only and found is None:
            return None
        if self._read_only:
            self._connection = self._open()
        else:
            with self._alone():
                self._connection = self._open()
        self._opened = identity(self._path)
        return self._connection

    def _open(self) -> apsw.Connection:
        try:
            connection = open_file(self._path, read_only=self._read_only)
        except StoreUnavailable as error:  # a folder or a link is in its place
            raise _Unusable(str(error)) from error
        try:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            version, mark = int(connection.pragma("user_version")), int(connection.pragma("application_id"))
            empty = not version and not mark
            if not empty and (mark != APPLICATION_ID or version > VERSION):
                raise _Unusable(f"another program, or a newer Penstock, has written it: version {version}, {mark:#x}")
            for pragma in PRAGMAS[self._read_only :]:
                connection.execute(pragma).fetchall()
            connection.wal_autocheckpoint(PAGES_BEFORE_CHECKPOINT)
            # One of before there were data points gets their tables. Its version stays: who knew it before still does.
            if empty or not (self._read_only or connection.execute(SQL["has_points"]).get):
                self._make(connection)
        except BaseException:
            connection.close(True)
            raise
        return connection

    def _make(self, connection: apsw.Connection) -> None:
        if self._read_only:
            raise _Unusable("it is empty")
        if connection.pragma("journal_mode") != "wal":
            raise StoreUnavailable(f"{self._path} cannot use write-ahead logging here.", path=str(self._path))
        connection.execute("begin immediate")
        for statement in CREATE:
            connection.execute(statement)
        connection.pragma("user_version", VERSION)
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute("commit")

    def _set_aside(self) -> str:
        """Moves the file and its log out of the way, unless a neighbour has done so meanwhile. Only the last one is kept."""
        self.close()
        with self._alone():
            if self._opened is None or identity(self._path) != self._opened:
                return ""
            aside = Path(f"{self._path}-aside")
            os.replace(self._path, aside)
            for part in ("-wal", "-shm"):
                Path(f"{aside}{part}").unlink(missing_ok=True)
                if (beside := Path(f"{self._path}{part}")).exists():
                    os.replace(beside, f"{aside}{part}")
            return f"; the old one is {aside.name}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process at a time make the file or set it aside: two that find the same damage must not both move it."""
        with closing(Turn(self._database)) as turn, turn:
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        path = self._path
        try:
            yield
        except apsw.FullError as error:
            raise StorageFull(f"The disk that holds {path} is full; the history waits.", path=str(path)) from error
        except _BEYOND_HELP as error:
            raise StoreCorrupt(
                f"The history {path} cannot be used ({error}). A worker renames it and starts a new one; only the "
                "history of settled messages is lost.",
                path=str(path),
            ) from error
        except (apsw.Error, OSError) as error:
            raise StoreError(f"The history {path} cannot be used now ({error}).", path=str(path)) from error


def _only_points(operation: int, one: str | None, two: str | None, database: str | None, inside: str | None) -> int:
    """Allow a question to read data points and nothing else. SQLite calls this when a text is prepared."""
    harmless = operation in (apsw.SQLITE_SELECT, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE)
    # What is counted without naming a column may be a `with` of the question's own, of any name but a table's.
    counts = two == "" and str(one).lower() not in _TABLES
    reads = operation == apsw.SQLITE_READ and (counts or str(one).startswith("penstock_"))
    return apsw.SQLITE_OK if harmless or reads else apsw.SQLITE_DENY
