"""Keeps the write-ahead log small: the writer copies it back itself and cuts it when a reader let it grow."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

PAGES_BEFORE_CHECKPOINT = 4_000  # about 16 MB; four times SQLite's habit writes less and costs nothing else
LOG_BYTES_KEPT = 64_000_000  # a log that once grew beyond this is cut back to nothing
LOG_BYTES_WARNED = 256_000_000  # somebody holds a snapshot open and the log cannot be reused


class Checkpointer:
    def __init__(self, connection: apsw.Connection, database: Path) -> None:
        self._connection = connection
        self._log = f"{database}-wal"
        self._pages = 0
        connection.set_wal_hook(self._committed)

    def _committed(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self) -> None:
        if self._pages >= PAGES_BEFORE_CHECKPOINT:
            self.run()

    def run(self) -> None:
        """Copies what it can without waiting for anybody. A full disk or a busy reader only postpones it."""
        try:
            in_log, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if in_log == copied and self.log_bytes() > LOG_BYTES_KEPT:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._pages = in_log - copied
        except (apsw.BusyError, apsw.LockedError, apsw.FullError):
            self._pages = 0  # tried again after as many pages once more, and by `tidy`

    @property
    def overgrown(self) -> bool:
        return self.log_bytes() > LOG_BYTES_KEPT

    def log_bytes(self) -> int:
        try:
            return os.stat(self._log).st_size
        except FileNotFoundError:
            return 0
