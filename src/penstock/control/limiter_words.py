"""What the limiter believes and does, in plain English."""

from __future__ import annotations

from penstock.control.budget import WINDOWS
from penstock.control.limiter_state import LimiterState
from penstock.control.outcome import Outcome

CHANGE = 0.2  # a change of the rate by less than this is not reported
PAUSE_SECONDS = 5.0  # nor is a shorter pause
REASONS = {
    Outcome.THROTTLED: "refused by the service",
    Outcome.UNAVAILABLE: "the service is unavailable",
    Outcome.FAILED: "it fails",
}
STATES = {
    "search": "looking for the limit",
    "return": "returning to the limit",
    "cruise": "at the limit",
    "probe": "probing above the limit",
    "test": "testing whether refusals are about the rate",
}


def put_into_words(state: LimiterState, rate: float, outcome: Outcome, now: float, retry_after: float | None) -> None:
    """Note a change of the rate, if it is not a small one."""
    closed = state.closure.hold_until - now
    reason = REASONS.get(outcome, "no resistance" if rate > state.spoken else "latency rises")
    if outcome in REASONS and closed > PAUSE_SECONDS:
        asked = "" if retry_after is None else f", with Retry-After {retry_after:.0f} s"
        state.words, state.spoken = f"{reason}{asked}: paused for {closed:.0f} s", 0.0
    elif not state.spoken:
        state.words, state.spoken = f"begins at {rate_text(rate)}", rate
    elif abs(rate - state.spoken) >= CHANGE * state.spoken:
        state.words, state.spoken = f"{reason}: {rate_text(state.spoken)} to {rate_text(rate)}", rate


def explain(state: LimiterState, rate: float, now: float) -> str:
    """Say which limit it believes in, why, how sure it is, what it does next, and what a refusal would cost."""
    return f"{_limit(state, rate)} {_next(state, rate, now)} {_cost(state, now)}"


def _limit(state: LimiterState, rate: float) -> str:
    limit, at_once = state.limit, state.flights.limit
    if at_once is not None:
        return f"The service takes {at_once} requests at once: it refused each time that more were in flight."
    if state.flights.places is not None:
        return (
            f"The service works on {state.flights.places} requests at once and answers later when more are in flight."
        )
    if limit.known is None:
        return (
            f"The limit is not known yet: the service has refused no request for its rate, and takes {rate_text(rate)}."
        )
    sure = "sure" if limit.spread < 0.03 else "fairly sure" if limit.spread < 0.15 else "not sure"
    return (
        f"The limit is about {rate_text(limit.known)}, {sure}: the service refused at {rate_text(limit.high)} and is "
        f"expected to accept {rate_text(limit.low)}."
    )


def _next(state: LimiterState, rate: float, now: float) -> str:
    closure, limit = state.closure, state.limit
    if now < closure.hold_until:
        why = "It fails" if closure.down else "It refuses"
        return f"{why}, so the next request starts in {duration_text(closure.hold_until - now)}."
    match limit.phase:
        case "search":
            return f"The rate, now {rate_text(rate)}, grows until the service refuses."
        case "return":
            return f"The rate, now {rate_text(rate)}, returns to {rate_text(limit.cruising_rate)}."
        case "cruise":
            probe = max(limit.cruise_until, state.budget.free_at(now)) - now
            return f"It stays at {rate_text(rate)} and probes above it in {duration_text(max(0.0, probe))}."
        case "probe":
            return f"It probes above the limit, slowly: now {rate_text(rate)}."
        case "test":
            return f"It tests at {rate_text(rate)} whether the last refusals were about the rate at all."


def _cost(state: LimiterState, now: float) -> str:
    budget = state.budget
    used = ", ".join(
        f"{count} of {most} within {duration_text(seconds)}"
        for count, most, seconds in zip(budget.count(now), budget.limits(now), WINDOWS, strict=True)
    )
    if budget.allowed is not None:
        return f"A ban taught it how many refusals are too many. Refusals, and how many it allows: {used}."
    return f"A few refusals within minutes may lead to a ban. Refusals, and how many it allows: {used}."


def rate_text(rate: float) -> str:
    return f"{rate:.1f} a second" if rate >= 1 else f"{rate * 60:.1f} a minute"


def duration_text(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
