"""The list of running handlers that a worker keeps in a file and holds locked while it lives."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from penstock.contracts import running_handlers
from penstock.contracts.presence import Departed
from penstock.storage.private import open_private


def cells_at(path: Path) -> memoryview | None:
    """The list of a worker, alive or dead; None where it cannot be read on this host."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return memoryview(content).cast("q") if len(content) == running_handlers.BYTES else None


def started_at(path: Path) -> list[int] | None:
    """The rows that a worker, alive or dead, may have begun; None where its list cannot be read."""
    cells = cells_at(path)
    return None if cells is None else running_handlers.may_have_started(cells)


def obituary(worker: int, cells: memoryview | None) -> Departed:
    """What a worker that is gone had begun, and the row for which it was killed."""
    if cells is None:
        return Departed(worker, None, [])
    return Departed(worker, running_handlers.may_have_started(cells), running_handlers.blamed(cells))


def is_locked(path: Path) -> bool:
    """Whether the process that keeps this list lives: asks for its lock without waiting, and lets go of it at once."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(file)


class StoredPresence:
    """The list of this process."""

    def __init__(self, path: Path, take_space: Callable[[int], None]) -> None:
        self.path = path
        self._file = open_private(path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            take_space(self._file)
            self._map = mmap.mmap(self._file, running_handlers.BYTES)
        except BaseException:
            path.unlink(missing_ok=True)
            os.close(self._file)
            raise
        self.cells = memoryview(self._map).cast("q")
        running_handlers.clear(self.cells, os.getpid())

    def vanish(self) -> None:
        """Lets go as a death would: the file stays behind for others to read."""
        self.cells.release()
        self._map.close()
        os.close(self._file)
