"""Services that ban: so many refusals within a window, and every request is refused for a while."""

from __future__ import annotations

from collections import deque
from random import Random

from bench.pace_services import (
    DAY,
    HOUR,
    Answer,
    Draw,
    FixedWindow,
    LeakyBucket,
    Overload,
    Service,
    SlidingWindow,
    TokenBucket,
    log_uniform,
)
from bench.pace_strangers import Shared, Steps, TimeOfDay
from penstock.control.outcome import Outcome

BUCKETS: tuple[Draw, ...] = (TokenBucket, TokenBucket, TokenBucket, LeakyBucket)
WINDOWS: tuple[Draw, ...] = (SlidingWindow, FixedWindow)
CHANGING: tuple[Draw, ...] = (Steps, TimeOfDay)
SHARED: tuple[Draw, ...] = (Shared,)
SLOW: tuple[Draw, ...] = (Overload,)


class Ban(Service):
    """A limit of one of these kinds, and a ban on top of it. Errors that are not about the rate never count."""

    limits: tuple[Draw, ...] = BUCKETS

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.inside = self.inner(random)
        self.refusals_most = random.randint(2, 40)
        self.within = log_uniform(random, 30.0, 1_800.0)
        self.length, self.doubles = log_uniform(random, 180.0, 2 * HOUR), random.random() < 0.5
        self.probes_extend = random.random() < 0.3
        self.says = random.random() < 0.2
        self.noise = random.choice((0.0, 0.0, random.uniform(0.001, 0.01)))
        self.seconds = DAY
        self.refused: deque[float] = deque()
        self.until = -1.0
        self.banned: list[tuple[float, float]] = []  # when each ban began and ended

    def inner(self, random: Random) -> Service:
        """The limit. Schedules and neighbours are drawn for a whole day."""
        drawn = random.choice(self.limits)(random)
        drawn.seconds = DAY
        if isinstance(drawn, Steps | Shared):
            drawn.spread(random)
        return drawn

    def ask(self, now: float, item: int) -> Answer:
        if now < self.until:
            if self.probes_extend:
                self.until = min(self.until + 0.1 * self.length, now + self.length * 2**self.bans)
                self.banned[-1] = (self.banned[-1][0], self.until)
            return self.refuse(self.until - now if self.says else None)
        answer = self.inside.ask(now, item)
        if not answer.about_the_pace:
            if self.noise and self.random.random() < self.noise:
                return Answer(Outcome.UNAVAILABLE, answer.latency)
            return answer
        refused = self.refused
        refused.append(now)
        while refused[0] < now - self.within:
            refused.popleft()
        if len(refused) >= self.refusals_most:
            length = self.length * (2**self.bans if self.doubles else 1)
            self.until = now + min(length, 4 * HOUR)
            self.banned.append((now, self.until))
            self.bans += 1
            refused.clear()
        return answer

    def limit(self, now: float) -> float:
        return self.inside.limit(now)

    def best(self) -> float:
        return self.inside.best() * (1 - self.noise)

    @property
    def is_changing(self) -> bool:
        """Whether a client at half its limit may be refused at all."""
        return isinstance(self.inside, Shared | Steps)

    def bans_half(self) -> bool:
        """Whether it bans even a client that goes at half its limit."""
        now, number = 0.0, 0
        while now < self.seconds and number < 100_000 and not self.bans:
            self.ask(now, number)
            number += 1
            now += 2 / max(1e-3, self.limit(now))
        return self.bans > 0


class BucketBan(Ban):
    kind = "ban: bucket"


class WindowBan(Ban):
    kind = "ban: window"
    limits = WINDOWS


class ChangingBan(Ban):
    kind = "ban: changing limit"
    limits = CHANGING


class SharedBan(Ban):
    kind = "ban: neighbour"
    limits = SHARED


class SlowBan(Ban):
    kind = "ban: overload"
    limits = SLOW


# Half of them are buckets.
BANS: list[Draw] = [
    BucketBan,
    WindowBan,
    BucketBan,
    ChangingBan,
    BucketBan,
    WindowBan,
    BucketBan,
    SharedBan,
    BucketBan,
    SlowBan,
]
