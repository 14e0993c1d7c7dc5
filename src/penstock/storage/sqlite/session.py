"""The writer's connection with all that belongs to it: turn, guard, reserve, checkpoints. Lives in one thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import apsw

from penstock.model.errors import StorageFull
from penstock.model.queue import QueueSettings
from penstock.storage.sqlite.checkpoint import Checkpointer
from penstock.storage.sqlite.connection import Guard, connect, damaged, disconnect, translated
from penstock.storage.sqlite.meter import Meter
from penstock.storage.sqlite.reserve import RESERVE_BYTES, Reserve, free_on_disk
from penstock.storage.sqlite.turn import Turn

T = TypeVar("T")

PULLED = 0  # stands for a worker in rows that are leased to somebody outside; no process has this number

# Named like the statements in the .sql files: a user's `commit` must not find ours prepared and slip past the guard.
BEGIN, COMMIT, ROLLBACK = "/* penstock */ begin immediate", "/* penstock */ commit", "/* penstock */ rollback"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a SQLite database is opened."""

    path: Path
    synchronous: str = "full"
    vfs: str | None = None
    reserve_bytes: int = RESERVE_BYTES
    metered: bool = True
    free_bytes: Callable[[Path], int] = free_on_disk


class Session:
    def __init__(self, settings: Settings, started_in: Callable[[int], list[int] | None]) -> None:
        self.settings = settings
        self.started_in = started_in
        self.worker = 0
        self.guarded: dict[str, QueueSettings] = {}  # queues that hold no more than so much
        self.guard = Guard()
        self.reserve = Reserve(settings.path, settings.reserve_bytes, settings.free_bytes)
        self._connect()
        self.turn = Turn(settings.path)
        self.reserve.refill()

    def _connect(self) -> None:
        settings = self.settings
        self.connection = connect(settings.path, synchronous=settings.synchronous, vfs=settings.vfs)
        self.connection.authorizer = self.guard
        self.checkpointer = Checkpointer(self.connection, settings.path, self.reserve)
        self.meter = Meter(self.connection) if settings.metered else None
        self.cursor: apsw.Cursor = self.connection.cursor()

    def errors(self) -> AbstractContextManager[None]:
        return translated(self.settings.path)

    def value(self, sql: str, bindings: dict[str, Any] | None = None) -> Any:
        """The first column of the only row; None where there is no row. The statement is run to its end."""
        rows = self.connection.execute(sql, bindings).fetchall()
        return rows[0][0] if rows else None

    def begin(self) -> None:
        self.connection.execute(BEGIN)

    def commit(self) -> None:
        self.connection.execute(COMMIT)

    def rollback(self) -> None:
        if self.connection.in_transaction:
            try:
                self.connection.execute(ROLLBACK)
            except apsw.Error:
                self.reopen()

    def transact(self, work: Callable[[], T]) -> T:
        """A short transaction of the engine's own, tried once more from the reserve if the disk is full."""
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

    def make_room(self) -> None:
        """The disk is full: gives the reserve away, and copies the log back so that its space can be used again."""
        self.reserve.release()
        self.checkpointer.run()

    def reopen(self) -> None:
        """After an I/O error nothing in memory can be trusted: a fresh connection reads the truth from the file."""
        disconnect(self.connection)
        self._connect()

    def close(self) -> None:
        disconnect(self.connection)
        self.turn.close()
