"""Ceilings: how much of something a task, or the whole app, may use in a month."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from penstock.model.errors import BadApp
from penstock.model.prices import GROSS, Usage, cost

Unit = Literal["rows_read", "rows_written", "requests", "queue_operations", "blob_reads", "object_seconds", "usd"]
UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True, slots=True)
class Ceiling:
    unit: Unit
    most: float

    def __post_init__(self) -> None:
        if not self.most > 0:
            raise BadApp(f"A ceiling of {self.most} {self.unit} would never let anything run; give more than 0.")

    def used(self, usage: Usage) -> float:
        """As much of the ceiling as this is. A price is told as if nothing were free."""
        return cost(usage, GROSS).usd if self.unit == "usd" else float(getattr(usage, self.unit))

    def reached(self, usage: Usage) -> str | None:
        """In words, if it is reached."""
        used = self.used(usage)
        if used < self.most:
            return None
        return (
            f"{used:,.2f} of {self.most:,.2f} USD this month"
            if self.unit == "usd"
            else (f"{used:,.0f} of {self.most:,.0f} {self.unit.replace('_', ' ')} this month")
        )


def rows(most: int, *, written: bool = False) -> Ceiling:
    """At most so many rows read (or written) in a month: `ceiling=ps.rows(5_000_000)`."""
    return Ceiling("rows_written" if written else "rows_read", most)


def usd(most: float) -> Ceiling:
    """At most so much in a month, at a platform's prices."""
    return Ceiling("usd", most)
