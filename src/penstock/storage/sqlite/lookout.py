"""A look at a SQLite database from outside: its size, and the locks and lists of the processes that use it."""

from __future__ import annotations

import socket
from pathlib import Path

from penstock.model.errors import StoreUnavailable
from penstock.storage.presence import cells_at, is_locked
from penstock.storage.schema import check
from penstock.storage.sqlite import connection, presence


class FileLookout:
    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            raise StoreUnavailable(f"There is no database {path}.", path=str(path))
        self._connection = connection.connect(path, synchronous="full", vfs=None, read_only=True)

    def schema_version(self) -> int:
        with connection.translated(self._path):
            ours = int(self._connection.pragma("application_id")) == connection.APPLICATION_ID
            found = int(self._connection.pragma("user_version")) if ours else 0
        check(found, str(self._path))
        return found

    def is_alive(self, worker: int, host: str) -> bool | None:
        return None if host != socket.gethostname() else is_locked(presence.path_of(self._path, worker))

    def cells(self, worker: int) -> memoryview | None:
        return cells_at(presence.path_of(self._path, worker))

    def size_bytes(self) -> int:
        """The file and its log."""
        return sum(path.stat().st_size for path in (self._path, Path(f"{self._path}-wal")) if path.exists())

    def server_time(self) -> int | None:
        return None

    def close(self) -> None:
        connection.disconnect(self._connection)
