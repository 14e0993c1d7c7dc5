"""Opens connections that all behave alike, and says in words what SQLite says in codes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from penstock.model.errors import StorageFull, StoreCorrupt, StoreError, StoreUnavailable
from penstock.storage.private import create_private, is_a_link

APPLICATION_ID = 0x50454E53  # "PENS": tells a Penstock database from any other SQLite file
BUSY_MILLISECONDS = 30_000  # what a writer outside Penstock may hold the file before we give up
WAL_TRIES = 245  # with pauses that grow by a millisecond: as long as that
STATEMENTS_CACHED = 512  # prepared once, bound many times
SYNCHRONOUS = {
    "full": "pragma synchronous = full",  # nothing that was acknowledged is lost, not even with the power
    "normal": "pragma synchronous = normal",  # the last commits may be lost with the power, never by a crash
    "off": "pragma synchronous = off",
}
Values = tuple[Any, ...]  # of one row


def open_file(path: Path, *, read_only: bool = False, vfs: str | None = None) -> apsw.Connection:
    """Open a file with SQLite, made with mode 0600 where it is missing. Raise StoreUnavailable for a symbolic link."""
    _refuse_unusable(path, read_only=read_only)
    flags = apsw.SQLITE_OPEN_READONLY
    if not read_only:
        create_private(path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    real = path.parent.resolve() / path.name  # SQLite would refuse a link among the folders too
    return apsw.Connection(
        str(real), flags=flags | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs, statementcachesize=STATEMENTS_CACHED
    )


def connect(path: Path, *, synchronous: str, vfs: str | None, read_only: bool = False) -> apsw.Connection:
    with translated(path):
        connection = open_file(path, read_only=read_only, vfs=vfs)
        try:
            _set_up(connection, path, synchronous, read_only)
        except BaseException:
            disconnect(connection)
            raise
    return connection


def _set_up(connection: apsw.Connection, path: Path, synchronous: str, read_only: bool) -> None:
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    if not read_only:
        # Who only reads takes the file as it is: in the moment in which another makes it, it has no log yet.
        _refuse_others(connection, path)
        _write_ahead(connection)
    for pragma in (
        SYNCHRONOUS[synchronous],
        "pragma foreign_keys = on",
        "pragma recursive_triggers = on",  # or `insert or replace` would remove rows behind the triggers' backs
        "pragma temp_store = memory",
        "pragma trusted_schema = off",
        "pragma cache_size = -16000",
        "pragma query_only = on" if read_only else "pragma wal_autocheckpoint = 0",
    ):
        connection.execute(pragma).fetchall()
    # Without this SQLite compiles a statement with `limit :limit` again for each execution, as claims have.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if not read_only and str(connection.pragma("journal_mode")).lower() != "wal":
        raise StoreUnavailable(f"{path} cannot use write-ahead logging here; put it on a local disk.", path=str(path))


def _write_ahead(connection: apsw.Connection) -> None:
    """Of several processes that open a new file at the same moment one makes it a file with a log. SQLite does not let the
    others wait for that, whatever its busy time-out: both would hold what the other needs."""
    for pause in range(WAL_TRIES):
        try:
            connection.execute("pragma journal_mode = wal").fetchall()
            return
        except apsw.BusyError:
            if pause == WAL_TRIES - 1:
                raise
            time.sleep(0.001 * pause)


def _refuse_others(connection: apsw.Connection, path: Path) -> None:
    """Before anything is changed: not even the kind of another program's journal."""
    # In this order: all are written in one commit, and another process may be making the database between the looks.
    tables = int(connection.pragma("schema_version"))  # counts the changes to them
    version, mark = int(connection.pragma("user_version")), int(connection.pragma("application_id"))
    if mark not in (0, APPLICATION_ID) or ((version or tables) and not mark):
        raise StoreUnavailable(
            f"{path} is another program's database (its user_version is {version}, its application_id {mark:#x}). Name "
            "another file; if it was Penstock's, it is damaged: restore the last backup (`penstock restore`).",
            path=str(path),
        )


def disconnect(connection: apsw.Connection) -> None:
    """The last to leave copies the log back. Where that fails, the log stays and holds everything."""
    try:
        connection.close(True)
    except apsw.Error:
        connection.close(True)


def countable(sql: str) -> str:
    """The text as the meter can follow it: one that begins with a comment of this kind is taken for a trigger's."""
    return f" {sql}" if sql.startswith("-- ") else sql


def query(
    connection: apsw.Connection,
    sql: str,
    bindings: dict[str, Any],
    rows_max: int | None = None,
    *,
    can_cache: bool = True,
    prepared: Callable[[], object] = lambda: None,
    collect: Callable[[Iterable[Values]], list[Values]] = list,
) -> tuple[tuple[str, ...], list[Values]]:
    """Return column names and rows. SQLite tells the names only before the first step, when `prepared` is called too."""
    columns: tuple[str, ...] = ()

    def note_columns(cursor: apsw.Cursor, _: str, __: object) -> bool:
        nonlocal columns
        columns = tuple(name for name, *_ in cursor.get_description())
        prepared()
        return True

    cursor = connection.cursor()
    cursor.exec_trace = note_columns
    try:
        rows = collect(islice(cursor.execute(sql, bindings, can_cache=can_cache), rows_max))
    finally:
        # A cursor left in the middle of its rows would hold a snapshot, and the log could not be reused.
        cursor.close(True)
    return columns, rows


def _refuse_unusable(path: Path, *, read_only: bool) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise StoreUnavailable(f"The folder {folder} does not exist; make it, or name another file.", path=str(path))
    if path.is_symlink():
        raise is_a_link(path)
    if path.is_dir():
        raise StoreUnavailable(f"{path} is a folder; a database is a file.", path=str(path))
    if not read_only and not os.access(folder, os.W_OK):
        raise StoreUnavailable(
            f"The folder {folder} cannot be written; SQLite keeps its log beside {path.name}. Change its rights or "
            "name another database.",
            path=str(path),
        )
    for file in () if read_only else (path, Path(f"{path}-turn")):
        if file.exists() and not os.access(file, os.W_OK):
            raise StoreUnavailable(f"{file} cannot be written. Change its rights.", path=str(path))


def damaged(path: Path, error: Exception) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged or not a database ({error}). Stop all workers, keep the file, and restore the last backup "
        "(`penstock restore`).",
        path=str(path),
    )


@contextmanager
def translated(path: Path, *, reads_only: bool = False) -> Iterator[None]:
    """Turns what the file system did into an error a person can act on. Errors of a statement pass through."""
    try:
        yield
    except apsw.FullError as error:
        raise StorageFull(f"The disk that holds {path} is full; nothing was saved. Free some space.") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise damaged(path, error) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreUnavailable(
            f"{path} has been locked by another program for {BUSY_MILLISECONDS // 1000} s. End that program's "
            "transaction; nothing was lost.",
            path=str(path),
        ) from error
    except apsw.ReadOnlyError as error:
        if reads_only and getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY:
            raise  # the statement writes; the file system is not the cause
        raise StoreUnavailable(f"{path} cannot be written ({error}). Change its rights.", path=str(path)) from error
    except apsw.CantOpenError as error:
        raise StoreUnavailable(f"{path} cannot be opened ({error}).", path=str(path)) from error
    except apsw.IOError as error:
        raise StoreError(f"The disk failed under {path} ({error}).", path=str(path)) from error
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}.", path=str(path)) from error
