"""Manners: how the stand-in pushes back. Hidden limits, latency and faults, all from the seed and the given clock."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from penstock_systems.standins.appstore.chance import bell, coded, share

DAY_SECONDS = 86_400
CLIENTS_MAX = 1_024  # whose use is remembered; the one unseen for longest is forgotten
ROUNDING = 1e-9  # a token that is this little short is whole

Endpoint = Literal["search", "lookup", "chart", "page", "ratings"]
Kind = Literal["error", "busy", "empty", "truncated", "wrong_id", "list_root"]


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests in so many seconds, from one address. A bucket refills evenly, a window starts anew."""

    count: float
    seconds: float = 60.0
    kind: Literal["bucket", "window"] = "bucket"
    burst: float | None = None  # how many a full bucket holds: `count` unless given
    hours: tuple[tuple[float, float], ...] = ()  # (hour of the day, the count from then on): quiet and busy times
    closes_after: int = 0  # so many refusals within one period close the door; 0: it never closes
    closed_seconds: float = 300.0

    def at(self, now: float) -> float:
        """The count that holds at this moment."""
        hour = now % DAY_SECONDS / 3_600
        begun = [count for start, count in sorted(self.hours) if start <= hour]
        return begun[-1] if begun else max(self.hours)[1] if self.hours else self.count


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong: by chance, for some requests by their number, or between two moments."""

    kind: Kind
    endpoint: Endpoint | None = None  # any
    share: float = 1.0
    requests: tuple[int, int] | None = None  # the first, counted from 1, and the last
    seconds: tuple[float, float] | None = None  # of the clock: from, and up to

    def strikes(self, endpoint: str, number: int, now: float, seed: int) -> bool:
        return (
            self.endpoint in (None, endpoint)
            and (self.requests is None or self.requests[0] <= number <= self.requests[1])
            and (self.seconds is None or self.seconds[0] <= now < self.seconds[1])
            and share(seed, 60, coded(self.kind), coded(endpoint), number) < self.share
        )


def _limits() -> dict[str, Limit]:
    return {
        "search": Limit(20, closes_after=60),
        "lookup": Limit(300),
        "chart": Limit(120),
        "page": Limit(240, hours=((0, 600), (7, 240), (22, 600))),
        "ratings": Limit(600),
    }


def _medians() -> dict[str, float]:
    return {"search": 0.25, "lookup": 0.12, "chart": 0.3, "page": 0.4, "ratings": 0.2}


@dataclass(frozen=True, slots=True)
class Manners:
    limits: dict[str, Limit] = field(default_factory=_limits)  # an endpoint without one takes everything
    latency_seconds: dict[str, float] = field(default_factory=_medians)  # the median; without one it is at once
    faults: tuple[Fault, ...] = (Fault("error", share=0.002),)
    too_many_share: float = 0.0  # of the refusals come as 429 instead of 403
    whole_pages: bool = False  # product pages of half a megabyte, as they are

    def latency(self, endpoint: str, number: int, seed: int) -> float:
        return self.latency_seconds.get(endpoint, 0.0) * math.exp(0.4 * bell(seed, 61, coded(endpoint), number))

    def fault(self, endpoint: str, number: int, now: float, seed: int) -> Kind | None:
        struck = (fault.kind for fault in self.faults if fault.strikes(endpoint, number, now, seed))
        return next(struck, None)


class Door:
    """Lets the requests of each address in up to a limit, and knows nobody's name but for that."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._visits: OrderedDict[str, _Visit] = OrderedDict()

    def admits(self, address: str, now: float) -> bool:
        visit = self._visits.setdefault(address, _Visit(left=self._full(now), since=now))
        self._visits.move_to_end(address)
        if len(self._visits) > CLIENTS_MAX:
            self._visits.popitem(last=False)
        return now >= visit.closed_until and self._takes(visit, now)

    def _full(self, now: float) -> float:
        limit = self.limit
        return limit.burst if limit.kind == "bucket" and limit.burst is not None else limit.at(now)

    def _takes(self, visit: _Visit, now: float) -> bool:
        limit, period = self.limit, now // self.limit.seconds
        if limit.kind == "bucket":
            refill = (now - visit.since) * limit.at(now) / limit.seconds
            visit.left = min(self._full(now), visit.left + refill)
        elif visit.since // limit.seconds != period:
            visit.left = self._full(now)
        if visit.since // limit.seconds != period:
            visit.refused = 0
        visit.since = now
        if visit.left >= 1 - ROUNDING:
            visit.left -= 1
            return True
        visit.refused += 1
        if limit.closes_after and visit.refused >= limit.closes_after:
            visit.closed_until, visit.refused = now + limit.closed_seconds, 0
        return False


@dataclass(slots=True)
class _Visit:
    left: float
    since: float
    refused: int = 0
    closed_until: float = -math.inf
