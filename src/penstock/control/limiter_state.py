"""All that the adaptive limiter knows."""

from __future__ import annotations

import msgspec

from penstock.control.budget import Budget
from penstock.control.closure import Closure
from penstock.control.inflight import Flights
from penstock.control.limit import Limit
from penstock.control.suspicion import Suspicion, Throttling


class LimiterState(msgspec.Struct):
    """All that the limiter knows, as plain values: saved as JSON and loaded elsewhere it decides the same."""

    rate_min: float = 0.001
    rate_max: float = 1_000.0
    parallel: int = 32
    due: float = 0.0  # when the next request may start
    waited: bool = False  # the next one waits for an answer
    refusals: int = 0
    refuses: bool = False  # it refuses when it is asked too fast: failures are not about the rate
    blamed: str | None = None  # the item of the last refusal that was taken to be about the rate
    closures: int = 0  # in a row, each after one refusal
    limit: Limit = msgspec.field(default_factory=Limit)
    closure: Closure = msgspec.field(default_factory=Closure)
    budget: Budget = msgspec.field(default_factory=Budget)
    flights: Flights = msgspec.field(default_factory=Flights)
    throttling: Throttling = msgspec.field(default_factory=Throttling)
    unavailable: Suspicion = msgspec.field(default_factory=lambda: Suspicion(0.02, 0.25, 6.5, 0.002, 0.001))
    free_at: float = 0.0  # when the budget allows a probe, and when that was last computed
    checked_at: float = -1e9
    held_back: bool = False  # one more refusal may lead to another ban
    words: str = "no answer from the service yet"
    spoken: float = 0.0
