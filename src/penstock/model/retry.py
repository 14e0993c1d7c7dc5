"""How long a failed message waits, and how often it is tried."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf

from penstock.model.errors import BadApp
from penstock.model.times import in_seconds


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failure is retried, and how long it waits before that.

    It waits `first` after the first failure, then twice as long each time, never longer than `longest`. With `jitter` it
    waits a random part of that. Durations are seconds or a timedelta.

    Example:
        orders = app.queue("orders", Order, retries=ps.Retry(5, first=1.0, longest=60.0))
    """

    retries: int = 3
    first: float | timedelta = 30.0
    longest: float | timedelta = 600.0
    jitter: bool = False

    def __post_init__(self) -> None:
        if type(self.retries) is not int or self.retries < 0:
            raise BadApp(f"Retry: retries is {self.retries!r}; give a whole number from 0.", parameter="retries")
        for name in ("first", "longest"):
            value = getattr(self, name)
            if not isinstance(value, int | float | timedelta) or not 0 <= in_seconds(value) < inf:
                raise BadApp(f"Retry: {name} is {value!r}; give seconds from 0, or a timedelta.", parameter=name)

    def delay_seconds(self, attempt: int, share: float = 1.0) -> float:
        """Return how long the failure of this attempt waits; with jitter a `share` of that."""
        # The exponent is capped because 2.0 ** 1024 overflows long before a message waits that long.
        whole = min(in_seconds(self.first) * 2.0 ** min(attempt - 1, 60), in_seconds(self.longest))
        return whole * share if self.jitter else whole

    def exhausted(self, attempt: int) -> bool:
        """Return whether this failure was its last."""
        return attempt > self.retries


def retry_of(usual: Retry, retries: int | Retry | None) -> Retry:
    """Return what `retries=` means: a number keeps the usual waits."""
    if retries is None or isinstance(retries, Retry):
        return retries or usual
    return replace(usual, retries=retries)
