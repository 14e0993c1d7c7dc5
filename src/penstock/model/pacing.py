"""How fast a queue may start messages: a steady pace with small portions, never more than the rate in any second."""

from __future__ import annotations

from math import ceil

PORTIONS_A_SECOND = 100  # a rate above this is started in portions, or every message would need a claim of its own


def portion(rate: float) -> int:
    return max(1, int(rate) // PORTIONS_A_SECOND)


def interval_micros(rate: float) -> int:
    """Between two starts. A whole portion may start at once, so the pace is a little slower to make up for it."""
    return ceil(1_000_000 / (rate - portion(rate) + 1))


def allowed(rate: float, next_start: int, now: int) -> int:
    """How many may start now, if the next one may start at `next_start`."""
    return 0 if next_start > now else portion(rate)


def moved(rate: float, next_start: int, now: int, started: int) -> int:
    """When the next one may start, after `started` have."""
    return max(now, next_start) + started * interval_micros(rate)
