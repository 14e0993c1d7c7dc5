"""Space set aside beside the database, so that work can still be settled when the disk is full."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from penstock.model.errors import StoreUnavailable
from penstock.storage.private import open_private, tighten

RESERVE_BYTES = 20_000_000  # the whole log can be copied back from it, and some thousand settlements written besides
RESERVE_SHARE = 0.1  # of what is free at the start, at most: a small disk gets a small reserve
REFILL_TIMES = 2  # refilled only when this many times its size is free, or freeing it would refill it at once
LOG_SHARE = 0.8  # of the reserve, at most: on a full disk the log must fit into it to be copied back and used again
CHUNK = bytes(65_536)


def free_on_disk(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Reserve:
    def __init__(
        self, database: Path, bytes_kept: int = RESERVE_BYTES, free_bytes: Callable[[Path], int] = free_on_disk
    ) -> None:
        self._path = Path(f"{database}-reserve")
        self._bytes = bytes_kept
        self._free_bytes = free_bytes
        self._size = 0
        self.released = False

    @property
    def log_bytes_max(self) -> int:
        return int((self._size or self._bytes) * LOG_SHARE)

    def refill(self) -> bool:
        """Sets the space aside again; false while the disk has none to spare."""
        try:
            free = self._free_bytes(self._path.parent)
            if not self._size:
                self._size = max(min(self._bytes, int(free * RESERVE_SHARE)), len(CHUNK))
            tighten(self._path)
            if os.path.lexists(self._path) and self._path.lstat().st_size >= self._size:
                self.released = False
            elif free >= REFILL_TIMES * self._size:
                self._allocate(self._size)
                self.released = False
            else:
                self.released = True
        except (OSError, StoreUnavailable):
            self.release()
        return not self.released

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        self.released = True

    def _allocate(self, wanted: int) -> None:
        self._path.unlink(missing_ok=True)  # it may be a link, whose target is not ours to fill
        descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, wanted)
            else:
                for at in range(0, wanted, len(CHUNK)):
                    os.write(descriptor, CHUNK[: wanted - at])
        finally:
            os.close(descriptor)
