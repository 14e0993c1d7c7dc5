"""The host's wall clock made safe to lean on: it never runs back, and a jump is taken over with one warning."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.contracts.clock import Clock

SECOND: Final = 1_000_000

# A wall clock that strays further than this from the monotonic one was set by someone, not slewed.
JUMP_LEAST: Final = 1 * SECOND

# Twice the 500 ppm at which a kernel slews, so that a clock read once an hour is not taken for one that jumps.
SLEW_MOST: Final = 0.001

# The clock waits for a wall that was set back at this speed: no lease lasts longer than 4/3 of its time.
SPEED_LEAST: Final = 0.75

# A wall this far behind what the database has seen is waited for. Further, one of the two was wrong: a machine may show any
# year before it has asked for the time.
BELIEVED_MICROS: Final = 86_400 * SECOND

# Both clocks this little on from the last look: the wall is believed as it is, for no jump can hide in so small a step.
TRUSTED: Final = 10_000
TRUSTED_SECONDS: Final = TRUSTED / SECOND

# Two sources read this close together belong to one moment; a paused process reads them further apart.
READING_SECONDS_MOST: Final = 0.001
READINGS_MOST: Final = 5

# The offset of a server's clock cannot be measured better than this over a busy network.
LEAN_LEAST: Final = 5_000

_log = logging.getLogger("penstock.clock")


@dataclass(frozen=True, slots=True)
class Jump:
    """The clock was found to be `by_seconds` ahead (or, if negative, behind) of where it should have been."""

    at: int
    by_seconds: float


class HostClock:
    """Follows the wall clock, at no less than 3/4 of the speed of the monotonic one.

    Slewing is followed. A jump forward is taken over at once. After a jump back the clock continues from where it was,
    slowly, until the wall has caught up. `wall` gives nanoseconds since the epoch. `on_jump` is called before the `now()`
    that noticed the jump returns; it may read the clock.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
        on_jump: Callable[[Jump], None] | None = None,
    ) -> None:
        self.monotonic = monotonic
        self.on_jump = on_jump
        self._wall = wall
        self._leaning = 0  # nanoseconds that a server's clock is ahead of this host's
        self._lock = threading.Lock()
        # What both clocks showed at the last look.
        self._seen, self._seen_at = self._read()
        self._last = self._seen
        self._trusted_until = self._seen + TRUSTED
        # The slowest the clock may run is a line from here; while it waits for the wall it runs along that line.
        self._line, self._line_at = self._seen, self._seen_at

    def now(self) -> int:
        with self._lock:
            wall = (int(self._wall()) + self._leaning) // 1000
            if self._last <= wall < self._trusted_until and self.monotonic() - self._seen_at < TRUSTED_SECONDS:
                self._last = wall
                return wall
            jump = self._look()
            now = self._last
        if jump is not None:
            self._tell(jump)
        return now

    def not_before(self, time: int) -> None:
        """Continue from a time that is already recorded, slowly, until the wall clock has caught up."""
        with self._lock:
            self._last = max(self._last, time)

    def lean(self, by: int) -> None:
        """Goes by a server's clock that was found to be `by` microseconds ahead of this one."""
        with self._lock:
            if abs(by) < LEAN_LEAST:
                return
            first = not self._leaning
            self._leaning += by * 1000
            if first:  # a start, not a jump
                self._seen, self._seen_at = self._read()
                self._line, self._line_at = self._seen, self._seen_at
                self._last, self._trusted_until = self._seen, self._seen + TRUSTED

    def _look(self) -> Jump | None:
        wall, steady = self._read()
        passed = (steady - self._seen_at) * SECOND
        by = wall - self._seen - passed
        self._seen, self._seen_at = wall, steady

        slowest = max(self._last, self._line + int((steady - self._line_at) * SECOND * SPEED_LEAST))
        waiting = wall < slowest
        if not waiting:
            self._line, self._line_at = wall, steady
        elif self._trusted_until:
            # The wall fell behind just now. The line stays put from here on: moved at every look, it would lose the
            # fractions of a microsecond, and a clock read in a tight loop would stand still.
            self._line, self._line_at = slowest, steady
        self._trusted_until = 0 if waiting else wall + TRUSTED
        self._last = max(wall, slowest)

        # A wall set forward to where this clock has been waiting for it moves nothing.
        by = min(by, max(wall - slowest, 0))
        return Jump(self._last, by / SECOND) if abs(by) > JUMP_LEAST + SLEW_MOST * passed else None

    def _read(self) -> tuple[int, float]:
        """The wall in microseconds and the monotonic clock in seconds, of one moment."""
        for _ in range(READINGS_MOST):
            before = self.monotonic()
            wall = (int(self._wall()) + self._leaning) // 1000
            steady = self.monotonic()
            if steady - before <= READING_SECONDS_MOST:
                break
        return wall, steady

    def _tell(self, jump: Jump) -> None:
        if jump.by_seconds > 0:
            _log.warning("The wall clock jumped forward by %.3f s; the process follows it at once.", jump.by_seconds)
        else:
            _log.warning(
                "The wall clock jumped back by %.3f s; the process runs at %d %% of the speed until it catches up.",
                -jump.by_seconds,
                SPEED_LEAST * 100,
            )
        if self.on_jump is not None:
            self.on_jump(jump)


class ClockOf:
    """The clock of whatever is open at the moment, or the host's while nothing is."""

    def __init__(self, current: Callable[[], Clock | None]) -> None:
        self._current = current
        self._host = HostClock()

    def now(self) -> int:
        return (self._current() or self._host).now()

    def monotonic(self) -> float:
        return (self._current() or self._host).monotonic()
