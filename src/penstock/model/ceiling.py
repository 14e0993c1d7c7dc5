"""Ceilings: how much of something a task, or the whole app, may use in a month."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.model.errors import BadApp

Unit = Literal["rows_read", "rows_written", "usd"]


@dataclass(frozen=True, slots=True)
class Ceiling:
    unit: Unit
    most: float

    def __post_init__(self) -> None:
        if not self.most > 0:
            raise BadApp(f"A ceiling of {self.most} {self.unit} would never let anything run; give more than 0.")

    def reached(self, used: float) -> str | None:
        """In words, if it is reached."""
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
