"""Closed doors: after a refusal wait a little, after several stop, knock once at growing intervals, and come back."""

from __future__ import annotations

import msgspec

CLOSED_AFTER = 3  # refusals in a row
KNOCK_LEAST = 1.0  # seconds until the second knock
KNOCK_MOST = 108.0  # between two knocks, so that an opened door is found within minutes
KNOCK_SHARE = 0.04  # of the time it has been closed, where that is more: a quota of a day is not asked 700 times
LONG_CLOSED = 60.0  # seconds, from which on the way back begins further below
LONG_SECONDS, LONG_REQUESTS = 5.0, 20
MINUTE = 60.0
JUST_AFTER = 0.05  # seconds behind a boundary of the clock, for clocks that do not agree


def is_long(retry_after: float | None, rate: float) -> bool:
    """Whether a service that says when to come back means a closed door, and not the next place in a queue."""
    return retry_after is not None and retry_after > max(LONG_SECONDS, LONG_REQUESTS / rate)


class Door(msgspec.Struct):
    row: int = 0  # refusals in a row, none of them to a request sent before the one before was known
    row_since: float = 0.0
    pause: float = 0.0
    hold_until: float = 0.0  # nothing starts before
    closed: bool = False
    down: bool = False  # closed by failures, not by refusals
    cut_at: float = -1.0  # answers to requests sent before say nothing new
    last_knock: float = 0.0

    def refused(self, now: float, rate: float, retry_after: float | None) -> None:
        self.row += 1
        if self.row == 1:
            self.row_since, self.pause = now, 1 / rate
        else:
            most = max(KNOCK_MOST, KNOCK_SHARE * (now - self.row_since))
            self.pause = min(most, max(KNOCK_LEAST, 2 * self.pause))
        self.closed = self.closed or self.row >= CLOSED_AFTER or is_long(retry_after, rate)
        self.cut_at = now
        self.obey(now, self._wait(now) if retry_after is None else retry_after)

    def _wait(self, now: float) -> float:
        """The pause, or the next full minute if that is near: windows and quotas begin on it."""
        boundary = MINUTE - now % MINUTE + JUST_AFTER
        return boundary if self.row >= 2 and 0.5 * self.pause <= boundary <= 2 * self.pause else self.pause

    def obey(self, now: float, seconds: float) -> None:
        self.hold_until = max(self.hold_until, now + seconds)

    def ask_another(self, now: float) -> None:
        """What knocked would have been refused at an open door as well: as long again, with something else."""
        self.obey(now, self.pause)

    def shut(self, now: float, until: float) -> None:
        """Closed until a time that is known: no knocking."""
        self.row, self.row_since, self.cut_at = 1, now, now
        self.hold_until = max(self.hold_until, until)

    def opened(self, now: float) -> float | None:
        """An answer came through: for how long the door was closed, if it was."""
        length = now - self.row_since if self.closed else None
        self.row, self.closed = 0, False
        return length
