"""What was sent since the service was last full, and in the last minute: the two things that measure its limit."""

from __future__ import annotations

import msgspec

MINUTE = 60.0
BEFORE = 2  # refusals before the last one that are remembered
NOTE_SECONDS = 2.0  # so the minute is kept in at most 31 notes


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
