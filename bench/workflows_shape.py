"""What every contestant among the workflows is given to do."""

from __future__ import annotations

from dataclasses import dataclass

RAW, PENSTOCK, DBOS = "raw bound", "penstock", "dbos"
STORES = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True)
class Shape:
    """How many no-op steps a run has, how many runs are under way at once, and how many there are in all."""

    steps: int
    at_once: int
    runs: int


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that is measured, of all contestants."""

    store: str
    steps: int
    at_once: int

    def __str__(self) -> str:
        return f"{self.steps} step{'s' if self.steps > 1 else ''}, {self.at_once:,} at once"
