"""How long a failed message waits, and how often it is tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Waits `first * 2^(n-1)` seconds after the n-th failure, never longer than `longest`."""

    retries: int = 3
    first_seconds: float = 30.0
    longest_seconds: float = 600.0

    def delay_seconds(self, attempt: int) -> float:
        # The exponent is capped because 2.0 ** 1024 overflows long before anybody waits that long.
        return min(self.first_seconds * 2.0 ** min(attempt - 1, 60), self.longest_seconds)

    def exhausted(self, attempt: int) -> bool:
        return attempt > self.retries
