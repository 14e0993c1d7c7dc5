"""Kinds of limit that change, or that depend on what this client or others did before."""

from __future__ import annotations

import math
from random import Random

from bench.pace_services import (
    DAY,
    HOUR,
    Answer,
    Draw,
    FixedWindow,
    Service,
    TokenBucket,
    log_uniform,
    rate_of,
    run_for,
)


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
        self.swing, self.period = random.uniform(0.3, 0.8), random.uniform(0.5, 24) * HOUR
        self.phase = random.random()

    def limit(self, now: float) -> float:
        return self.rate * (1 + self.swing * math.sin(math.tau * (now / self.period + self.phase)))


class TwoLimits(Service):
    """So many a second, and so many in a window that is much longer."""

    kind = "two limits"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.second = TokenBucket(random)
        self.long = FixedWindow(random)
        self.long.window = log_uniform(random, 300.0, 6 * HOUR)
        self.long.size = max(50, round(self.second.rate * self.long.window * random.uniform(0.2, 0.8)))
        self.seconds = run_for(self.long.size / self.long.window, self.long.window)

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
        self.next_other = 0.0
        self.spread(random)

    def spread(self, random: Random) -> None:
        """Draw what the others do over the whole run."""
        self.minutes = [random.uniform(0.6, 1.4) for _ in range(int(self.seconds / 600) + 2)]

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
        self.spread(random)

    def spread(self, random: Random) -> None:
        """Draw the moments over the whole run."""
        moments = sorted(random.uniform(0, self.seconds) for _ in range(random.randint(2, 6)))
        self.steps = [(0.0, self.rate), *((moment, self.rate * 2 ** random.uniform(-2, 1)) for moment in moments)]

    def limit(self, now: float) -> float:
        return next(rate for moment, rate in reversed(self.steps) if moment <= now)


class EarlyDrop(Service):
    """Refuses some requests at random before it is full: more of them, the nearer to its limit the last ten seconds were.
    The best is what a client gets that accepts one refusal in a hundred."""

    kind = "early drop"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.rate, self.start = rate_of(random), random.uniform(0.85, 0.97)
        self.worst = random.uniform(0.05, 0.5)
        self.load, self.at, self.seconds = 0.0, 0.0, run_for(self.rate)
        self.memory = max(10.0, 10 / self.rate)

    def limit(self, now: float) -> float:
        return self.rate * (self.start + (1 - self.start) * min(1.0, 0.01 / self.worst))

    def admit(self, now: float) -> Answer | None:
        self.load *= math.exp((self.at - now) / self.memory)
        self.at = now
        above = (self.load / (self.memory * self.rate) - self.start) / (1 - self.start)
        if above > 1 or (above > 0 and self.random.random() < self.worst * above):
            return self.refuse()
        self.load += 1
        return None


class Trust(TokenBucket):
    """Raises the limit of a client that behaves, hour by hour, and takes it all back after some refusals in an hour."""

    kind = "trust"

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.rate = log_uniform(random, 0.05, 5.0)
        self.depth = max(float(random.randint(1, 5)), self.rate * log_uniform(random, 0.5, 20.0))
        self.most, self.hours = random.uniform(2, 10), random.uniform(1, 6)
        self.refusals_most = random.randint(6, 40)
        self.refused: list[float] = []
        self.since = 0.0
        self.seconds = min(DAY, max(run_for(self.rate), 2 * self.hours * HOUR))

    def trusted(self, seconds: float) -> float:
        grown: float = self.most ** min(1.0, seconds / (self.hours * HOUR))
        return self.rate * grown

    def limit(self, now: float) -> float:
        return self.trusted(now - self.since)

    def best(self) -> float:
        self.since = 0.0
        return super().best()

    def admit(self, now: float) -> Answer | None:
        refusal = super().admit(now)
        if refusal is not None:
            self.refused = [at for at in self.refused if at > now - HOUR] + [now]
            if len(self.refused) >= self.refusals_most:
                self.since, self.refused = now, []
        return refusal


STRANGERS: list[Draw] = [
    Weighed,
    TimeOfDay,
    TwoLimits,
    Sprinter,
    Shared,
    Steps,
    EarlyDrop,
    Trust,
]
