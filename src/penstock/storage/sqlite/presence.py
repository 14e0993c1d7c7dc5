"""Liveness by lock: a file that a worker holds locked and maps; the system lets go of the lock when it dies."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from penstock.contracts import running_handlers
from penstock.contracts.presence import Departed
from penstock.model.errors import StorageFull, StoreUnavailable
from penstock.storage.presence import StoredPresence, cells_at, obituary
from penstock.storage.private import open_private


def path_of(database: Path, worker: int) -> Path:
    return Path(f"{database}-worker-{worker}")


class SqlitePresence(StoredPresence):
    def __init__(self, database: Path, worker: int) -> None:
        self._database = database
        self._held: dict[int, int] = {}
        super().__init__(path_of(database, worker), self._take_space)

    def _take_space(self, file: int) -> None:
        """Every page of the list is written now: on a full disk, noting a handler in a page that has no place there would
        be a fatal signal."""
        try:
            if os.pwrite(file, bytes(running_handlers.BYTES), 0) == running_handlers.BYTES:
                return
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        raise StorageFull(
            f"The disk that holds {self._database} is full; a worker cannot start on it. Free some space."
        )

    def departed(self) -> list[Departed]:
        found = []
        prefix = f"{self._database.name}-worker-"
        for entry in os.scandir(self._database.parent):
            if not entry.name.startswith(prefix) or entry.name == self.path.name:
                continue
            number = entry.name.removeprefix(prefix)
            if number.isdigit() and self._take(Path(entry.path), int(number)):
                found.append(obituary(int(number), cells_at(Path(entry.path))))
        return found

    def _take(self, path: Path, worker: int) -> bool:
        if worker in self._held:
            return True
        try:
            file = open_private(path, os.O_RDWR)
        except StoreUnavailable:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between the look and the lock its last holder may have tidied up and removed the file.
            if os.stat(path).st_ino == os.fstat(file).st_ino and os.fstat(file).st_size > 0:
                self._held[worker] = file
                return True
        except OSError:
            pass
        os.close(file)
        return False

    def when_cut_off(self, callback: Callable[[bool], object]) -> None:
        """Never: a file is there."""

    def forget(self, worker: int) -> None:
        path_of(self._database, worker).unlink(missing_ok=True)
        if worker in self._held:
            os.close(self._held.pop(worker))

    def leave(self) -> None:
        self.path.unlink(missing_ok=True)
        self.vanish()

    def vanish(self) -> None:
        super().vanish()
        for file in self._held.values():
            os.close(file)
        self._held.clear()
