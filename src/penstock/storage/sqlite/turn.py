"""Turns among processes: the operating system queues them up, so no writer starves another."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from penstock.storage.private import open_private


class Turn:
    """Held around each transaction that writes. A file of its own: closing a descriptor of the database would drop
    SQLite's locks."""

    def __init__(self, database: Path) -> None:
        self._file = open_private(f"{database}-turn")
        self._is_kept = False  # by the caller of `try_take`: transactions until `give` need not take it

    def __enter__(self) -> None:
        if not self._is_kept:
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def try_take(self) -> bool:
        """Take the turn if no other process has it, and keep it for all transactions until `give`."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._is_kept = True
        return True

    def give(self) -> None:
        self._is_kept = False
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)
