"""Services where a refusal closes the door for long: the ceiling is found by halving, and looked for rarely."""

from __future__ import annotations

import math

import msgspec

SURE = 1.04  # between the pace that was held and the one that was refused: near enough
SAME = 0.1  # a ceiling within a tenth of the last one is still the same
TRY_SECONDS, TRY_BUCKET = 300.0, 30.0  # until a bucket has run dry that holds half a minute of requests
TIMES_MOST = 50  # times what a refusal cost, until the next probe
RISEN = 1.6  # times a pace that was too much: what is taken then says that it no longer is
GROWTH, DOUBLED = 0.003, 400  # of a probe with every answer: in small steps, smaller with each time


class Dear(msgspec.Struct):
    """Nothing can be measured between two refusals here: while the door was closed a bucket has filled up, and nobody
    knows how deep it is. So a pace is tried for some time between one that was held and one that was not."""

    times: int = 0  # how often in a row a refusal closed the door for long, at the same ceiling
    ceiling: float = 0.0
    held: float | None = None  # the pace that was held before the one that is tried
    lid: float | None = None  # a pace that was too much
    probe_after: float = 0.0

    def closed(self, known: float, now: float, seconds: float) -> None:
        """A refusal closed the door for so long: the surer the ceiling, the longer until the next probe."""
        self.times = self.times + 1 if abs(known - self.ceiling) < SAME * known else 1
        self.ceiling = known
        self.probe_after = now + (TIMES_MOST if self._sure(known) else min(TIMES_MOST, 2**self.times)) * seconds

    def allows(self, now: float) -> bool:
        """Whether it is time to look higher."""
        return not self.times or now >= self.probe_after

    def growth(self, answers: int) -> float:
        return GROWTH / self.times * (1 + answers / DOUBLED)

    def tried(self, known: float, now: float) -> float | None:
        """A pace to try for some minutes, between what is held and what was too much. None: time for a probe."""
        if self.lid is None or self._sure(known):
            return None
        step = math.sqrt(self.lid / known)
        self.held, self.probe_after = known, now + min(TRY_SECONDS, TRY_BUCKET / (step - 1))
        return step * known

    def probed(self, known: float, rate: float) -> float:
        """A probe was refused at this rate. Says which pace to hold."""
        if self.lid is None or rate > RISEN * self.lid:
            self.lid = 0.98 * rate
        return known

    def refused(self, known: float) -> float:
        """Refused at the pace that was thought to be the ceiling. Says a lower one."""
        held, self.held, self.lid = self.held, None, known
        return 0.97 * known if held is None else held

    def _sure(self, known: float) -> bool:
        return self.lid is not None and self.lid <= SURE * known
