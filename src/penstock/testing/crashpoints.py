"""Crash points under virtual time: an armed one kills its simulated process the moment it is reached."""

from __future__ import annotations

from penstock.contracts.faults import CRASH_POINTS, known_point
from penstock.testing.process import Killed, Process

__all__ = ["CRASH_POINTS", "Trap"]


class Trap:
    """The faults of one process. Points are counted from the moment they are armed."""

    def __init__(self, process: Process, armed: dict[str, int] | None = None) -> None:
        self._process = process
        self.armed = {} if armed is None else armed  # how often each point is still to be passed

    def arm(self, point: str, *, nth: int = 1) -> None:
        """The process dies at the `nth` time from now that `point` is reached."""
        self.armed[known_point(point)] = nth

    def at(self, point: str) -> None:
        if self._process.dead:
            raise Killed
        if not self.armed or (left := self.armed.get(point)) is None:
            return
        self.armed[point] = left - 1
        if left == 1:
            del self.armed[point]
            self._process.kill()
            raise Killed
