"""A look at a live process from outside: what its handlers are doing, and whether it is inside a transaction."""

from __future__ import annotations

import fcntl
import mmap
from enum import StrEnum
from pathlib import Path

from penstock.contracts import running
from penstock.contracts.running import RunningHandler


class Place(StrEnum):
    """Where a process was when it died."""

    IN_HANDLER = "in a handler"
    ON_PROCESSOR = "on the processor"
    BETWEEN = "between handlers"
    STARTING = "before its first sign of life"


class RunningList:
    """Maps the list that a worker keeps. The mapping stays readable after the process and even the file are gone."""

    def __init__(self, path: Path) -> None:
        self.worker = int(path.name.rpartition("-")[2])
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), running.BYTES, prot=mmap.PROT_READ)
        self.cells = memoryview(self._map).cast("q")

    @property
    def pid(self) -> int:
        return self.cells[running.PID]

    def rows(self) -> list[RunningHandler]:
        return running.running(self.cells)

    def busy(self) -> bool:
        """Whether a handler is under way; slots are filled from the first, so a look at a few is enough."""
        return any(
            self.cells[running.HEADER_CELLS + slot * running.SLOT_CELLS] != running.KIND_FREE for slot in range(16)
        )

    def on_processor(self) -> bool:
        return self.cells[running.CURRENT] != 0

    def place(self) -> Place:
        if running.on_processor(self.cells) is not None:
            return Place.ON_PROCESSOR
        return Place.IN_HANDLER if self.rows() else Place.BETWEEN


def running_list_of(database: Path, pid: int) -> RunningList | None:
    for path in database.parent.glob(f"{database.name}-worker-*"):
        try:
            found = RunningList(path)
        except (OSError, ValueError):
            continue  # just made, or just removed
        if found.pid == pid:
            return found
    return None


class TurnWatch:
    """Who is writing: the process that holds the lock on the turn file holds the database."""

    def __init__(self, database: Path) -> None:
        self._path = Path(f"{database}-turn")

    def holder(self) -> int | None:
        """The process that has its turn, where the system says so (Linux)."""
        try:
            inode = f":{self._path.stat().st_ino}"
            lines = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return None
        for line in lines:
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].endswith(inode):
                return int(fields[4])
        return None

    def free(self) -> bool:
        """Whether nobody has the turn right now."""
        with self._path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        return True
