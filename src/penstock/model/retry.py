"""How long a failed message waits, and how often it is tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Waits `first * 2^(n-1)` seconds after the n-th failure, never longer than `longest`; with jitter, a `share` of that."""

    retries: int = 3
    first_seconds: float = 30.0
    longest_seconds: float = 600.0
    jitter: bool = False

    def delay_seconds(self, attempt: int, share: float = 1.0) -> float:
        """How long it waits after this failure."""
        # The exponent is capped because 2.0 ** 1024 overflows long before anybody waits that long.
        whole = min(self.first_seconds * 2.0 ** min(attempt - 1, 60), self.longest_seconds)
        return whole * share if self.jitter else whole

    def exhausted(self, attempt: int) -> bool:
        """Whether this failure was its last."""
        return attempt > self.retries
