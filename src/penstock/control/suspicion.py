"""Which failures are about the pace: those above their usual share, whatever that is for this service."""

from __future__ import annotations

import math

import msgspec

SUSPECTS_MOST = 500


class Suspicion(msgspec.Struct):
    """A running test of two explanations: the usual share of failures, or clearly more of them."""

    usual: float
    more: float
    enough: float
    learning: float
    least: float
    score: float = 0.0

    def passed(self, learn: bool) -> None:
        if self.score:
            self.score = max(0.0, self.score + math.log1p(-self.more / (1 - self.usual)))
        if learn:
            self.usual = max(self.least, self.usual * (1 - self.learning))

    def failed(self, learn: bool, expected: float = 0.0) -> bool:
        usual = max(self.usual, expected)
        self.score += math.log((usual + (1 - usual) * self.more) / usual)
        if learn:
            self.usual = min(0.5, self.usual + self.learning * (1 - self.usual))
        if self.score > self.enough:
            self.score = 0.0
            return True
        return False


class Suspects(msgspec.Struct):
    """Items that were refused: one that is refused again, elsewhen, is refused for itself and not for the pace."""

    refused: dict[str, int] = {}
    guilty: float = 0.5  # the share of them that is refused again

    def again(self, item: str) -> int:
        """How often it had been refused before."""
        times = self.refused.pop(item, 0)
        self.refused[item] = times + 1
        if len(self.refused) > SUSPECTS_MOST:
            del self.refused[next(iter(self.refused))]
        return times

    def hopeless(self, item: str | None) -> bool:
        """Whether it was refused three times, where items that are refused mostly stay so."""
        return item is not None and self.refused.get(item, 0) >= 3 and self.guilty > 0.25

    def passed(self, item: str) -> None:
        if self.refused.pop(item, 0):
            self.guilty -= 0.05 * self.guilty
