"""The book: what became of every request, in total and by the minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MINUTES_KEPT = 14 * 24 * 60  # for a plot


@dataclass(slots=True)
class Minute:
    """What became of the requests of one minute at one endpoint."""

    start: float
    answered: int = 0
    refused: int = 0
    failed: int = 0


@dataclass(slots=True)
class Book:
    """All requests of one endpoint, in total and by the minute."""

    requests: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    minutes: deque[Minute] = field(default_factory=lambda: deque(maxlen=MINUTES_KEPT))

    def enter(self, outcome: str, now: float) -> None:
        start = now // 60 * 60
        if not self.minutes or self.minutes[-1].start < start:
            self.minutes.append(Minute(start))
        for page in (self, self.minutes[-1]):
            setattr(page, outcome, getattr(page, outcome) + 1)
