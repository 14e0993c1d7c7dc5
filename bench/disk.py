"""What the disk alone needs to make a small append safe: the yardstick for every figure that waits for a commit."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

BLOCK = bytes(4_096)
PROBES = 50

# macOS has no fdatasync; its fsync does at least as much.
_sync = getattr(os, "fdatasync", os.fsync)


class Appender:
    """A file that grows by 4 KB at a time, each of them synced before the next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def append(self) -> float:
        """Seconds for one append."""
        began = time.perf_counter()
        os.write(self._file, BLOCK)
        _sync(self._file)
        return time.perf_counter() - began

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._path.unlink()


def fdatasync_seconds(folder: Path, count: int = PROBES) -> float:
    """The median of some appends in a row."""
    with Appender(folder / "appended") as appender:
        return statistics.median(appender.append() for _ in range(count))
