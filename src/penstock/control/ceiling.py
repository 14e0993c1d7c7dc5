"""How fast a service may be asked: the ceiling that was found, cruising just below it, and probing above it."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

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
MINUTE = 60.0
BEFORE = 2  # refusals before the last one that are remembered
NOTE_SECONDS = 2.0  # so the minute is kept in at most 31 notes
SURE = 1.04  # between the pace that was held and the one that was refused: near enough
SAME = 0.1  # a ceiling within a tenth of the last one is still the same
TRY_SECONDS, TRY_BUCKET = 300.0, 30.0  # until a bucket has run dry that holds half a minute of requests
TIMES_MOST = 50  # times what a refusal cost, until the next probe
RISEN = 1.6  # times a pace that was too much: what is taken then says that it no longer is
PROBE_GROWTH, DOUBLED = 0.003, 400  # of a probe with every answer: in small steps, smaller with each time


class Dear(msgspec.Struct):
    """Nothing can be measured between two refusals here: while the door was closed a bucket has filled up, and nobody
    knows how deep it is. So a pace is tried for some time between one that was held and one that was not."""

    times: int = 0  # how often in a row a refusal closed the door for long, at the same ceiling
    ceiling: float = 0.0
    held: float | None = None  # the pace that was held before the one that is tried
    lid: float | None = None  # a pace that was too much
    probe_after: float = 0.0

    def closed(self, known: float, now: float, seconds: float) -> None:
        """A refusal closed the door for so long: the surer the ceiling, the longer until the next probe."""
        self.times = self.times + 1 if abs(known - self.ceiling) < SAME * known else 1
        self.ceiling = known
        self.probe_after = now + (TIMES_MOST if self._sure(known) else min(TIMES_MOST, 2**self.times)) * seconds

    def allows(self, now: float) -> bool:
        """Whether it is time to look higher."""
        return not self.times or now >= self.probe_after

    def growth(self, answers: int) -> float:
        return PROBE_GROWTH / self.times * (1 + answers / DOUBLED)

    def tried(self, known: float, now: float) -> float | None:
        """A pace to try for some minutes, between what is held and what was too much. None: time for a probe."""
        if self.lid is None or self._sure(known):
            return None
        step = math.sqrt(self.lid / known)
        self.held, self.probe_after = known, now + min(TRY_SECONDS, TRY_BUCKET / (step - 1))
        return step * known

    def probed(self, known: float, rate: float) -> float:
        """A probe was refused at this rate. Says which pace to hold."""
        if self.lid is None or rate > RISEN * self.lid:
            self.lid = 0.98 * rate
        return known

    def refused(self, known: float) -> float:
        """Refused at the pace that was thought to be the ceiling. Says a lower one."""
        held, self.held, self.lid = self.held, None, known
        return 0.97 * known if held is None else held

    def _sure(self, known: float) -> bool:
        return self.lid is not None and self.lid <= SURE * known


class Trail(msgspec.Struct):
    """Requests are numbered in the order they are sent. Two moments at which a service was full, and what it took between
    them, tell its limit exactly, whatever the size of its bucket: it was empty at both."""

    full_number: int = 0  # the request that was refused last
    full_at: float | None = None
    missed: int = 0  # refused since then, though nobody believed that it was full
    before: list[tuple[int, float]] = []  # the refusals before: what was taken up to the last one, and when
    taken: int = 0  # up to the last one, of all
    minute: list[tuple[float, int]] = []

    def sent(self, number: int, now: float) -> None:
        if self.full_at is None:
            self.full_at = now
        if not self.minute or now - self.minute[-1][0] >= NOTE_SECONDS:
            self.minute.append((now, number))
            while now - self.minute[0][0] > MINUTE:
                del self.minute[0]

    def full(self, number: int, at: float) -> None:
        if self.full_at is None or at > self.full_at:
            if self.full_at is not None:
                self.before.append((self.taken, self.full_at))
                del self.before[:-BEFORE]
            self.taken += max(0, self.count(number))
            self.full_number, self.full_at, self.missed = number, at, 0

    def count(self, number: int) -> int:
        """How many it took since it was full."""
        return number - self.full_number - 1 - self.missed

    def seconds(self, at: float) -> float:
        return 0.0 if self.full_at is None else at - self.full_at

    def between(self, number: int, at: float) -> float:
        """What it took a second since it was full; 0 if nobody knows."""
        seconds = self.seconds(at)
        return max(self.count(number), 0.5) / seconds if seconds > 0 else 0.0

    def lately(self, number: int, at: float) -> tuple[int, float]:
        """What it took since one of the refusals before the last one, and in how many seconds. One refusal may be an
        accident; that several come close together is not."""
        if not self.before:
            return 0, 0.0
        taken, since = self.before[0]
        return self.taken + self.count(number) - taken, at - since

    def last_minute(self, number: int) -> float:
        """What was sent a second, over a whole minute: for a window of a minute, its limit."""
        return (number - self.minute[0][1]) / MINUTE if self.minute else 0.0


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
