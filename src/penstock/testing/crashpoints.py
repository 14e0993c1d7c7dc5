"""Crash points under virtual time: an armed one kills its simulated process the moment it is reached."""

from __future__ import annotations

from collections import Counter

from penstock.contracts.faults import CRASH_POINTS, known_point
from penstock.testing.process import Killed, Process

__all__ = ["CRASH_POINTS", "Trap"]


class Trap:
    """The faults of one process. Points are counted from the moment they are armed."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._armed: dict[str, int] = {}
        self.reached: Counter[str] = Counter()

    def arm(self, point: str, *, nth: int = 1) -> None:
        """The process dies at the `nth` time from now that `point` is reached."""
        self._armed[known_point(point)] = nth

    def disarm(self) -> None:
        self._armed.clear()

    def at(self, point: str) -> None:
        if self._process.dead:
            raise Killed
        self.reached[point] += 1
        left = self._armed.get(point)
        if left is None:
            return
        self._armed[point] = left - 1
        if left == 1:
            del self._armed[point]
            self._process.kill()
            raise Killed
