"""A look at a live process from outside: what its handlers are doing."""

from __future__ import annotations

import mmap
from enum import StrEnum
from pathlib import Path

from penstock.contracts import running_handlers
from penstock.contracts.running_handlers import RunningHandler


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
            self._map = mmap.mmap(file.fileno(), running_handlers.BYTES, prot=mmap.PROT_READ)
        self.cells = memoryview(self._map).cast("q")

    @property
    def pid(self) -> int:
        return self.cells[running_handlers.PID]

    def rows(self) -> list[RunningHandler]:
        return running_handlers.running(self.cells)

    def busy(self) -> bool:
        """Whether a handler is under way; slots are filled from the first, so a look at a few is enough."""
        return any(
            self.cells[running_handlers.HEADER_CELLS + slot * running_handlers.SLOT_CELLS] != running_handlers.KIND_FREE
            for slot in range(16)
        )

    def on_processor(self) -> bool:
        return self.cells[running_handlers.CURRENT] != 0

    def place(self) -> Place:
        if running_handlers.on_processor(self.cells) is not None:
            return Place.ON_PROCESSOR
        return Place.IN_HANDLER if self.rows() else Place.BETWEEN
