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

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_take(self) -> bool:
        """Take the turn if no other process has it; taking it once more does nothing."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        self.give()

    def give(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)
