"""How fast a service may be asked: the ceiling that was found, cruising just below it, and probing above it."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.control.trail import Trail

Phase = Literal["search", "cruise", "probe", "return", "test"]

BELOW = 0.995  # cruise this far below the ceiling: what the bucket of a service gains by it, the next probe spends
CRUISE_FIRST = 10  # answers until the first probe after the ceiling has moved
CRUISE_MOST = 700  # and after it has proved steady: one refusal in so many answers
CRUISE_SECONDS = 300.0  # a slow service is probed at least this often
CRUISE_SLOW = 200  # but never with fewer answers than this in between
CRUISE_FALLEN = 40  # after a fall we look soon whether it was one
CRUISE_LANDED = 100  # at a pace that was held before
CREDIT_EACH = 0.005  # refusals we allow ourselves for each answer, in the long run
CREDIT_MOST, CREDIT_LEAST = 12.0, -3.0

# How a probe grows with every answer, as a share of the pace, and the most it may grow in a second and a round trip.
GROWTH, GROWTH_MORE = 0.01, 0.0005
GROWTH_A_SECOND, GROWTH_A_ROUND_TRIP = 0.07, 0.35
GROWTH_DEAR = 0.0007  # where a refusal closes the door the ceiling is felt for, step by step
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
    falling: bool = False  # lowered since the last probe
    settled: float | None = None  # a pace that was held for long
    missed: int = 0  # refusals below it

    doubt: int = 0  # answers left in which a second refusal has to follow, where no ceiling was expected
    doubted: int = -10_000

    crept: bool = False  # raised to the middle between the ceiling and where a probe ended
    deep: bool = False  # its bucket is known to hold more than one: no need for that
    firm: float = 0.0
    probe_asked: int = 0
    probe_took: float = 0.0

    clumped: bool = False  # much was sent at once: a window of a minute is full of it
    clumped_until: float = 0.0
    clumped_refusals: int = 0

    isolated: int = 0  # refusals in a row that no second one followed
    unshaken: float | None = None  # the ceiling before them
    test_for: int = 0
    test_refusals: int = 0

    dear: int = 0  # how often a refusal closed the door for long
    probe_after: float = 0.0
    long_closed: bool = False
    closed_number: int = 0
    closed_at: float | None = None
    average: float | None = None  # what it took from one closed door to the next

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
                    self.enter("probe", sent, now)
            case "return":
                self.rate *= RETURN
                if self.rate >= (self.known or 0.0) * BELOW:
                    self.cruise_for = CRUISE_FIRST
                    self.cruise(sent, now)
            case "test":
                if self.answers >= self.test_for:
                    self.isolated = 0
                    self.cruise(sent, now)
            case "search" | "probe":
                if self.doubt:
                    self.doubt -= 1
                elif not held:
                    self._climb(sent, now, round_trip)

    def _probe_is_due(self, now: float) -> bool:
        longest = min(float(CRUISE_MOST), max(CRUISE_SECONDS * self.rate, float(CRUISE_SLOW)))
        if self.falling:
            longest = min(longest, CRUISE_FALLEN)
        far_below = self.settled is not None and self.rate < 0.9 * self.settled
        may = self.credit >= 1 or self.answers >= longest or far_below
        return may and self.answers >= min(self.cruise_for, longest) and now >= self.probe_after

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
        if self.dear:
            return GROWTH_DEAR
        return min(
            GROWTH + GROWTH_MORE * self.answers,
            GROWTH_A_SECOND / self.rate,
            GROWTH_A_ROUND_TRIP / (self.rate * max(round_trip, 1e-3)),
        )

    def noticed(self, sent: int, now: float) -> None:
        """A refusal that was not believed. Two of them during a test say that the pace is not the reason."""
        if self.phase == "cruise" and self.known:
            self.known *= 0.998
            self.rate *= 0.998
        elif self.phase == "test":
            self.test_refusals += 1
            if self.test_refusals >= 2:
                self.known = max(self.known or 0.0, self.unshaken or 0.0)
                self.isolated = 0
                self.cruise(sent, now)

    def spend(self) -> None:
        self.credit = max(CREDIT_LEAST, self.credit - 1)

    def door_closed(self, number: int, at: float) -> None:
        """The door was closed for longer, not for the first time: what it took since then, closed times included."""
        recent = self.closed_at is not None and at - self.closed_at < 1_800
        self.average = (number - self.closed_number) / (at - (self.closed_at or 0.0)) if recent else None
        self.closed_at, self.closed_number = at, number
