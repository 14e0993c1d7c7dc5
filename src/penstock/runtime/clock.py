"""The host's wall clock made safe to lean on: it never runs back, and a jump is taken over with one warning."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SECOND: Final = 1_000_000

# A wall clock that strays further than this from the monotonic one was set by someone, not slewed.
JUMP_LEAST: Final = 1 * SECOND

# Twice the 500 ppm at which a kernel slews, so that a clock read once an hour is not taken for one that jumps.
SLEW_MOST: Final = 0.001

# The clock waits for a wall that was set back at this speed: no lease lasts longer than 4/3 of its time.
SPEED_LEAST: Final = 0.75

# Two sources read this close together belong to one moment; a paused process reads them further apart.
READING_SECONDS_MOST: Final = 0.001
READINGS_MOST: Final = 5

_log = logging.getLogger("penstock.clock")


@dataclass(frozen=True, slots=True)
class Jump:
    """The clock was found to be `by_seconds` ahead (or, if negative, behind) of where it should have been."""

    at: int
    by_seconds: float


class HostClock:
    """Follows the wall clock, at no less than 3/4 of the speed of the monotonic one.

    Slewing is followed. A jump forward is taken over at once. After a jump back the clock goes on from where it was,
    slowly, until the wall has caught up. `wall` gives nanoseconds since the epoch. `on_jump` is called before the `now()`
    that noticed the jump returns; it may read the clock.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], int] | Callable[[], float] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
        on_jump: Callable[[Jump], None] | None = None,
    ) -> None:
        self.monotonic = monotonic
        self.on_jump = on_jump
        self._wall: Callable[[], int] = wall if isinstance(wall(), int) else lambda: int(wall())
        self._lock = threading.Lock()
        # Where and when the clock last agreed with the wall; while it waits for the wall, where it was left behind.
        self._left, self._left_at = self._read()
        # By how much the clock is ahead of a wall that was set back; None while the two agree.
        self._ahead: float | None = None

    def now(self) -> int:
        with self._lock:
            # The wall first: a pause between the two lines then looks like a wall set back, and is read again.
            wall = self._wall() // 1000
            steady = self.monotonic()
            moved = wall - self._left
            passed = (steady - self._left_at) * SECOND
            # Fast enough (the wall is read in whole microseconds) and no jump: the common case, kept short.
            if moved > SPEED_LEAST * passed - 1 and -JUMP_LEAST <= moved - passed <= JUMP_LEAST and self._ahead is None:
                self._left = wall
                self._left_at = steady
                return wall
            now, jump = self._catch_up()
        if jump is not None:
            self._tell(jump)
        return now

    def _catch_up(self) -> tuple[int, Jump | None]:
        wall, steady = self._read()
        passed = (steady - self._left_at) * SECOND
        slowest = self._left + int(SPEED_LEAST * passed)
        by = wall - (slowest if self._ahead is not None else self._left + passed)
        jumped = abs(by) > JUMP_LEAST + SLEW_MOST * passed
        if wall >= slowest:
            self._left, self._left_at, self._ahead = wall, steady, None
            return wall, Jump(wall, by / SECOND) if jumped else None
        # While the clock waits the distance only shrinks; if it grew, the wall was set back once more.
        if self._ahead is not None:
            by += self._ahead
            jumped = by < -JUMP_LEAST
        self._ahead = slowest - wall
        return slowest, Jump(slowest, by / SECOND) if jumped else None

    def _read(self) -> tuple[int, float]:
        """The wall in microseconds and the monotonic clock in seconds, of one moment."""
        for _ in range(READINGS_MOST):
            before = self.monotonic()
            wall = self._wall() // 1000
            steady = self.monotonic()
            if steady - before <= READING_SECONDS_MOST:
                break
        return wall, steady

    def _tell(self, jump: Jump) -> None:
        if jump.by_seconds > 0:
            _log.warning("The wall clock jumped forward by %.3f s; it is followed at once.", jump.by_seconds)
        else:
            _log.warning(
                "The wall clock jumped back by %.3f s; time goes on at %d %% of its speed until the wall catches up.",
                -jump.by_seconds,
                SPEED_LEAST * 100,
            )
        if self.on_jump is not None:
            self.on_jump(jump)
