"""What happened in each of the last minutes, in a handful of buckets that can be summed, pruned and saved.

A bucket is one minute of the clock. A window of five minutes takes the bucket it begins in whole, so it reaches back
five minutes at least and six at most: an outcome 4 min 59 s old always counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

MINUTE_MS = 60_000


class Minute(msgspec.Struct, frozen=True):
    dispatched: int = 0
    completed: int = 0
    failed: int = 0

    @property
    def outcomes(self) -> int:
        return self.completed + self.failed

    def __add__(self, other: Minute) -> Minute:
        return Minute(self.dispatched + other.dispatched, self.completed + other.completed, self.failed + other.failed)

    def __sub__(self, other: Minute) -> Minute:
        return Minute(
            max(0, self.dispatched - other.dispatched),
            max(0, self.completed - other.completed),
            max(0, self.failed - other.failed),
        )


Minutes = Mapping[int, Minute]  # by the millisecond the minute begins at


class Pruned(NamedTuple):
    minutes: dict[int, Minute]
    removed: int


def minute_of(now_ms: int) -> int:
    return now_ms // MINUTE_MS * MINUTE_MS


def added(minutes: Minutes, now_ms: int, counts: Minute) -> dict[int, Minute]:
    start = minute_of(now_ms)
    return {**minutes, start: minutes.get(start, Minute()) + counts}


def window(minutes: Minutes, now_ms: int, length: int) -> Minute:
    """The sum of the last so many minutes."""
    begin = minute_of(now_ms - length * MINUTE_MS)
    return sum((counts for start, counts in minutes.items() if begin <= start <= now_ms), Minute())


def newest_first(minutes: Minutes, now_ms: int) -> Iterator[tuple[int, Minute]]:
    return ((start, minutes[start]) for start in sorted(minutes, reverse=True) if start <= now_ms)


def pruned(minutes: Minutes, now_ms: int, *, length: int, look_back: int, enough: int) -> Pruned:
    """Keeps the window and a minute more; older buckets only while the newer ones hold too few outcomes to judge by.

    Buckets that lie ahead come from a clock that was set back, and go.
    """
    kept: dict[int, Minute] = {}
    outcomes = 0
    for start, counts in newest_first(minutes, now_ms):
        age = now_ms - start
        if age <= (length + 1) * MINUTE_MS or (age <= look_back * MINUTE_MS and outcomes < enough):
            kept[start] = counts
        outcomes += counts.outcomes
    return Pruned(dict(sorted(kept.items())), len(minutes) - len(kept))
