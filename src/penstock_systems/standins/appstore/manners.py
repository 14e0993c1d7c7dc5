"""Manners: how the stand-in pushes back. Hidden limits, latency and faults, all from the seed and the given clock."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock_systems.standins.appstore.chance import bell, coded, share

DAY_SECONDS = 86_400
CLIENTS_MAX = 1_024  # whose use is remembered; the one unseen for longest is forgotten
ROUNDING = 1e-9  # a token that is this little short is whole

Endpoint = Literal["search", "lookup", "chart", "page", "ratings", "reviews", "hints"]
# error: 500, 502 or 503. busy: 429. refused: 403 and nothing. slow: the answer, much later. empty: no results, no body.
# blocked: a page instead of an answer, and 200. truncated: half of it. The others are for the product page: another id,
# a list at the root, no JSON at all, no shelf in it, a histogram that begins with one star, or the form of former years.
Kind = Literal[
    "error",
    "busy",
    "refused",
    "slow",
    "empty",
    "blocked",
    "truncated",
    "wrong_id",
    "list_root",
    "no_script",
    "no_shelves",
    "reversed",
    "shoebox",
]
# Who sees reviews. open: all. plain: whoever is no browser. itunes: Apple's own client, and only as XML. none: nobody.
ReviewFeed = Literal["open", "plain", "itunes", "none"]


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
    delay_seconds: float = 60.0  # how much later a slow answer comes

    def strikes(self, endpoint: str, number: int, now: float, seed: int) -> bool:
        return (
            self.endpoint in (None, endpoint)
            and (self.requests is None or self.requests[0] <= number <= self.requests[1])
            and (self.seconds is None or self.seconds[0] <= now < self.seconds[1])
            and share(seed, 60, coded(self.kind), coded(endpoint), number) < self.share
        )


def _limits() -> dict[str, Limit]:
    return {
        "search+lookup": Limit(20, closes_after=60),
        "chart": Limit(120),
        "page": Limit(240, hours=((0, 600), (7, 240), (22, 600))),
        "ratings": Limit(600),
        "reviews": Limit(240),
        "hints": Limit(240),
    }


def _medians() -> dict[str, float]:
    return {
        "search": 0.25,
        "lookup": 0.12,
        "chart": 0.3,
        "page": 0.4,
        "ratings": 0.2,
        "reviews": 0.25,
        "hints": 0.08,
    }


@dataclass(frozen=True, slots=True)
class Manners:
    # By endpoint, or by several that share one: "search+lookup". An endpoint without a limit takes everything.
    limits: Mapping[str, Limit] = field(default_factory=_limits)
    latency_seconds: Mapping[str, float] = field(default_factory=_medians)  # the median; without one it is at once
    faults: tuple[Fault, ...] = (Fault("error", share=0.002),)
    too_many_share: float = 0.0  # of the refusals come as 429 instead of 403
    talkative_share: float = 0.0  # of the refusals have an empty list of results instead of an empty body
    whole_pages: bool = False  # product pages of half a megabyte, as they are
    review_feed: ReviewFeed = "plain"

    @staticmethod
    def apple(*, closed_seconds: float = 900.0, whole_pages: bool = True, review_feed: ReviewFeed = "plain") -> Manners:
        """As people report it: 20 searches and look-ups a minute together; who goes on regardless is shut out for long."""
        limits = {
            "search+lookup": Limit(20, closes_after=20, closed_seconds=closed_seconds),
            "chart": Limit(120, closes_after=120, closed_seconds=closed_seconds),
            "page": Limit(
                250,
                300,
                burst=60,
                hours=((0, 500), (7, 250), (22, 500)),
                closes_after=100,
                closed_seconds=closed_seconds,
            ),
            "ratings": Limit(300, closes_after=100, closed_seconds=closed_seconds),
            "reviews": Limit(120, closes_after=100, closed_seconds=closed_seconds),
            "hints": Limit(120, closes_after=100, closed_seconds=closed_seconds),
        }
        faults = (Fault("error", share=0.002), Fault("slow", share=0.0005), Fault("truncated", share=0.0005))
        return Manners(
            limits=limits,
            faults=faults,
            too_many_share=0.1,
            talkative_share=0.05,
            whole_pages=whole_pages,
            review_feed=review_feed,
        )

    def limits_by_endpoint(self) -> dict[str, Limit]:
        return {endpoint: limit for names, limit in self.limits.items() for endpoint in names.split("+")}

    def latency(self, endpoint: str, number: int, seed: int) -> float:
        median = self.latency_seconds.get(endpoint, 0.0)
        return median * math.exp(0.4 * bell(seed, 61, coded(endpoint), number)) if median else 0.0

    def fault(self, endpoint: str, number: int, now: float, seed: int) -> Fault | None:
        struck = (fault for fault in self.faults if fault.strikes(endpoint, number, now, seed))
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
