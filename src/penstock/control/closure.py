"""When a service refuses everything: how long to wait, and when to probe whether it has ended."""

from __future__ import annotations

import math

import msgspec

SECOND_SECONDS, GROWTH = 10.0, 6.0  # the pause after a second refusal in a row, and how it grows with each further one
ANOTHER_SECONDS = 60.0  # after a probe with an item that is refused anyway, at most
PAUSE_MOST, PAUSE_SHARE = 600.0, 0.25  # between two probes at most, or this share of the time it has been closed
TOLD_LEAST = 5.0  # a Retry-After that is longer says when it opens, a shorter one when the next request may come
USUAL_MOST = 150.0  # a closure of at most so many seconds is expected again
DOWN_LEAST, DOWN_MOST = 1.0, 108.0  # between two probes of a service that fails: they cost nothing
FAILURES_MOST = 3  # in a row: the service is down
BOUNDARIES = (3_600.0, 1_800.0, 900.0, 600.0, 300.0, 60.0)  # windows and quotas begin on these
JUST_AFTER = 0.05  # seconds after a boundary, for clocks that do not agree


class Closure(msgspec.Struct):
    """`row` refusals or failures in a row, none of them to a request that was sent before the one before was known."""

    row: int = 0
    since: float = 0.0
    pause: float = 0.0
    hold_until: float = 0.0  # nothing starts before
    cut_at: float = -1.0  # answers to requests sent before say nothing new
    down: bool = False  # by failures alone
    length: float = 0.0  # of the last one, and when it ended
    told: float = 0.0  # the longest Retry-After of this one
    probed_at: float = 0.0
    opened_at: float = -1.0
    alone: bool = False  # no refusal in the hour before: nothing that a ban would follow
    counts: list[int] = []  # refusals within each window of the budget when it began

    def refused(self, now: float, first_pause: float, retry_after: float | None, *, down: bool) -> None:
        self.down = down and (self.down or not self.row)
        self.row += 1
        if self.row == 1:
            again = now - self.opened_at < self.length  # a window that was used up at once is free again bit by bit
            usual = self.length if self.length <= USUAL_MOST else self.pause / GROWTH if again else 0.0
            self.since, self.pause = now, max(first_pause, 0.0 if down else usual)
        elif down:
            self.pause = min(DOWN_MOST, max(DOWN_LEAST, 2 * self.pause))
        else:
            most = max(PAUSE_MOST, PAUSE_SHARE * (now - self.since))
            before = min(self.pause, SECOND_SECONDS) if self.row == 2 else self.pause
            self.pause = min(most, max(SECOND_SECONDS, GROWTH * before))
        self.cut_at = self.probed_at = now
        wait = self._wait(now)
        if retry_after is not None:
            self.told = max(self.told, retry_after)
            wait = retry_after if retry_after >= TOLD_LEAST else max(retry_after, wait)
        self.obey(now, wait)

    def _wait(self, now: float) -> float:
        """The pause, or until the roundest boundary of the clock near its end."""
        if self.row < 2:
            return self.pause
        for period in BOUNDARIES:
            boundary = period - now % period + JUST_AFTER
            if 0.4 * self.pause <= boundary <= 2 * self.pause:
                return boundary
        return self.pause

    def obey(self, now: float, seconds: float) -> None:
        self.hold_until = max(self.hold_until, now + seconds)

    def ask_another(self, now: float) -> None:
        """The item of the probe is refused anyway: soon again, with another one."""
        self.obey(now, min(self.pause, ANOTHER_SECONDS))

    def opened(self, now: float) -> float:
        """An answer came through. Return for how many seconds it was closed, as far as that is known; 0 after one refusal."""
        least, most = self.probed_at - self.since, now - self.since
        length = math.sqrt(least * most) if self.row >= 2 else 0.0
        if self.told >= TOLD_LEAST:
            length = max(length, min(self.told, most))
        self.told = 0.0
        if not self.down:
            self.length = length or 0.8 * self.length
            self.opened_at = now
        self.row = 0
        return length
