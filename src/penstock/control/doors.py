"""Closed doors: after a refusal wait a little, after several stop, knock once at growing intervals, and come back."""

from __future__ import annotations

import msgspec

KNOCK_MOST = 120.0  # seconds between two knocks, so that an opened door is found within minutes
KNOCK_SHARE = 0.04  # of the time the door has been closed, where that is more
CLOSED_AFTER = 3  # refusals in a row
SHORT = 60.0


class Door(msgspec.Struct):
    row: int = 0  # refusals in a row
    row_since: float = 0.0
    pause: float = 0.0
    hold_until: float = 0.0
    closed: bool = False
    down: bool = False  # closed by failures, not by refusals
    cut_at: float = -1.0  # answers to requests sent before say nothing new

    def refused(self, now: float, rate: float, retry_after: float | None) -> None:
        self.row += 1
        if self.row == 1:
            self.row_since = now
            self.pause = 1 / rate
        else:
            most = max(KNOCK_MOST, KNOCK_SHARE * (now - self.row_since))
            self.pause = min(most, max(1.0, 2 * self.pause))
        if self.row >= CLOSED_AFTER:
            self.closed = True
        wait = self.pause
        if self.row >= 2:
            boundary = 60.0 - now % 60.0 + 0.05
            if 0.5 * wait <= boundary <= 2 * wait:
                wait = boundary
        self.hold_until = now + wait if retry_after is None else now + retry_after
        self.cut_at = now

    def obey(self, now: float, retry_after: float) -> None:
        self.hold_until = max(self.hold_until, now + retry_after)

    def opened(self, now: float) -> float | None:
        """An answer came through: for how long the door was closed, if it was."""
        length = now - self.row_since if self.closed else None
        self.row, self.closed = 0, False
        return length
