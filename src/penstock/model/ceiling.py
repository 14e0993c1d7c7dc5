"""Ceilings: how much of something a task, or the whole app, may use in a month."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.model.errors import BadApp
from penstock.model.prices import GROSS, Usage, cost


class Ceiling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a cron task, or the whole app, may use in a calendar month. The first measure that is reached counts.

    `usd` is a price at a platform's rates, counted as if nothing were free.

    Example:
        ceiling = ps.Ceiling(rows_read=5_000_000, usd=2)
        app.cron("0 6 * * *", reason="charts change overnight", ceiling=ceiling)
    """

    rows_read: float | None = None
    rows_written: float | None = None
    requests: float | None = None
    queue_operations: float | None = None
    blob_reads: float | None = None
    object_seconds: float | None = None
    usd: float | None = None

    def __post_init__(self) -> None:
        given: dict[str, Any] = self.limits
        if not given:
            raise BadApp(f"A ceiling limits nothing. Give it one or more of {', '.join(self.__struct_fields__)}.")
        for measure, most in given.items():
            if isinstance(most, bool) or not isinstance(most, int | float) or not most > 0:
                raise BadApp(f"A ceiling has {measure}={most!r}. Give a number above 0; with less nothing would run.")

    @property
    def limits(self) -> dict[str, float]:
        """The measures that are limited, each with its limit."""
        return {name: most for name, most in msgspec.structs.asdict(self).items() if most is not None}

    def reached(self, usage: Usage) -> str | None:
        """Describe the first limit that this usage reaches, or return None."""
        for measure, most in self.limits.items():
            if (used := used_of(measure, usage)) >= most:
                shown = (used, most, "USD") if measure == "usd" else (used, most, measure.replace("_", " "))
                return "{:,.{d}f} of {:,.{d}f} {} this month".format(*shown, d=2 if measure == "usd" else 0)
        return None


def used_of(measure: str, usage: Usage) -> float:
    """Return how much of a measure was used. A price is counted as if nothing were free."""
    return cost(usage, GROSS).usd if measure == "usd" else float(getattr(usage, measure))
