"""Services with a hidden limit, every number of them drawn from a seed: what the pilot is tried against.

Each answers a request with an outcome and a latency, and knows what a client that knows everything would get from it.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from random import Random
from typing import NamedTuple

from penstock.control.outcome import Outcome

HOUR, DAY = 3_600.0, 86_400.0
REQUESTS = 40_000
RATES = (0.05, 30.0)  # requests a second
WINDOWS = (5.0, 6 * HOUR)
SPREAD = 0.35  # of latencies, as the deviation of their logarithm
LATENCIES = [math.exp(Random(7_919 + index).gauss(0, SPREAD)) for index in range(4_096)]
MEAN_LATENCY = math.exp(SPREAD**2 / 2)  # of a latency whose median is one


class Answer(NamedTuple):
    outcome: Outcome
    latency: float
    retry_after: float | None = None
    about_the_pace: bool = False  # a refusal that going slower would have spared


class Service:
    """A service that takes everything. Kinds override `admit` and `limit`, the rest is common to all."""

    kind = ""
    seconds = 2 * HOUR
    lifted: tuple[float, ...] = ()  # when a limit of zero came to its end

    def __init__(self, random: Random) -> None:
        self.random = random
        self.latency = random.uniform(0.08, 0.8)
        self.tells = random.random() < 0.4  # whether a refusal says when to come back
        self.gone = random.choice((0.0, 0.0, random.uniform(0.01, 0.2)))
        self.broken = random.choice((0.0, 0.0, random.uniform(0.002, 0.05)))
        self.burst_taken = 0.0
        self.bans = 0
        self.drawn = random.randrange(len(LATENCIES))

    def took(self) -> float:
        """The latency of one answer, in seconds."""
        self.drawn = (self.drawn + 1) & 4_095
        return self.latency * LATENCIES[self.drawn]

    def ask(self, now: float, item: int) -> Answer:
        refusal = self.admit(now)
        return refusal if refusal is not None else self.serve(item)

    def admit(self, now: float) -> Answer | None:
        return None

    def serve(self, item: int, latency: float | None = None) -> Answer:
        took = self.took() if latency is None else latency
        if self.broken and self.random.random() < self.broken:
            slow = self.random.random() < 0.3
            return Answer(Outcome.UNAVAILABLE, 10.0 if slow else took)
        if self.gone and hashed(item) < self.gone:
            return Answer(Outcome.GONE, took)
        return Answer(Outcome.OK, took)

    def is_good(self, item: int) -> bool:
        """Whether the item can be done at all."""
        return True

    def refuse(self, after: float | None = None) -> Answer:
        told = math.ceil(after) if after is not None and self.tells else None
        return Answer(Outcome.THROTTLED, 0.3 * self.latency, told, True)

    def limit(self, now: float) -> float:
        """How many a second it takes, in the long run."""
        raise NotImplementedError

    def best(self) -> float:
        """What a client that knows everything gets done."""
        step = 60.0
        taken = sum(self.limit((minute + 0.5) * step) * step for minute in range(int(self.seconds / step)))
        return (taken + self.burst_taken) * (1 - self.broken) * (1 - self.gone)


def hashed(item: int) -> float:
    return (item * 2_654_435_761 & 0xFFFF_FFFF) / 2**32


def run_for(rate: float, window: float = 0.0) -> float:
    """Simulated seconds: 40,000 requests or a day, and at least two of its longest windows."""
    return max(min(DAY, REQUESTS / rate), 2 * window)


def log_uniform(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def rate_of(random: Random) -> float:
    return log_uniform(random, *RATES)


def window_of(random: Random) -> float:
    """Its length in seconds. Half of them are the round ones that people choose."""
    round_ones = (10.0, 60.0, 60.0, 300.0, 900.0, HOUR)
    return random.choice(round_ones) if random.random() < 0.5 else log_uniform(random, *WINDOWS)


class TokenBucket(Service):
    kind = "token bucket"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.rate = rate_of(random)
        self.depth = max(float(random.randint(1, 5)), self.rate * log_uniform(random, 0.5, 20.0))
        self.tokens, self.at = self.depth, 0.0
        self.burst_taken = self.depth
        self.seconds = run_for(self.rate)

    def limit(self, now: float) -> float:
        return self.rate

    def cost(self) -> float:
        return 1.0

    def admit(self, now: float) -> Answer | None:
        rate = self.limit(now)
        self.tokens = min(self.depth, self.tokens + (now - self.at) * rate)
        self.at = now
        cost = self.cost()
        if self.tokens >= cost:
            self.tokens -= cost
            return None
        return self.refuse((cost - self.tokens) / rate if rate else 60.0)


class LeakyBucket(Service):
    """Serves one after the other at a fixed distance; what does not fit into its queue is refused."""

    kind = "leaky bucket"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.rate, self.queue = rate_of(random), random.randint(1, 12)
        self.free_at = 0.0
        self.seconds = run_for(self.rate)

    def limit(self, now: float) -> float:
        return self.rate

    def ask(self, now: float, item: int) -> Answer:
        wait = max(0.0, self.free_at - now)
        if wait * self.rate > self.queue:
            return self.refuse(1 / self.rate)
        self.free_at = max(now, self.free_at) + 1 / self.rate
        return self.serve(item, wait + self.took())


class FixedWindow(Service):
    kind = "fixed window"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.window = window_of(random)
        self.size = max(3, round(rate_of(random) * self.window))
        self.index, self.count = -1, 0
        self.seconds = run_for(self.size / self.window, self.window)

    def limit(self, now: float) -> float:
        return self.size / self.window

    def best(self) -> float:
        self.burst_taken = self.size * (math.ceil(self.seconds / self.window) - self.seconds / self.window)
        return super().best()

    def admit(self, now: float) -> Answer | None:
        index = int(now // self.window)
        if index != self.index:
            self.index, self.count = index, 0
        if self.count >= self.size:
            return self.refuse((index + 1) * self.window - now)
        self.count += 1
        return None


class SlidingWindow(Service):
    kind = "sliding window"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.window = window_of(random)
        self.size = max(3, round(rate_of(random) * self.window))
        self.taken: deque[float] = deque()
        self.seconds = run_for(self.size / self.window, self.window)

    def limit(self, now: float) -> float:
        return self.size / self.window

    def best(self) -> float:
        self.burst_taken = self.size * (math.ceil(self.seconds / self.window) - self.seconds / self.window)
        return super().best()

    def admit(self, now: float) -> Answer | None:
        while self.taken and self.taken[0] <= now - self.window:
            self.taken.popleft()
        if len(self.taken) >= self.size:
            return self.refuse(self.taken[0] + self.window - now)
        self.taken.append(now)
        return None


class DailyQuota(FixedWindow):
    kind = "daily quota"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.window, self.size = DAY, random.randint(4_000, 20_000)
        self.seconds = 2 * DAY


class Concurrency(Service):
    kind = "requests at once"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.broken = 0.0  # so that the best can be told: a timeout holds its place
        self.places = random.randint(1, 10)
        self.ends: list[float] = []
        self.seconds = run_for(self.limit(0.0))

    def limit(self, now: float) -> float:
        return self.places / (self.latency * MEAN_LATENCY)

    def ask(self, now: float, item: int) -> Answer:
        while self.ends and self.ends[0] <= now:
            heapq.heappop(self.ends)
        if len(self.ends) >= self.places:
            return self.refuse()
        answer = self.serve(item)
        heapq.heappush(self.ends, now + answer.latency)
        return answer


class Overload(Service):
    """Answers later and later, then works worse, then gives up: the queue is the only sign before it is too late."""

    kind = "overload"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.workers = random.randint(1, 10)
        self.latency = random.choice((self.latency, 5 * self.latency))
        self.patience = random.uniform(3, 8)
        self.free = [0.0] * self.workers
        self.seconds = run_for(self.limit(0.0))

    def limit(self, now: float) -> float:
        return self.workers / (self.latency * MEAN_LATENCY)

    def ask(self, now: float, item: int) -> Answer:
        wait = max(0.0, self.free[0] - now)
        if wait > self.patience:
            return Answer(Outcome.UNAVAILABLE, 0.05, None, True)
        work = self.took() * (1.5 if wait > 4 * self.latency else 1.0)
        heapq.heapreplace(self.free, now + wait + work)
        if wait + work > 10:
            return Answer(Outcome.UNAVAILABLE, 10.0, None, True)
        return self.serve(item, wait + work)


class PenaltyBox(TokenBucket):
    """Once over its limit it refuses everything for a while."""

    kind = "penalty box"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.box, self.until = random.uniform(5, 60), -1.0

    def admit(self, now: float) -> Answer | None:
        if now < self.until:
            return self.refuse(self.until - now)
        refusal = super().admit(now)
        if refusal is None:
            return None
        self.until = now + self.box
        return self.refuse(self.box)


class Outages(TokenBucket):
    kind = "outages"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        starts = sorted(random.uniform(0.1, 0.85) * self.seconds for _ in range(2))
        self.closed = [(start, start + random.uniform(60, 1_500)) for start in starts]
        self.lifted = tuple(end for _, end in self.closed if not self.is_closed(end + 1))

    def is_closed(self, now: float) -> bool:
        return any(start <= now < end for start, end in self.closed)

    def limit(self, now: float) -> float:
        return 0.0 if self.is_closed(now) else self.rate

    def admit(self, now: float) -> Answer | None:
        if self.is_closed(now):
            self.tokens, self.at = 0.0, now
            return Answer(Outcome.UNAVAILABLE, 0.1, None, True)
        return super().admit(now)


class Firewall(TokenBucket):
    """Refuses a share of all requests, whatever the pace."""

    kind = "firewall"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.noise = random.uniform(0.003, 0.02)

    def serve(self, item: int, latency: float | None = None) -> Answer:
        if self.random.random() < self.noise:
            return Answer(Outcome.THROTTLED, 0.3 * self.latency)
        return super().serve(item, latency)

    def best(self) -> float:
        return super().best() * (1 - self.noise)


class Poison(TokenBucket):
    """Refuses some items for ever."""

    kind = "poison items"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.poison = random.uniform(0.002, 0.015)

    def is_good(self, item: int) -> bool:
        return hashed(item + 7_919) >= self.poison

    def serve(self, item: int, latency: float | None = None) -> Answer:
        if not self.is_good(item):
            return Answer(Outcome.THROTTLED, self.latency)
        return super().serve(item, latency)

    def best(self) -> float:
        return super().best() * (1 - self.poison)


Draw = type[Service]
KINDS: list[Draw] = [
    TokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingWindow,
    DailyQuota,
    Concurrency,
    Overload,
    PenaltyBox,
    Outages,
    Firewall,
    Poison,
]
