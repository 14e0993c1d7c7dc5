"""What a controller asks of whatever decides its pace: may one start now, and what came of those that did."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from penstock.control.pilot import Decision, Outcome
from penstock.model.errors import BudgetSpent, Gone, Permanent, Refused, Throttled, Unavailable, Unparsable


class Pace(Protocol):
    """Pure: time comes in as seconds. Its state can be saved at any moment and loaded elsewhere."""

    def next(self, now: float) -> Decision: ...
    def started(self, now: float) -> int: ...
    def finished(
        self,
        now: float,
        ticket: int,
        outcome: Outcome,
        *,
        latency: float,
        retry_after: float | None = None,
        item: str | None = None,
    ) -> bool | None:
        """Whether a refusal is the item's own, which fails wherever it is tried: an attempt to charge it with."""
        ...

    def explain(self) -> str:
        """Why the pace changed last, in words."""
        ...

    @property
    def rate_per_second(self) -> float: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def interval_ms(self) -> int: ...
    @property
    def closed_until(self) -> float:
        """Until when nothing starts, in seconds; 0 if the door is open."""
        ...

    def none_left(self, now: float) -> None:
        """There is no item to start."""
        ...

    def restarted(self, now: float) -> None:
        """An operator wants it to go on now: a cooldown ends and measuring begins anew."""
        ...

    def tune(self, now: float, wanted: Mapping[str, object]) -> None: ...
    def saved(self) -> dict[str, Any]: ...


def outcome_of(error: BaseException | None) -> Outcome:
    """By the type of an error or the status of the answer in it, never by its text: an id may hold 403 too."""
    match error:
        case None:
            return Outcome.OK
        case Throttled():
            return Outcome.THROTTLED
        case Unavailable() | asyncio.TimeoutError() | ConnectionError():
            return Outcome.UNAVAILABLE
        case Gone() | BudgetSpent():  # the latter says nothing about the service: it was not asked
            return Outcome.GONE
        case Unparsable():
            return Outcome.UNPARSABLE
        case Refused() | Permanent():
            return Outcome.UNPARSABLE
        case _:
            return _of_status(getattr(getattr(error, "response", error), "status_code", getattr(error, "status", None)))


def _of_status(status: object) -> Outcome:
    """Of errors that HTTP clients raise."""
    if status in (403, 429):
        return Outcome.THROTTLED
    if status in (404, 410):
        return Outcome.GONE
    if status == 408 or (isinstance(status, int) and 500 <= status <= 599):
        return Outcome.UNAVAILABLE
    # An error over a good answer is about what the answer held.
    return Outcome.UNPARSABLE if isinstance(status, int) and 200 <= status <= 299 else Outcome.FAILED
