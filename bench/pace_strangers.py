"""Six kinds of limit that the pilot was not made with in mind."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from bench.pace_services import HOUR, Answer, FixedWindow, Service, TokenBucket, rate_of, run_for


class Weighed(TokenBucket):
    """Requests cost one to five, and nobody says which. The bucket holds two of the dearest at least: where it holds but
    one, a client that cannot tell them apart has a tenth of its requests refused if it wants nine tenths of the best, and
    the measure is the best of a client that can. Such a bucket is left out; the pilot gets 43 % at worst from it."""

    kind = "weighed requests"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.costs = random.choice(((1, 1, 1, 5), (1, 2, 3), (1, 1, 2, 2, 5)))
        self.depth = max(2.0 * max(self.costs), self.depth)
        self.burst_taken = 0.0

    def cost(self) -> float:
        return self.random.choice(self.costs)

    def best(self) -> float:
        return super().best() * len(self.costs) / sum(self.costs)


class TimeOfDay(TokenBucket):
    """A limit that swings smoothly, and never stands still."""

    kind = "time of day"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.swing, self.period = random.uniform(0.3, 0.8), random.uniform(0.5, 4) * HOUR
        self.phase = random.random()

    def limit(self, now: float) -> float:
        return self.rate * (1 + self.swing * math.sin(math.tau * (now / self.period + self.phase)))


class TwoLimits(Service):
    """So many a second, and so many in a window that is much longer."""

    kind = "two limits"
    seconds = 4 * HOUR

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.second = TokenBucket(random)
        self.long = FixedWindow(random)
        self.long.window = random.choice((300.0, 900.0, HOUR))
        self.long.size = max(50, round(self.second.rate * self.long.window * random.uniform(0.2, 0.8)))

    def limit(self, now: float) -> float:
        return self.long.limit(now)

    def admit(self, now: float) -> Answer | None:
        if int(now // self.long.window) == self.long.index and self.long.count >= self.long.size:
            return self.long.admit(now)
        return self.second.admit(now) or self.long.admit(now)


class Sprinter(Service):
    """Wants to be warmed up: takes a little more than it took in the last half minute, never more than its limit."""

    kind = "warm-up"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.rate, self.head_start = rate_of(random), random.uniform(0.3, 1.0)
        self.seconds = run_for(self.rate)
        self.share = random.uniform(1.3, 2.0)
        self.recent, self.tokens, self.at = 0.0, 2.0, 0.0

    def limit(self, now: float) -> float:
        return self.rate

    def admit(self, now: float) -> Answer | None:
        passed = now - self.at
        self.recent *= math.exp(-passed / 30)
        allowed = min(self.rate, max(self.head_start, self.share * self.recent / 30))
        self.tokens = min(max(2.0, allowed * 3), self.tokens + passed * allowed)
        self.at = now
        if self.tokens < 1:
            return self.refuse((1 - self.tokens) / allowed)
        self.tokens -= 1
        self.recent += 1
        return None


class Shared(TokenBucket):
    """Others take from the same bucket, at random moments and now and then more of them."""

    kind = "shared limit"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.total = self.rate * random.uniform(1.3, 2.5)
        self.depth = max(15.0, self.depth)
        self.minutes = [random.uniform(0.6, 1.4) for _ in range(int(self.seconds / 600) + 2)]
        self.next_other = 0.0

    def others(self, now: float) -> float:
        return (self.total - self.rate) * self.minutes[int(now / 600)]

    def limit(self, now: float) -> float:
        return self.total - self.others(now)

    def admit(self, now: float) -> Answer | None:
        while self.next_other < now:
            self._refill(self.next_other)
            self.tokens = max(0.0, self.tokens - 1)
            self.next_other += self.random.expovariate(self.others(self.next_other))
        self._refill(now)
        if self.tokens < 1:
            return self.refuse((1 - self.tokens) / self.total)
        self.tokens -= 1
        return None

    def _refill(self, now: float) -> None:
        self.tokens = min(self.depth, self.tokens + (now - self.at) * self.total)
        self.at = now


class Steps(TokenBucket):
    """Changes its limit without a word, at moments of its own, by up to a factor of eight."""

    kind = "sudden steps"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        moments = sorted(random.uniform(0, self.seconds) for _ in range(random.randint(2, 6)))
        self.steps = [(0.0, self.rate), *((moment, self.rate * 2 ** random.uniform(-2, 1)) for moment in moments)]

    def limit(self, now: float) -> float:
        return next(rate for moment, rate in reversed(self.steps) if moment <= now)


STRANGERS: list[Callable[[Random], Service]] = [Weighed, TimeOfDay, TwoLimits, Sprinter, Shared, Steps]
