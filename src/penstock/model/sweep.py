"""After the clock jumped forward, lapsed leases are swept only when their holders have had a fair part of their time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class SweepHold:
    """Until when leases may not be swept, on the monotonic clock.

    A jump by J makes every lease look J older. Waiting min(J, longest lease) before sweeping keeps each lease at half its
    time or more, over any number of jumps, since either what the jumps took or what the wait returned is at least half. A
    lease as long as the longest lasts at most twice its time after one jump; a shorter one may last as long as the longest
    on top of its own, so queues with leases of very different lengths keep a hold each.
    """

    lease_longest_seconds: float
    until: float = -math.inf

    def jumped(self, by_seconds: float, *, at: float) -> SweepHold:
        """The hold after a jump noticed `at`. A jump back slows the clock instead and needs no hold."""
        if by_seconds <= 0:
            return self
        # Holds add up, as jumps do; a whole lease after the last jump nothing held before it can still be running.
        return replace(self, until=min(max(self.until, at) + by_seconds, at + self.lease_longest_seconds))

    def allows(self, at: float) -> bool:
        return at >= self.until
