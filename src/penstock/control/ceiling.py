"""How fast a service may be asked: the ceiling that was found, cruising just below it, and probing above it."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from penstock.control.dear import Dear
from penstock.control.trail import Trail

Phase = Literal["search", "cruise", "probe", "return", "test"]

BELOW = 0.995  # cruise this far below the ceiling: what the bucket of a service gains by it, the next probe spends
CRUISE_FIRST = 10  # answers until the first probe after the ceiling has moved
CRUISE_MOST = 700  # and after it has proved steady: one refusal in so many answers
CRUISE_SECONDS = 300.0  # a slow service is probed at least this often
CRUISE_SLOW = 200  # but never with fewer answers than this in between
CRUISE_FALLEN = 40  # after a fall we look soon whether it was one
CRUISE_LANDED = 100  # at a pace that was held before
DEEP_FIRST, DEEP_MOST = 4, 64  # probes until we look again whether the service has a bucket
CREDIT_EACH = 0.005  # refusals we allow ourselves for each answer, in the long run
CREDIT_MOST, CREDIT_LEAST = 12.0, -3.0
STRIKE_SECONDS = 60.0  # services that ban count refusals, mostly by the minute
STRIKES_MOST = 4  # so many in a minute: no probe before some are forgotten
ISOLATED_FIRST, ISOLATED_MOST = 4, 64  # refusals below the ceiling until the first test, and after many in vain
TEST_SOON = 1 / 16  # of a test: a second refusal after the first, and it is about the pace
OVERRUN_SECONDS = 1_800.0

# How a probe grows with every answer, as a share of the pace, and the most it may grow in a second and a round trip.
GROWTH, GROWTH_MORE = 0.01, 0.0005
GROWTH_A_SECOND, GROWTH_A_ROUND_TRIP = 0.07, 0.35
RETURN = 1.2  # growth with every answer on the way back to a ceiling that is known
LANDING = 0.98  # of a pace that was held before: there a probe stops and cruises first


class Ceiling(msgspec.Struct):
    """`search` until something gives way; then `cruise` below the ceiling that is known, `probe` above it now and then,
    `return` to it after a closed door, and `test`, far below it, whether refusals are about the pace at all."""

    rate: float = 1.0
    known: float | None = None
    phase: Phase = "search"
    phase_number: int = 0  # requests sent before this phase, and when it began
    phase_at: float = 0.0
    answers: int = 0  # in this phase
    trail: Trail = msgspec.field(default_factory=Trail)

    cruise_for: int = CRUISE_FIRST
    cruised: int = 0  # answers before the probe that is under way
    paused: float = 0.0  # seconds in which nothing was sent after the last refusal
    credit: float = CREDIT_MOST
    strikes: list[float] = []  # when we were refused for the pace, in the last minute
    falling: bool = False  # lowered since the last probe
    rising: bool = False  # raised by the last probe
    settled: float | None = None  # a pace that was held for long
    missed: int = 0  # refusals below it

    doubt: int = 0  # answers left in which a second refusal has to follow, where no ceiling was expected
    doubted: int = -10_000

    crept: bool = False  # raised to the middle between the ceiling and where a probe ended
    deep: int = 0  # its bucket is known to hold more than one: no need for that, for so many probes
    deep_for: int = DEEP_FIRST
    firm: float = 0.0
    probe_asked: int = 0
    probe_took: float = 0.0

    clumped: bool = False  # much was sent at once: a window of a minute is full of it
    clumped_until: float = 0.0

    isolated: int = 0  # refusals below the ceiling, one after the other
    isolated_most: int = ISOLATED_FIRST  # so many, until we test whether they are about the pace
    unshaken: float | None = None  # the ceiling before them
    shaken_from: int = 0  # and the last request that was refused
    test_for: int = 0
    test_refused_at: int = 0  # answers of the test before it was refused
    refused_anyway: float = 0.0  # the share of requests that the last test found to be refused at any pace

    dear: Dear = msgspec.field(default_factory=Dear)
    overrun: bool = False  # the last refusal came below the ceiling
    overruns: int = 0  # closed doors in a row of which that was the reason
    long_closed: bool = False
    closed_number: int = 0
    closed_at: float | None = None

    def enter(self, phase: Phase, sent: int, now: float) -> None:
        self.phase, self.answers = phase, 0
        self.phase_number, self.phase_at = sent, now

    def cruise(self, sent: int, now: float) -> None:
        assert self.known is not None
        self.rate = self.known * BELOW
        self.enter("cruise", sent, now)

    def back(self, sent: int, now: float, *, long: bool) -> None:
        """The door is open again: return to the ceiling, from further below after it was closed for long."""
        assert self.known is not None
        self.long_closed = long
        self.rate = self.known / (4 if long else 2)
        self.enter("return", sent, now)

    def accepted(self, sent: int, number: int, now: float, round_trip: float, *, held: bool) -> None:
        """One more answer that was no refusal. `held`: the pace is not what keeps us back, so do not raise it."""
        self.credit = min(CREDIT_MOST, self.credit + CREDIT_EACH)
        if number <= self.phase_number:
            return
        self.answers += 1
        match self.phase:
            case "cruise":
                if self._probe_is_due(now):
                    self.cruised = self.answers
                    self._look_higher(sent, now)
            case "return":
                self.rate *= RETURN
                if self.rate >= (self.known or 0.0) * BELOW:
                    self.cruise_for = CRUISE_FIRST
                    self.cruise(sent, now)
            case "test":
                self._test(sent, now)
            case "search" | "probe":
                if self.doubt:
                    self.doubt -= 1
                elif not held:
                    self._climb(sent, now, round_trip)

    def _look_higher(self, sent: int, now: float) -> None:
        higher = self.dear.tried(self.known, now) if self.dear.times and self.known else None
        if higher is None:
            self.enter("probe", sent, now)
        else:
            self.known = higher
            self.cruise(sent, now)

    def _probe_is_due(self, now: float) -> bool:
        longest = min(float(CRUISE_MOST), max(CRUISE_SECONDS * self.rate, float(CRUISE_SLOW)))
        if self.falling:
            longest = min(longest, CRUISE_FALLEN)
        far_below = self.settled is not None and self.rate < 0.9 * self.settled
        may = self.credit >= 1 or self.answers >= longest or far_below or self.rising
        calm = self.dear.allows(now) and self.struck(now) < STRIKES_MOST
        return may and calm and self.answers >= min(self.cruise_for, longest)

    def _climb(self, sent: int, now: float, round_trip: float) -> None:
        before = self.rate
        self.rate *= 1 + self._growth(round_trip)
        if self.settled and before < LANDING * self.settled <= self.rate:
            self.known, self.cruise_for = self.settled, CRUISE_LANDED
            if self.clumped:  # an even minute has to pass before a window of a minute can be judged
                self.falling = False
                self.cruise_for = min(CRUISE_MOST, max(CRUISE_LANDED, int(60 * self.settled)))
            self.settled = None  # a landing, not a lid
            self.cruise(sent, now)

    def _growth(self, round_trip: float) -> float:
        """Faster with every answer that met no resistance."""
        if self.dear.times:
            return self.dear.growth(self.answers)
        return min(
            GROWTH + GROWTH_MORE * self.answers,
            GROWTH_A_SECOND / self.rate,
            GROWTH_A_ROUND_TRIP / (self.rate * max(round_trip, 1e-3)),
        )

    def noticed(self, number: int, at: float, *, alone: bool) -> None:
        """A refusal that was not believed. If others follow soon it will be, and then it was full from here on."""
        if alone:
            self.trail.full(number, at)
            return
        self.trail.missed += 1
        if self.phase == "cruise" and self.known:
            self.known *= 0.998
            self.rate *= 0.998

    def tested(self) -> bool:
        """Refused far below the ceiling. Says whether that is about the pace: then a second one follows soon."""
        again, self.test_refused_at = self.test_refused_at > 0, self.answers + 1
        return again

    def _test(self, sent: int, now: float) -> None:
        if self.test_refused_at and self.answers >= self.test_refused_at + TEST_SOON * self.test_for:
            self.known, self.refused_anyway = max(self.known or 0.0, self.unshaken or 0.0), 1 / self.answers
            self.isolated, self.isolated_most = 0, ISOLATED_FIRST
            self.cruise(sent, now)
        elif self.answers >= self.test_for:
            self.isolated, self.isolated_most = 0, min(ISOLATED_MOST, 2 * self.isolated_most)
            self.cruise(sent, now)

    def spend(self, at: float) -> None:
        self.credit = max(CREDIT_LEAST, self.credit - 1)
        self.struck(at)
        self.strikes.append(at)

    def struck(self, now: float) -> int:
        """How often we were refused in the last minute."""
        while self.strikes and self.strikes[0] < now - STRIKE_SECONDS:
            del self.strikes[0]
        return len(self.strikes)

    def door_closed(self, number: int, at: float) -> None:
        """The door was closed for longer. If that was below the ceiling, not for the first time, then perhaps it counts over
        minutes, and the ceiling is what it took since the last time, closed times included: go half the way there."""
        seconds = math.inf if self.closed_at is None else at - self.closed_at
        self.overruns = self.overruns + 1 if self.overrun and seconds < OVERRUN_SECONDS else 0
        if self.known and self.overruns > 1:
            self.known = min(self.known, math.sqrt(self.known * (number - self.closed_number) / seconds))
        self.closed_at, self.closed_number = at, number
