"""Paid calls as the store knows them: what each may cost is counted before it is made, what it did cost afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from penstock.model.errors import PenstockError

RESERVED, SETTLED, RELEASED, UNKNOWN = "reserved", "settled", "released", "unknown"
NANOS = 1_000_000_000  # money is counted in whole billionths of a dollar, so that sums are exact


class Share(NamedTuple):
    """A sum that a call is part of, such as that of the day 2026-11-15, and what may be in it; None is no bound."""

    scope: str
    period: str
    most: int | None


class NewCall(NamedTuple):
    id: bytes
    service: str
    provider: str
    operation: str
    run: str | None
    correlation_id: bytes | None
    at_most: int


class CallEnd(NamedTuple):
    """`cost` is what counts from now on."""

    state: str
    units: int | None
    cost: int


class Spent(NamedTuple):
    """A sum that a call does not fit in. `passes` says that it may once the calls are settled that are under way."""

    share: Share
    counted: int
    passes: bool


class OverBudget(PenstockError):
    """A call does not fit its budgets, and nothing was counted."""

    spent: list[Spent]


class Calls(Protocol):
    """Lives in the writer's thread. Each method is one transaction."""

    def reserve(self, call: NewCall, shares: Sequence[Share], *, now: int) -> None:
        """Counts the most that a call can cost in every sum, or raises OverBudget and counts it in none."""

    def settle(self, call: NewCall, shares: Sequence[Share], end: CallEnd, *, now: int) -> None:
        """Puts what it did cost in the place of that, once."""
