"""Small services with a limit, in exact arithmetic and without chance, that tests of the limiter ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.control.outcome import Outcome

HOUR = 3_600.0


class Answer(NamedTuple):
    outcome: Outcome
    latency: float
    retry_after: float | None = None


OK = Answer(Outcome.OK, 0.2)
REFUSED = Answer(Outcome.THROTTLED, 0.05)
DOWN = Answer(Outcome.UNAVAILABLE, 0.05)
Service = Callable[[float, int], Answer]  # the time and the number of the request


def bucket(rate: float, depth: float, *, retry_after: float | None = None, later: float | None = None) -> Service:
    """A token bucket. `later` is its rate after half an hour."""
    tokens, last = depth, 0.0

    def ask(now: float, number: int) -> Answer:
        nonlocal tokens, last
        current = rate if later is None or now < HOUR / 2 else later
        tokens, last = min(depth, tokens + (now - last) * current), now
        if tokens < 1:
            return REFUSED._replace(retry_after=retry_after)
        tokens -= 1
        return OK

    return ask


def window(size: int, seconds: float) -> Service:
    index, count = -1, 0

    def ask(now: float, number: int) -> Answer:
        nonlocal index, count
        if now // seconds != index:
            index, count = int(now // seconds), 0
        count += 1
        return OK if count <= size else REFUSED

    return ask


def at_once(places: int, latency: float, *, queues: bool = False) -> Service:
    """A service with so many places. With a queue it answers later instead of refusing."""
    ends: list[float] = []

    def ask(now: float, number: int) -> Answer:
        ends[:] = sorted(end for end in ends if end > now)
        if len(ends) < places:
            ends.append(now + latency)
        elif queues:
            ends.append(ends[-places] + latency)
        else:
            return REFUSED
        return Answer(Outcome.OK, ends[-1] - now)

    return ask


def banning(service: Service, refusals: int, seconds: float, *, within: float = 60.0) -> Service:
    """A service that refuses everything for a while after so many refusals within a minute, or another window."""
    refused: list[float] = []
    until = 0.0

    def ask(now: float, number: int) -> Answer:
        nonlocal until
        if now < until:
            return REFUSED
        if (answer := service(now, number)).outcome is Outcome.THROTTLED:
            refused[:] = [at for at in refused if at > now - within] + [now]
            if len(refused) >= refusals:
                until = now + seconds
        return answer

    return ask


def down(service: Service, since: float, until: float, answer: Answer = DOWN) -> Service:
    return lambda now, number: answer if since <= now < until else service(now, number)


def every(nth: int, answer: Answer, service: Service) -> Service:
    return lambda now, number: answer if number % nth == 0 else service(now, number)
