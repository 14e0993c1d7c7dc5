"""How fast a service may be asked: the ceiling that was found, cruising just below it, and probing above it."""

from __future__ import annotations

from typing import Literal

import msgspec

Phase = Literal["search", "cruise", "probe", "return", "test"]

BELOW = 0.995  # cruise this far below the ceiling: what the bucket of a service gains by it, the next probe spends
CRUISE_FIRST = 10  # answers until the first probe after the ceiling has moved
CRUISE_MOST = 500  # and after it has proved steady: one refusal in so many answers
CRUISE_SECONDS = 300.0  # a slow service is probed at least this often
CRUISE_SLOW = 150  # but never with fewer answers than this in between
DOUBT = 12  # answers in which a second refusal has to follow the first, where no ceiling was expected
CREDIT_EACH = 0.005  # refusals we allow ourselves for each answer, in the long run
CREDIT_MOST = 12.0
CREDIT_LEAST = -3.0


class Ceiling(msgspec.Struct):
    rate: float = 1.0
    known: float | None = None
    phase: Phase = "search"
    answers: int = 0
    cruise_for: int = CRUISE_FIRST
    credit: float = CREDIT_MOST
    mark_number: int = 0
    mark_at: float | None = None
    settled: float | None = None
    missed: int = 0
    minute: list[tuple[float, int]] = []  # when and at which number we were, over the last minute
    cruised: int = 0
    falling: bool = False
    clumped: bool = False
    spare_until: float = 0.0
    spared: int = 0
    crept: bool = False
    deep: bool = False  # whether its bucket is known to hold more than one
    firm: float = 0.0
    probe_asked: int = 0
    probe_took: float = 0.0
    closed_at: float | None = None
    closed_number: int = 0
    average: float | None = None
    isolated: int = 0
    unshaken: float | None = None
    test_for: int = 0
    found: int = 0
    long_closed: bool = False
    dear: int = 0
    probe_after: float = 0.0  # probes are dear here: none before this time
    doubt: int = 0
    doubted: int = -10_000
    phase_number: int = 0
    phase_at: float = 0.0

    def enter(self, phase: Phase, number: int, now: float) -> None:
        self.phase, self.answers = phase, 0
        self.phase_number, self.phase_at = number, now

    def note(self, number: int, now: float) -> None:
        if not self.minute or now - self.minute[-1][0] >= 2.0:
            self.minute.append((now, number))
            while now - self.minute[0][0] > 60.0:
                del self.minute[0]

    def last_minute(self, number: int) -> float:
        """What was sent in the last minute, per second."""
        return (number - self.minute[0][1]) / 60.0 if self.minute else 0.0

    def cruise(self, number: int, now: float) -> None:
        assert self.known is not None
        self.rate = self.known * BELOW
        self.enter("cruise", number, now)

    def closed(self, number: int, at: float) -> None:
        """The door closed for longer: what was taken since it did so before, closed times included."""
        if self.closed_at is not None and at - self.closed_at < 1800:
            self.average = (number - self.closed_number) / (at - self.closed_at)
        else:
            self.average = None
        self.closed_at, self.closed_number = at, number

    def noticed(self, sent: int, now: float) -> None:
        """A refusal that was not believed. Two of them during a test say that the pace is not the reason."""
        if self.phase == "cruise" and self.known:
            self.known *= 0.998
            self.rate *= 0.998
        elif self.phase == "test":
            self.found += 1
            if self.found >= 2:
                self.known = max(self.known or 0.0, self.unshaken or 0.0)
                self.isolated = 0
                self.cruise(sent, now)

    def accepted(self, sent: int, number: int, now: float, round_trip: float, held: bool) -> None:
        """One more answer that was no refusal, to a request of this phase or an earlier one."""
        self.credit = min(CREDIT_MOST, self.credit + CREDIT_EACH)
        if number <= self.phase_number:
            return
        self.answers += 1
        match self.phase:
            case "cruise":
                assert self.known is not None
                longest = min(float(CRUISE_MOST), max(CRUISE_SECONDS * self.rate, float(CRUISE_SLOW)))
                if self.falling:
                    longest = min(longest, 40)
                due = self.credit >= 1 or self.answers >= longest or (self.settled and self.rate < 0.9 * self.settled)
                if self.answers >= min(self.cruise_for, longest) and due and now >= self.probe_after:
                    self.cruised = self.answers
                    self.enter("probe", sent, now)
            case "return":
                assert self.known is not None
                self.rate *= 1 + 0.2
                if self.rate >= self.known * BELOW:
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
                    before = self.rate
                    self.rate *= 1 + self._growth(round_trip)
                    if self.settled and before < 0.98 * self.settled <= self.rate:
                        self.known = self.settled
                        self.cruise_for = 100
                        if self.clumped:
                            self.falling = False
                            self.cruise_for = min(CRUISE_MOST, max(100, int(60 * self.settled)))
                        self.settled = None  # a landing, not a lid
                        self.cruise(sent, now)

    def _growth(self, round_trip: float) -> float:
        """Faster with every answer that met no resistance, but no more than doubling in ten seconds or two round trips."""
        if self.dear:
            return 0.0007  # where a refusal closes the door, the ceiling is felt for
        return min(0.01 + 0.0005 * self.answers, 0.07 / self.rate, 0.35 / (self.rate * max(round_trip, 1e-3)))

    def refused(self, number: int, at: float, sent: int, now: float, noisy: bool = False) -> None:
        """The service was full when request `number` reached it, at a pace it had been given before `now`."""
        self.spend()
        before = self.rate
        since = None if self.mark_at is None else at - self.mark_at
        count = number - self.mark_number - 1
        between = max(count, 0.5) / since if since else None  # what it took between two moments when it was full
        minute = self.last_minute(number)
        if between and count >= 100:
            self.settled, self.missed = (between if between >= 0.9 * minute else 0.97 * minute), 0
        elif self.settled and before <= self.settled:
            self.missed += 1
            if self.missed >= 4:
                self.settled = None
        unheard = self.phase == "search" or (
            self.phase == "probe" and self.known and (noisy or before > 1.5 * self.known)
        )
        if unheard and not self.doubt and number - self.doubted > (2 if noisy else 8) * DOUBT:
            self.doubt, self.doubted = DOUBT, number
            self.rate *= 0.95
            self.mark(number, at)
            return
        self.doubt = 0
        if self.known is None or self.phase == "search":
            close = between if between and count >= 2 else before * 0.6
            self.known = min(before * 0.98, max(min(close, minute), before * 0.25))
            self.cruise_for = CRUISE_FIRST
        elif self.phase == "probe":
            assert between is not None
            asked, took = number - self.phase_number, max(at - self.phase_at, 1e-9)
            spare = asked - self.known * took  # what it took beyond the ceiling we knew
            saved = 1 + (1 - BELOW) * self.cruised  # what its bucket may have gained since the last refusal
            if spare > saved + 6 + 0.02 * asked:
                self.known = max(self.known, between, min(0.97 * asked / took, minute))
                self.cruise_for, self.crept = CRUISE_FIRST, False
            elif spare < 1 and self.cruised < 4 * CRUISE_FIRST:
                self.known *= 0.99
                self.cruise_for = max(CRUISE_FIRST, self.cruise_for // 2)
            elif not self.deep and before > 1.1 * self.known:
                # Either its bucket gave out, or there is none and the ceiling lies just below this rate: try the middle.
                self.firm, self.crept = self.known, True
                self.probe_asked, self.probe_took = asked, took
                self.known = max(between, (self.known * 0.98 * before) ** 0.5)
                self.cruise_for = 2 * CRUISE_FIRST
            else:
                self.crept = False
                better = max(between, (asked - saved) / took if spare > saved + 1.5 else 0.0)
                if better > self.known:
                    self.known += 0.5 * (better - self.known)
                self.cruise_for = min(CRUISE_MOST, self.cruise_for * 2)
            self.falling = False
            if spare >= 1:
                self.isolated = max(0, self.isolated - 1)
            self.clumped = self.clumped and before > 1.3 * self.known
        elif now < self.spare_until and self.spared < 6:
            self.spared += 1  # its window is still full of what we sent at once: wait for room, the ceiling is no lower for it
        elif self.phase == "return" and self.average and self.average < self.known:
            self.known = max(self.average, before)
            self.cruise_for = 4 * CRUISE_FIRST
        elif self.phase == "return" and self.long_closed:
            self.known *= 0.8
            self.rate = max(before * 0.5, self.known / 8)
            self.mark(number, at)
            self.enter("return", sent, now)
            return
        elif self.crept:
            self.crept = False
            true = max(self.firm, min(between or 0.0, 0.98 * self.known))
            if count >= 5 and self.probe_asked - true * self.probe_took > 1.5:
                self.deep = True
            self.known = true
        else:
            low = 0.97 * before
            self.isolated = self.isolated + 1 if count >= 20 and self.phase == "cruise" else 0
            if self.isolated == 1:
                self.unshaken = self.known
            self.known = low if not since or count >= 60 else max(0.5 * before, min((count + 1) / (since + 1 / before), before * 0.99))
            self.cruise_for = CRUISE_FIRST
            self.falling = True
            if self.isolated >= 4:
                self.test_for = min(250, max(40, 3 * count))
                self.rate = 0.6 * self.known
                self.found = 0
                self.mark(number, at)
                self.enter("test", sent, now)
                return
        if before > 1.5 * self.known:
            self.clumped, self.spare_until, self.spared = True, now + 60.0, 0
        self.mark(number, at)
        self.cruise(sent, now)

    @property
    def innocent(self) -> bool:
        """Whether we are far below what it took a moment ago: a refusal now is not about the pace."""
        return self.phase == "test"

    def spend(self) -> None:
        self.credit = max(CREDIT_LEAST, self.credit - 1)

    def mark(self, number: int, at: float) -> None:
        if self.mark_at is None or at > self.mark_at:
            self.mark_number, self.mark_at = number, at
