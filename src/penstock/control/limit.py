"""The limit: between the rate that a service accepted and the one that it refused, and how to narrow that down."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Phase = Literal["search", "return", "cruise", "probe", "test"]

FIRST_RATE = 0.25  # requests a second
UNKNOWN_REQUESTS = 4  # until then a refusal says nothing about the rate
GROWTH_A_REQUEST, GROWTH_A_SECOND = 0.4, 0.07  # of a search
SHARED_POWER = 0.75  # of the number of requests in flight, by which the latter is divided
# What a bucket holds, as the square root of twice the seconds that it takes to fill.
BUCKET_FIRST, BUCKET_LEAST, BUCKET_SECONDS = 3.5, 0.5, 40.0
SPREAD_LEAST, SPREAD_MOST = 0.01, 2.0
SURPRISE_SPREAD = 0.05  # after a refusal below the estimate; doubled with each in a row
BACK = 0.75  # of the rate of the cruise at which it begins after a refusal
BACK_SECONDS, BACK_REQUESTS = 20.0, 15.0  # from there to the rate of the cruise
PROVEN = 4  # refusals within an hour that led to no ban: with more of them a probe comes sooner
PROBE_SECONDS, PROBE_REQUESTS = 300.0, 40.0  # between two refusals; doubled with each that was expected
PROBE_SECONDS_MOST, PROBE_REQUESTS_MOST = 1_200.0, 600.0
ISOLATED_REQUESTS, ISOLATED_MOST = 20, 3  # so many accepted before each of so many surprises: they may be noise
TEST_SHARE = 4  # of a test in which a refusal says that it is about the rate
NOISE_BELOW = 0.8  # if the last one came at so small a share of the rate that was accepted before them
BACK_SPENT = 0.5  # the same while another refusal would be one too many
QUICK_REQUESTS = 10  # accepted before a refusal, or fewer: it is about the rate
BELOW_LOW = 1.02  # times the estimate, and less: a refusal there may be noise
RISEN_GROWTH, RISEN_A_REQUEST = 5e-5, 0.06  # more growth each second above a rate that was refused
CRUISE_SHARE = 0.25  # of the time between two refusals, before it probes
FEW_REQUESTS = 10.0  # that any service may have saved
WIDE = 0.5  # an uncertainty from which on the lower bound is far below anything that was refused
LOW = 1.3  # times the overshoot that the bucket explains
WINDOW_CLOSED = 0.15  # of a window, or more, that was used up too early
WINDOW_ALIKE = 0.05  # the difference of two windows that were used up
WINDOW_REFUTED = 1.5  # times what a window held, accepted in as long: there is none
WINDOW_HIGH = 2.0  # times what a window takes on average, at most
CAREFUL_SECONDS = 3_600.0  # after a ban
CAREFUL_SHARE = 0.9  # of the rate of the cruise, after a ban
NARROW = 0.1  # an uncertainty up to which a refusal is put off
CLOSURE_TIMES = 20.0  # the last closure, between two probes


class Limit(msgspec.Struct):
    """`search` until a refusal. Then, over and over: `return` to just below the estimate, `cruise`, and `probe` above it."""

    rate: float = FIRST_RATE
    phase: Phase = "search"
    low: float = 0.0  # accepted on average between two refusals
    high: float = 0.0  # the rate at the last one; 0 while none is known
    steady: int = 0  # refusals in a row that came where they were expected
    surprises: int = 0  # and those that did not
    growth: float = 0.0  # of the rate, as its logarithm a second
    bucket: float = BUCKET_FIRST
    refused_rate: float = 0.0  # the last refusal of a search or a probe, and how fast the rate grew
    refused_growth: float = 0.0
    settled: float = 0.0  # the estimate before them
    isolated: int = 0  # surprises in a row with many accepted requests between
    isolated_from: int = 0
    isolated_most: int = ISOLATED_MOST
    test_from: int = 0
    test_for: int = 0
    test_gap: int = 1
    closed_seconds: float = 0.0  # the last closure
    full_number: int = 0  # the request that was refused last, and when
    full_at: float | None = None
    missed: int = 0  # refused since then for reasons other than the rate
    opened_number: int = 0  # the first request after the last closure, and when
    opened_at: float = 0.0
    cycle: int = 0  # requests between the two closures before
    window: float = 0.0  # seconds in which the service accepts so many requests; 0 if it has shown no window
    window_size: int = 0
    window_at: float = 0.0
    window_number: int = 0
    climbed_at: float = 0.0
    cruise_until: float = 0.0
    passed_at: float = 0.0  # when a probe passed the rate that was refused last
    careful: bool = False  # it was banned
    proven: int = 0  # refusals within an hour that led to no ban
    undo: list[float] = []  # the estimate before the last refusal

    @property
    def known(self) -> float | None:
        return math.sqrt(self.low * self.high) if self.high else None

    @property
    def spread(self) -> float:
        surprised = min(0.4, SURPRISE_SPREAD * 2 ** (self.surprises - 1 + 2 * self.careful)) if self.surprises else 0.0
        return min(SPREAD_MOST, max(SPREAD_LEAST, surprised, 0.5 * math.log(self.high / self.low)))

    @property
    def cruising_rate(self) -> float:
        safe = math.sqrt(self.low * self.high) * math.exp(-self.spread)
        return CAREFUL_SHARE * safe if self.careful else safe

    @property
    def probe_seconds(self) -> float:
        """Between two refusals: the steadier the limit and the dearer a refusal, the longer."""
        rate, times = math.sqrt(self.low * self.high), 2.0**self.steady
        first = PROBE_SECONDS * min(1.0, PROVEN / max(1, self.proven)) * math.sqrt(self.narrow)
        seconds = max(min(first * times, PROBE_SECONDS_MOST), min(PROBE_REQUESTS * times, PROBE_REQUESTS_MOST) / rate)
        if self.careful:
            seconds = max(seconds, CAREFUL_SECONDS)
        return max(seconds, CLOSURE_TIMES * self.closed_seconds * self.narrow)

    @property
    def narrow(self) -> float:
        """1 while the bounds are close; the further apart they are, the less it is worth to wait before the next probe."""
        return min(1.0, NARROW / self.spread)

    @property
    def bucket_most(self) -> float:
        return math.sqrt(2 * max(BUCKET_SECONDS, FEW_REQUESTS / self.rate, self.window))

    def count(self, number: int) -> int:
        """Requests accepted since the last refusal."""
        return number - self.full_number - 1 - self.missed

    def sent(self, now: float) -> None:
        if self.full_at is None:
            self.full_at = now
        self.climbed_at = self.climbed_at or now

    def climb(self, number: int, now: float, free_at: float, latency: float) -> None:
        """One more answer without resistance."""
        seconds = min(now - self.climbed_at, 2 / self.rate)
        self.climbed_at = now
        match self.phase:
            case "search":
                self.growth = self._search_growth(latency)
                self.rate *= math.exp(self.growth * seconds)
            case "return":
                self.rate *= math.exp(seconds * math.log(1 / BACK) / max(BACK_SECONDS, BACK_REQUESTS / self.rate))
                if self.rate >= self.cruising_rate:
                    self.rate, self.phase = self.cruising_rate, "cruise"
                    self.cruise_until = now + CRUISE_SHARE * self.narrow * self.probe_seconds
            case "cruise":
                if now >= self.cruise_until and now >= free_at:
                    self.phase = "probe"
                    self.cruise_until = now
            case "probe":
                planned = (1 - CRUISE_SHARE * self.narrow) * self.probe_seconds
                growth = 2 * self.spread / planned
                if self.rate > self.high:
                    self.passed_at = self.passed_at or now
                    growth += min(RISEN_GROWTH * (now - self.passed_at), RISEN_A_REQUEST * self.rate)
                else:
                    self.passed_at = 0.0
                self.growth = min(growth, self._search_growth(latency), self._window_growth(number, now))
                self.rate *= math.exp(self.growth * seconds)

    def refused(self, number: int, at: float, latency: float, *, spent: bool) -> None:
        """The service had no capacity left for this request."""
        count = self.count(number)
        seconds = at - (self.full_at if self.full_at is not None else at)
        rate, before = self.rate, self.known
        self.undo = [self.low, self.high, rate, self.bucket]
        self.passed_at = 0.0
        accepted = max(count, 0.5) / seconds if seconds > 0 else rate
        if not self.high and number <= UNKNOWN_REQUESTS:  # too early to say anything about the rate
            self.full(number, at)
            self.rate = 0.25 * rate
            return
        if self.phase in {"search", "probe"}:
            self._measure_bucket(rate)
            low = rate * math.exp(-LOW * self.bucket * math.sqrt(self.growth))
            if not self.high:
                low *= count / (count + FEW_REQUESTS)
            self.low, self.high = min(max(low, accepted if self.high else 0.02 * rate), 0.995 * rate), rate
            moved = abs(math.log(math.sqrt(self.low * self.high) / before)) if before else 1.0
            self.steady = self.steady + 1 if moved < max(0.1, self.spread) else max(0, self.steady - 2)
            self.surprises = 0
        else:
            if before and rate > 0.9 * before and not self.surprises:  # the bucket held more than it was thought to
                self.bucket = min(self.bucket_most, 1.5 * self.bucket)
            self.surprises += 1
            self.steady = 0
            if count < QUICK_REQUESTS and seconds > 0:  # the bucket was empty at both refusals: that is the limit
                self.high = max(min(rate, (count + 2) / seconds), 0.3 * rate)
                self.low = max(min((count + 1) / (seconds + 1 / rate), 0.98 * self.high), 0.5 * self.high)
            else:
                self.high, self.low = rate, min(max(accepted, 0.8 * rate), 0.98 * rate)
        if rate > BELOW_LOW * (self.settled if self.isolated else self.undo[0]):
            self.isolated = 0
        else:
            if not self.isolated:
                self.settled, self.isolated_from = self.undo[0], self.full_number
            self.isolated += 1
        self.full(number, at)
        self.go_back(at, BACK_SPENT if spent else BACK)

    def _measure_bucket(self, rate: float) -> None:
        """A bucket of D seconds lets a rate that grows by g a second overshoot the limit by the factor exp(sqrt(2 D g)). So
        two refusals at different growth tell both the limit and the bucket."""
        steps = math.sqrt(self.refused_growth) - math.sqrt(self.growth)
        if self.refused_rate > rate and steps > 0.3 * math.sqrt(self.growth):
            found = math.log(self.refused_rate / rate) / steps
            self.bucket = min(self.bucket_most, math.sqrt(self.bucket * max(BUCKET_LEAST, found)))
        self.refused_rate, self.refused_growth = rate, self.growth

    def test(self, number: int, now: float) -> bool:
        """After several isolated refusals: go back to the rate before them, to see whether they are about the rate at all."""
        gap = (number - self.isolated_from) // max(1, self.isolated)
        if self.isolated < self.isolated_most or gap < ISOLATED_REQUESTS or self.high > NOISE_BELOW * self.settled:
            return False
        self.phase, self.rate, self.test_from, self.test_for = "test", 0.97 * self.settled, number, min(400, 2 * gap)
        self.test_gap, self.isolated_most = gap, min(48, 2 * self.isolated_most)
        return True

    def noise(self, number: int, now: float, *, refused: bool, told: bool = False) -> float:
        """The share of requests that the service refuses whatever the rate, where the test has shown that; 0 if not."""
        count = number - self.test_from
        if refused and (told or count < self.test_for / TEST_SHARE):
            self.isolated = 0
            self.go_back(now, BACK)
            return 0.0
        if not refused and count < self.test_for:
            return 0.0
        self.isolated = self.surprises = 0
        self.bucket = BUCKET_FIRST
        self.forget(self.settled)
        return 1 / self.test_gap

    def restore(self, now: float) -> None:
        """The last refusal was not about the rate."""
        if self.undo:
            self.low, self.high, self.rate, self.bucket = self.undo
            self.surprises, self.undo, self.climbed_at = 0, [], now
            self.phase = "cruise" if self.high else "search"
            self.rate = min(self.rate, self.cruising_rate) if self.high else BACK * self.rate

    def forget(self, rate: float) -> None:
        self.rate, self.phase, self.low, self.high = rate, "search", 0.0, 0.0

    def full(self, number: int, at: float) -> None:
        if self.full_at is None or at >= self.full_at:
            self.full_number, self.full_at, self.missed = number, at, 0

    def go_back(self, now: float, share: float) -> None:
        share = max(share, min(1.0, self.spread / WIDE))
        self.rate, self.phase, self.climbed_at = share * self.cruising_rate, "return", now

    def reopened(
        self, number: int, since: float, now: float, seconds: float, *, window: bool, banned: bool, again: bool
    ) -> None:
        """Everything was refused for so long. `window`: because one was used up. Then it takes no more, on average, than
        since the last time that it was full."""
        accepted = max(1, self.full_number - self.opened_number)
        alike = abs(accepted - self.cycle) < WINDOW_ALIKE * accepted
        if (window or alike) and seconds >= WINDOW_CLOSED * (now - self.opened_at):
            self.window, self.window_size = now - self.opened_at, accepted
            self.low = min(self.low, accepted / max(1e-3, now - self.opened_at))
            self.high = max(1.1 * self.low, min(self.high, WINDOW_HIGH * self.low))
        elif banned:
            self.careful, self.window = True, 0.0
            self.low = min(self.low, accepted / max(1e-3, since - self.opened_at))
            self.high = min(self.high, 1.5 * self.low)
        self.window_at, self.window_number = now, number
        self.opened_number, self.opened_at, self.cycle = number, now, accepted
        self.closed_seconds = max(seconds, 0.7 * self.closed_seconds) if again else min(seconds, 60.0)
        self.full_number, self.full_at, self.missed = number, now, 0
        self.go_back(now, BACK_SPENT)

    def _window_growth(self, number: int, now: float) -> float:
        """By a factor of e in a window, or a burst would use it up; freely if it is none."""
        if now - self.window_at > self.window:
            self.window_at, self.window_number = now, number
        elif number - self.window_number > WINDOW_REFUTED * self.window_size:
            self.window, self.careful = 0.0, True  # it was a ban
        return 1 / self.window if self.window else math.inf

    def _search_growth(self, latency: float) -> float:
        """A second, as the logarithm: what it adds to the requests in flight is bounded, for all of them may be refused."""
        growth = min(
            GROWTH_A_REQUEST * self.rate, GROWTH_A_SECOND / math.pow(max(1.0, self.rate * latency), SHARED_POWER)
        )
        return growth / 3 if self.high else growth
