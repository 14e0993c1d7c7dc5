"""Keeps the write-ahead log small: the writer copies it back itself and cuts it when a reader let it grow."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from penstock.storage.sqlite.connection import BUSY_MILLISECONDS
from penstock.storage.sqlite.reserve import Reserve

PAGES_BEFORE_CHECKPOINT = 4_000  # about 16 MB; four times SQLite's habit writes less and costs nothing else
PAGE_BYTES = 4_096
LOG_BYTES_KEPT = 64_000_000  # a log that once grew beyond this is cut back to nothing


class Checkpointer:
    def __init__(self, connection: apsw.Connection, database: Path, reserve: Reserve) -> None:
        self._connection = connection
        self._log = f"{database}-wal"
        self._reserve = reserve
        self._pages = 0
        connection.set_wal_hook(self._committed)

    def _committed(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        if self._pages >= min(PAGES_BEFORE_CHECKPOINT, self._reserve.log_bytes_max // PAGE_BYTES):
            self.run()

    def run(self) -> bool:
        """Copies what it can without waiting for anybody. A busy reader, a full disk or an error of the disk only
        postpones it: everything is in the log, and what was committed stays so. Tells whether all of it was copied."""
        self._pages = 0
        try:
            in_log, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return False  # tried again after as many pages once more, and when somebody looks around
        self._pages = in_log - copied
        if in_log == copied and self.log_bytes() > LOG_BYTES_KEPT:
            self._cut()
        return in_log == copied

    def _cut(self) -> None:
        self._connection.set_busy_timeout(0)  # it would wait for readers, and keep all writers waiting meanwhile
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            pass  # somebody reads; the log is cut another time
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
