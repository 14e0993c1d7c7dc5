"""Which failures are about the pace: those above their usual share, and not those that belong to one item."""

from __future__ import annotations

import math

import msgspec

SUSPECTS_MOST = 500
USUAL_MOST = 0.03  # of refusals that are not about the pace; above that we would hear nothing any more
ENOUGH, ENOUGH_NOISY = (
    4.0,
    6.5,
)  # evidence that refusals are about the rate: one of them, or several where some are usual
MORE = 0.05  # share of refusals above the usual one that shows that they are about the rate
HOPELESS = 3  # refusals of one item
SHARE_WEIGHT, GUILT_WEIGHT, ITEM_WEIGHT = 0.0005, 0.05, 0.002


class Suspicion(msgspec.Struct):
    """A running test of two explanations: the usual share of failures, or so much `more` of them. Each answer moves the
    score towards the one that explains it better; when it has got far `enough`, the failures are believed."""

    usual: float
    more: float
    enough: float
    learning: float  # how fast the usual share follows what is seen
    least: float
    score: float = 0.0

    def passed(self, *, learn: bool) -> None:
        if self.score:
            self.score = max(0.0, self.score + math.log1p(-self.more / (1 - self.usual)))
        if learn:
            self.usual = max(self.least, self.usual * (1 - self.learning))

    def failed(self, *, learn: bool, expected: float = 0.0) -> bool:
        usual = max(self.usual, expected)
        self.score += math.log((usual + (1 - usual) * self.more) / usual)
        if learn:
            self.usual = min(0.5, self.usual + self.learning * (1 - self.usual))
        if self.score <= self.enough:
            return False
        self.score = 0.0
        return True


class Suspects(msgspec.Struct):
    """Items that were refused: one that is refused again, elsewhen, is refused for itself and not for the pace."""

    refused: dict[str, int] = {}
    guilty: float = 0.5  # the share of them that is refused again
    share: float = 0.0  # of requests that were an item's first refusal

    def note(self, item: str | None) -> int:
        """How often it had been refused before."""
        times = 0
        if item is not None:
            times = self.refused.pop(item, 0)
            self.refused[item] = times + 1
            if len(self.refused) > SUSPECTS_MOST:
                del self.refused[next(iter(self.refused))]
        if not times:
            self.share += SHARE_WEIGHT * (1 - self.share)
        return times

    def passed(self, item: str | None) -> None:
        self.share *= 1 - SHARE_WEIGHT
        if item is not None and self.refused.pop(item, 0):
            self.guilty -= GUILT_WEIGHT * self.guilty

    def again(self) -> None:
        self.guilty += GUILT_WEIGHT * (1 - self.guilty)

    def is_guilty(self, item: str | None) -> bool:
        """Whether the refusal of a probe says more about its item than about the service."""
        times = 0 if item is None else self.refused.get(item, 0)
        return times >= HOPELESS or (times > 0 and self.guilty > 0.6)

    def hopeless(self, item: str | None) -> bool:
        """Refused three times, where items that were refused often stay so."""
        return item is not None and self.refused.get(item, 0) >= HOPELESS and self.guilty > 0.25


class Throttling(msgspec.Struct):
    """Whether a refusal is believed to be about the pace."""

    test: Suspicion = msgspec.field(default_factory=lambda: Suspicion(0.0005, MORE, ENOUGH, 0.0, 0.0005))
    suspects: Suspects = msgspec.field(default_factory=Suspects)

    def passed(self, item: str | None) -> None:
        self.test.passed(learn=False)
        self.suspects.passed(item)
        self.test.usual = max(self.test.least, min(self.test.usual, 1.2 * self.suspects.share))

    def refused_anyway(self, share: float) -> None:
        """So many are refused when we go so slowly that it cannot be about the pace."""
        self.test.usual, self.test.enough = min(USUAL_MOST, max(self.test.usual, share)), ENOUGH_NOISY
        self.suspects.share = max(self.suspects.share, self.test.usual)

    def forget(self) -> None:
        """Refusals led to a ban: believe each of them."""
        self.test.usual, self.test.enough, self.suspects.share = self.test.least, ENOUGH, 0.0

    def believed(self, item: str | None, *, closed: bool) -> bool:
        """`closed`: the door is closed anyway, so that nothing can be learnt of an item that knocks."""
        times = self.suspects.note(item)
        if not times:
            return self.test.failed(learn=False)
        if times == 1 and not self.test.score and self.suspects.guilty > 0.5:  # alone among answers that passed
            self.test.usual = min(USUAL_MOST, self.test.usual + ITEM_WEIGHT)
        believed = self.test.failed(learn=False, expected=self.suspects.guilty)
        if not closed:
            self.suspects.again()
        return believed
