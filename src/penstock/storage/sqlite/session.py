"""The writer's connection with all that belongs to it: turn, guard, reserve, checkpoints. Lives in one thread."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import apsw

from penstock.contracts.audit import Audit
from penstock.contracts.ledger import Calls, ClaimRequest, WouldWait
from penstock.model.errors import StorageFull, StoreError, StoreReplaced
from penstock.model.message import NewMessage
from penstock.model.queue import QueueSettings
from penstock.model.sql_files import load_all
from penstock.model.usage import Measure
from penstock.storage.audit import audited
from penstock.storage.private import identity
from penstock.storage.session import Bound
from penstock.storage.sqlite.connection import BUSY_MILLISECONDS, connect, damaged, disconnect, translated
from penstock.storage.sqlite.guard import Guard
from penstock.storage.sqlite.meter import SqliteMeter
from penstock.storage.sqlite.reserve import RESERVE_BYTES, Reserve, free_on_disk
from penstock.storage.sqlite.turn import Turn
from penstock.storage.sqlite.users import run_calls

T = TypeVar("T")

SQL = load_all("penstock.storage.sqlite")
ROWS_A_STATEMENT = 50  # one insert of 50 rows costs a tenth less than 50 inserts; more gain nothing
_VALUES = re.compile(r"\bvalues\s*\(([^()]*)\)")
PAGES_BEFORE_CHECKPOINT = 4_000  # about 16 MB; four times SQLite's habit writes less and costs nothing else
PAGE_BYTES = 4_096
LOG_BYTES_KEPT = 64_000_000  # a log that once grew beyond this is cut back to nothing


class Checkpointer:
    def __init__(self, connection: apsw.Connection, database: Path, reserve: Reserve) -> None:
        self._connection = connection
        self._log = f"{database}-wal"
        self._reserve = reserve
        self._pages = 0
        self.waits = False  # until a commit that may take its time
        connection.set_wal_hook(self._committed)

    def _committed(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    @property
    def is_due(self) -> bool:
        return self._pages >= min(PAGES_BEFORE_CHECKPOINT, self._reserve.log_bytes_max // PAGE_BYTES)

    def after_commit(self) -> None:
        if self.is_due and not self.waits:
            self.run()

    def run(self) -> bool:
        """Copy what can be copied without waiting. A busy reader, a full disk or an error of the disk only
        postpones it: everything is in the log, and what was committed stays so. Tells whether all of it was copied."""
        self._pages = 0
        try:
            in_log, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return False  # retried after as many pages once more, and by `look_around`
        self._pages = in_log - copied
        if in_log == copied and self.log_bytes() > LOG_BYTES_KEPT:
            self._cut()
        return in_log == copied

    def _cut(self) -> None:
        self._connection.set_busy_timeout(0)  # it would wait for readers, and keep all writers waiting meanwhile
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            pass  # a reader is active; the log is cut another time
        finally:
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)

    @property
    def overgrown(self) -> bool:
        return self.log_bytes() > LOG_BYTES_KEPT

    def log_bytes(self) -> int:
        try:
            return os.stat(self._log).st_size
        except FileNotFoundError:
            return 0


@cache
def many(statement: str) -> str:
    """An insert of one row as one of many, its values by their place."""
    found = _VALUES.search(SQL[statement])
    assert found is not None, statement
    row = "(" + ", ".join("?" for _ in found[1].split(",")) + ")"
    return SQL[statement].replace(found[0], "values " + ", ".join([row] * ROWS_A_STATEMENT))


# Named like the statements in the .sql files: a user's `commit` must not find ours prepared and slip past the guard.
BEGIN, COMMIT, ROLLBACK = "/* penstock */ begin immediate", "/* penstock */ commit", "/* penstock */ rollback"
BEGIN_READING = "/* penstock */ begin"


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """How a SQLite database is opened."""

    path: Path
    synchronous: str = "full"
    vfs: str | None = None
    reserve_bytes: int = RESERVE_BYTES
    metered: bool = True
    free_bytes: Callable[[Path], int] = free_on_disk


class SqliteSession:
    numbers_last = False

    def __init__(self, settings: SqliteSettings, started_in: Callable[[int], list[int] | None]) -> None:
        self.settings = settings
        self._started_in = started_in
        self.worker = 0
        self.audit: Audit | None = None
        self.guarded: dict[str, QueueSettings] = {}  # queues that hold no more than so much
        self.reserve = Reserve(settings.path, settings.reserve_bytes, settings.free_bytes)
        self._connect()
        self._identity = identity(settings.path)
        try:
            self.turn = Turn(settings.path)
            self.reserve.refill()
        except BaseException:
            disconnect(self.connection)
            raise

    def _connect(self) -> None:
        settings = self.settings
        self.connection = connect(settings.path, synchronous=settings.synchronous, vfs=settings.vfs)
        self.guard = Guard(self.connection, SQL["upkeep.calls"])
        self.checkpointer = Checkpointer(self.connection, settings.path, self.reserve)
        self.meter = SqliteMeter(self.connection) if settings.metered else None
        self.cursor: apsw.Cursor = self.connection.cursor()

    def errors(self) -> AbstractContextManager[None]:
        return translated(self.settings.path)

    def rows(self, statement: str, bound: Bound | None = None) -> list[Any]:
        return self.connection.execute(SQL[statement], bound).fetchall()

    def value(self, statement: str, bound: Bound | None = None) -> Any:
        rows = self.connection.execute(SQL[statement], bound).fetchall()
        return rows[0][0] if rows else None

    def change(self, statement: str, bound: Bound | None = None) -> int:
        self.connection.execute(SQL[statement], bound)
        return self.connection.changes()

    def change_many(self, statement: str, bounds: Sequence[Bound]) -> None:
        self.connection.executemany(SQL[statement], bounds)

    def insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
        connection = self.connection
        before = connection.total_changes()
        whole = len(rows) - len(rows) % ROWS_A_STATEMENT
        for start in range(0, whole, ROWS_A_STATEMENT):
            connection.execute(many(statement), tuple(chain.from_iterable(rows[start : start + ROWS_A_STATEMENT])))
        if whole < len(rows):
            connection.executemany(SQL[statement], rows[whole:])
        return connection.total_changes() - before

    def change_last(self, statement: str, bound: Bound) -> None:
        self.connection.execute(SQL[statement], bound)

    def numbers(self, numbers: list[int]) -> Any:
        return apsw.carray(array("q", numbers))

    def insert_messages(self, rows: Sequence[NewMessage]) -> int:
        return self.insert("sends.send", rows)

    def take(
        self, request: ClaimRequest, limit: int, priorities: Sequence[int], *, holder: int, number: int, now: int
    ) -> list[Any]:
        taken: list[Any] = []
        for priority in priorities:
            rows = self._due(request.queue, priority, limit - len(taken), number, now)
            if rows:
                seqs = self.numbers([row[0] for row in rows])
                lease = {"worker": holder, "number": number, "seqs": seqs, "lease_end": now + request.lease_micros}
                self.change("claims.take", lease)
                taken += rows
                if len(taken) >= limit:
                    break
        return taken

    def _due(self, queue: str, priority: int, limit: int, number: int, now: int) -> list[Any]:
        probe = {"number": number, "queue": queue, "priority": priority, "now": now, "limit": limit}
        try:
            return self.rows("claims.due", probe)
        except UnicodeDecodeError as error:
            raise damaged(self.settings.path, error) from error

    def next_due(self, queue: str, now: int) -> int | None:
        due: int | None = self.value("claims.next_due", {"queue": queue})
        return due

    def next_lapse(self, *, surely: bool) -> int | None:
        lapse: int | None = self.value("claims.next_lapse")
        return lapse

    def note_number(self, number: int, now: int) -> None:
        if self.change("ledger.note_number", {"number": number, "worker": self.worker}) != 1:
            raise StoreError("This process's own row is gone: another process declared it dead. Start it again.")

    def run_calls(self, calls: Calls, measures: list[tuple[str, Measure]]) -> list[Any]:
        return run_calls(self, calls, measures)

    def enrolled(self, worker: int) -> None:
        """Its sign of life is a file, which others look for first."""

    def try_lock_queue(self, queue: str) -> bool:
        return True

    def stays_away(self, worker: int) -> bool:
        return True  # the process that found it dead holds its lock

    def started_in(self, worker: int) -> list[int] | None:
        return self._started_in(worker)

    def lock_queue(self, queue: str) -> None:
        """A transaction that writes has the whole file to itself."""

    def begin(self) -> None:
        self.check_file()
        try:
            self.connection.execute(BEGIN)
        except apsw.BusyError as error:
            if self.checkpointer.waits:
                raise WouldWait(f"{self.settings.path} is locked by another program.") from error
            raise

    def commit(self) -> None:
        """Commit, and raise StoreReplaced rather than acknowledge a commit to a file that is no longer there."""
        self.connection.execute(COMMIT)
        self.check_file()

    def check_file(self) -> None:
        """Raise StoreReplaced if the path no longer leads to the open file."""
        if identity(path := self.settings.path) != self._identity:
            why = "was deleted or replaced while it was open; nothing more is committed"
            fix = "Put the file back or restore the last backup (`penstock restore`), and start again"
            raise StoreReplaced(f"{path} {why}. {fix}.", path=str(path))

    def rollback(self) -> None:
        if self.connection.in_transaction:
            try:
                self.connection.execute(ROLLBACK)
            except apsw.Error:
                self.reopen()

    def transact(self, work: Callable[[], T]) -> T:
        """A short transaction of the engine's own, tried once more from the reserve if the disk is full."""
        work = audited(self, work)
        with self.turn:
            try:
                result = self._transact(work)
            except StorageFull:
                if self.reserve.released:
                    raise
                self.make_room()
                result = self._transact(work)
            self.checkpointer.after_commit()
            return result

    def _transact(self, work: Callable[[], T]) -> T:
        try:
            with self.errors():
                self.begin()
                result = work()
                self.commit()
                return result
        except BaseException as error:
            self.rollback()
            if isinstance(error, apsw.SQLError):
                raise damaged(self.settings.path, error) from error
            raise

    @contextmanager
    def without_waiting(self) -> Iterator[bool]:
        """Whether a small commit inside waits for nothing but its sync: no other process has its turn or the file, and no
        checkpoint is due. One that comes due is left to a later commit."""
        if self.checkpointer.is_due or self.reserve.released or not self.turn.try_take():
            yield False
            return
        self.checkpointer.waits = True
        self.connection.set_busy_timeout(0)
        try:
            yield True
        finally:
            self.checkpointer.waits = False
            with suppress(apsw.ConnectionClosedError):  # it failed, and could not be opened again
                self.connection.set_busy_timeout(BUSY_MILLISECONDS)
            self.turn.give()

    def make_room(self) -> None:
        """The disk is full: gives the reserve away, and copies the log back so that its space can be used again."""
        self.reserve.release()
        self.checkpointer.run()

    def reopen(self) -> None:
        """After an I/O error nothing in memory can be trusted: a fresh connection reads the truth from the file."""
        self.check_file()
        disconnect(self.connection)
        self._connect()

    def close(self) -> None:
        disconnect(self.connection)
        self.turn.close()
