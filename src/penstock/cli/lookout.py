"""A look at a database from outside: its size, and the locks and lists of whoever works on it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Protocol

from penstock.model.errors import StoreUnavailable
from penstock.storage.presence import cells_at, is_locked
from penstock.storage.schema import check
from penstock.storage.sqlite import connection, presence
from penstock.stores import is_postgres, store_at


class Lookout(Protocol):
    """It makes nothing and disturbs nobody."""

    def schema_version(self) -> int:
        """Of the engine's tables; 0 where there are none. Raises if this Penstock cannot read them."""
        ...

    def is_alive(self, worker: int, host: str) -> bool | None:
        """Whether a worker still holds its lock; None where nobody here can tell."""
        ...

    def cells(self, worker: int) -> memoryview | None:
        """Its list of running handlers as it is now; None where it is not on this host."""
        ...

    def size_bytes(self) -> int: ...
    def server_time(self) -> int | None:
        """The time by which all processes on this database go, in microseconds; None where it is this host's."""
        ...

    def close(self) -> None: ...


def lookout_at(address: str) -> Lookout:
    if not is_postgres(address):
        return FileLookout(Path(address).absolute())
    store_at(address)  # says what to install if it is not there
    from penstock.storage.postgres.connection import Settings
    from penstock.storage.postgres.lookout import PostgresLookout

    return PostgresLookout(Settings(address))


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
