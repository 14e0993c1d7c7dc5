"""Conditions: something is wrong until it is over. One that stays the same is told once a day at most, and its end once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import ClassVar

from penstock.alerts.alert import RAISED, RECOVERED, TEXT_CHARACTERS_MAX, TITLE_CHARACTERS_MAX, Alert
from penstock.model.times import iso_z
from penstock.objects.object import Object

HOUR, DAY = 3_600_000_000, 86_400_000_000
# The hour lets a job that runs daily, and not to the second, find the same thing twice and tell it once.
AGAIN_FIRST, AGAIN_LONGEST = DAY, 7 * DAY
TOLD_A_DAY_MAX = 12  # one that changes or comes and goes all the time is told no more often
PIPELINE, AGENT = "pipeline", "alerts"


def is_told(told_at: Sequence[int], *, is_open: bool, same: bool, repeats: int, now: int) -> bool:
    """Whether a condition that is found now is told. One that is known, and the same, is told again after a day, then two,
    four, and every week."""
    if sum(at > now - DAY for at in told_at) >= TOLD_A_DAY_MAX:
        return False
    if not is_open or not same or not told_at:
        return True
    quiet: int = min(AGAIN_LONGEST, AGAIN_FIRST * 2 ** min(repeats, 10)) + HOUR
    return now - told_at[-1] >= quiet


class AlertCondition(Object):
    """What is known about one condition. What it tells is sent in the commit that remembers it."""

    _send: ClassVar[Callable[[Alert], object]]
    is_open: bool = False  # somebody was told of it, and nobody that it is over
    digest: str = ""
    title: str = ""
    told_at: list[int] = []  # noqa: RUF012 (every object gets a copy)
    repeats: int = 0

    async def found(self, title: str, text: str, compared: str) -> bool:
        now = self._residence.now()
        digest = hashlib.blake2b(compared.encode("utf-8", "replace"), digest_size=16).hexdigest()
        same = digest == self.digest
        if not is_told(self.told_at, is_open=self.is_open, same=same, repeats=self.repeats, now=now):
            return False
        self.repeats = self.repeats + 1 if same and self.is_open else 0
        self.is_open, self.digest, self.title = True, digest, title[:TITLE_CHARACTERS_MAX]
        self._tell(RAISED, self.title, text, now)
        self.told_at = [*self.told_at, now][-TOLD_A_DAY_MAX:]
        return True

    async def over(self, title: str | None, text: str) -> bool:
        if not self.is_open:
            return False
        self.is_open = False
        self._tell(RECOVERED, title or f"Recovered: {self.title}", text, self._residence.now())
        return True

    def _tell(self, kind: str, title: str, text: str, now: int) -> None:
        shown = text[:TEXT_CHARACTERS_MAX] or title
        facts: dict[str, object] = {"condition": self.name, "title": title}
        type(self)._send(Alert(kind, shown, facts, PIPELINE, AGENT, title, self.name, iso_z(now)))
