"""What a controller asks of whatever decides its pace: may one start now, and what came of those that did."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from penstock.control.limiter import Limiter
from penstock.control.limiter_state import LimiterState
from penstock.control.outcome import Decision, Outcome
from penstock.model.errors import BadMessage, BudgetSpent, Gone, Permanent, Refused, Throttled, Unavailable, Unparsable

NO_FIGURES: dict[str, Any] = {
    "limit_per_second": None,
    "phase": None,
    "refusals_within": None,
    "refusals_allowed": None,
    "bans": 0,
    "explanation": "",
}


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

    def explain(self, now: float) -> str:
        """What it believes and does, in plain English."""
        ...

    @property
    def words(self) -> str:
        """Why the pace changed last."""
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


class AdaptivePace(Limiter):
    def __init__(self, saved: dict[str, Any], *, rate: tuple[float, float], parallel: int) -> None:
        super().__init__(_loaded(saved))
        self.state.rate_min, self.state.rate_max = rate
        self.state.parallel = parallel

    def none_left(self, now: float) -> None:
        """Nothing to start is no reason to change the pace."""

    @property
    def batch_size(self) -> int:
        """How many may be under way: what comes nearest to a batch."""
        return self.state.parallel

    @property
    def interval_ms(self) -> int:
        return round(1_000 / self.rate_per_second) if self.rate_per_second else 0

    @property
    def closed_until(self) -> float:
        return self.state.closure.hold_until

    def restarted(self, now: float) -> None:
        self.state.closure.hold_until = 0.0
        self.state.due = now

    def tune(self, now: float, wanted: Mapping[str, object]) -> None:
        unknown = wanted.keys() - {"rate", "parallel"}
        if unknown:
            raise BadMessage(f"The mode pilot has no setting {', '.join(sorted(unknown))}; it has rate and parallel.")
        state = self.state
        numbers = {name: _number(name, value) for name, value in wanted.items()}
        if "rate" in numbers:
            state.rate_max = max(state.rate_min, numbers["rate"])
        if "parallel" in numbers:
            state.parallel = max(1, int(numbers["parallel"]))
        self.state.due = min(self.state.due, now)

    def figures(self, now: float) -> dict[str, Any]:
        """What a list of paces shows: the limit, the budget of refusals, and an explanation."""
        limit, budget = self.state.limit, self.state.budget
        return {
            "limit_per_second": None if limit.known is None else round(limit.known, 4),
            "phase": limit.phase,
            "refusals_within": budget.count(now),
            "refusals_allowed": budget.limits(now),
            "bans": budget.bans,
            "explanation": self.explain(now),
        }

    def saved(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self.state, str_keys=True)
        return plain


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
        raise BadMessage(f"{name} is {value!r}; give a number above 0.")
    return float(value)


def _loaded(saved: dict[str, Any]) -> LimiterState | None:
    """What was in flight when it was saved is not any more; what does not fit is begun anew."""
    if not saved:
        return None
    try:
        state = msgspec.convert(saved, LimiterState, str_keys=True)
    except msgspec.ValidationError:
        return None
    state.flights.under_way.clear()
    if "limit" not in saved and (before := saved.get("ceiling")):  # saved by 0.1, which knew another limiter
        state.limit.rate = before["rate"]
        if known := before["known"]:
            state.limit.low, state.limit.high, state.limit.phase = 0.95 * known, known, "cruise"
    return state
