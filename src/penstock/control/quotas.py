"""Windows and quotas: a service that counts by the clock takes the same number in every minute, hour or day."""

from __future__ import annotations

import msgspec

PERIODS = (10.0, 30.0, 60.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 21600.0, 86400.0)
COUNT_LEAST = 20  # a smaller count comes out the same by chance
LONG = 1800.0  # a door that opens on such a boundary twice is no accident
JUST_AFTER = 0.05  # seconds behind a boundary, for clocks that do not agree
CLOSED_LEAST = 0.02  # of a window: who does not know it finds it closed for longer
BROKEN_MOST = 2
PROBE_EVERY = 600  # answers between two windows that are filled to the brim


class Window(msgspec.Struct):
    """What was taken since the last boundary of one period, and how often the count came out the same."""

    period: float
    index: int = -1
    first: int = 0
    full_at: int = 0  # what it took the last time when it was full
    agreed: int = 0
    pending: int = 0  # what it had taken when the door closed
    closed_in: int = -1
    doubts: int = 0


class Quota(msgspec.Struct):
    """A window is believed in after the door closed at the same count, and opened on its boundary, several times."""

    windows: list[Window] = msgspec.field(default_factory=lambda: [Window(period) for period in PERIODS])
    boundary: float = -1.0
    period: float = 0.0  # of the window that is known to hold
    size: int = 0
    used_from: int = 0
    window_index: int = -1
    probing: bool = False
    answers: int = 0
    broken: int = 0

    def tick(self, now: float, number: int) -> None:
        """To be told before each start: which windows begin with it."""
        if now < self.boundary:
            return
        shortest = PERIODS[0]
        self.boundary = (now // shortest + 1) * shortest
        for window in self.windows:
            index = int(now // window.period)
            if index != window.index:
                if window.closed_in != window.index and number - window.first > 1 + 1.03 * window.full_at:
                    window.agreed, window.full_at = 0, 0  # it took more, and was not even full
                window.index, window.first = index, number
        if self.period:
            index = int(now // self.period)
            if index != self.window_index:
                self.window_index, self.used_from = index, number
                self.probing = self.answers >= PROBE_EVERY or self.size >= PROBE_EVERY
                if self.probing:
                    self.answers = 0

    def closed(self, at: float, number: int) -> None:
        """The door closed for request `number`: note how full each window was."""
        for window in self.windows:
            same = int(at // window.period) == window.index
            window.pending = number - window.first if same else 0
            window.closed_in = int(at // window.period)

    def opened(self, closed_at: float, last_knock: float, first_answer: float, knocks: int) -> bool:
        """The door was still closed at one time and open at the other. Says whether a window has been found."""
        found: Window | None = None
        for window in self.windows:
            count, window.pending = window.pending, 0
            on_boundary = first_answer // window.period > last_knock // window.period
            brief = first_answer - closed_at < CLOSED_LEAST * window.period
            if not on_boundary or brief or count < COUNT_LEAST or knocks < 2:
                if count > 1 + 1.03 * window.full_at:
                    window.agreed, window.full_at = 0, 0
                continue
            if abs(count - window.full_at) <= 1 + 0.01 * count:
                window.agreed += 1
            else:
                window.agreed = 0
            window.full_at = count
            if window.agreed >= window.doubts + (1 if window.period >= LONG else 2):
                found = found or window
        if found is not None and not self.period:
            self.period, self.size, self.broken = found.period, found.full_at, 0
            self.window_index = found.index
            self.used_from = found.first
            return True
        return False

    def forget(self) -> None:
        for window in self.windows:
            window.agreed, window.full_at = 0, 0
            window.doubts += window.period == self.period
        self.period = 0.0

    @property
    def even(self) -> float:
        return self.size / self.period

    def until_boundary(self, now: float) -> float:
        return (now // self.period + 1) * self.period + JUST_AFTER

    def pace(self, now: float, number: int) -> float:
        """What is left of the window, spread over what is left of its time. A probe goes on until it is full."""
        target = self.size * 1.04 + 4 if self.probing else self.size - max(1.0, 0.002 * self.size)
        left = target - (number - self.used_from)
        seconds = (now // self.period + 1) * self.period - now
        return min(1.3 * self.even, max(left / max(seconds, 1e-3), 0.05 * self.even))

    def is_filled(self, number: int, at: float) -> bool:
        """Refused: as it should be once the window is full. Three times earlier, and it is no such window."""
        used, same = number - self.used_from - 1, at // self.period == self.window_index
        if same and used < 0.97 * self.size:
            self.broken += 1
            if self.broken > BROKEN_MOST:
                self.forget()
            return False
        if same:
            self.size = used
        return True

    def is_exceeded(self, number: int, at: float) -> bool:
        """It took more than it ought to hold: it has grown, or was none."""
        return number - self.used_from > self.size * 1.01 + 2 and at // self.period == self.window_index
