"""The bell between engines on one database file in one process, with a hand on the rope: held, lost, doubled, delayed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from penstock.testing.loop import VirtualLoop
from penstock.testing.process import Process

Heard = Callable[[set[str]], None]
Fate = Callable[[], list[float]]  # after how many seconds each copy of one ring arrives; no copy at all is a lost ring


def _at_once() -> list[float]:
    return [0.0]


class BellTower:
    """Each ring reaches every other engine that listens. While `held`, rings wait until they are let go."""

    def __init__(self, loop: VirtualLoop, fate: Fate = _at_once) -> None:
        self._loop = loop
        self._fate = fate
        self._listening: list[InlineBell] = []
        self._waiting: list[tuple[InlineBell, set[str]]] = []
        self.held = False

    def bell(self, process: Process) -> InlineBell:
        return InlineBell(self, process)

    def enter(self, bell: InlineBell) -> None:
        self._listening.append(bell)

    def leave(self, bell: InlineBell) -> None:
        if bell in self._listening:
            self._listening.remove(bell)

    def ring(self, by: InlineBell, queues: Collection[str]) -> None:
        for bell in self._listening:
            if bell is not by and self.held:
                self._waiting.append((bell, set(queues)))
            elif bell is not by:
                self._carry(bell, set(queues))

    def let_go(self) -> None:
        """Delivers what was rung while the bells were held."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for bell, queues in waiting:
            self._carry(bell, queues)

    def _carry(self, bell: InlineBell, queues: set[str]) -> None:
        for seconds in self._fate():
            if seconds > 0:
                self._loop.call_later(seconds, bell.hear, queues, context=bell.process.context)
            else:
                self._loop.call_soon(bell.hear, queues, context=bell.process.context)


class InlineBell:
    def __init__(self, tower: BellTower, process: Process) -> None:
        self._tower = tower
        self._heard: Heard | None = None
        self._missed: list[set[str]] = []
        self.process = process
        process.when_killed.append(self.close)
        process.when_resumed.append(self._catch_up)

    def ring(self, queues: Collection[str]) -> None:
        self._tower.ring(self, queues)

    def listen(self, heard: Heard) -> None:
        self._heard = heard
        self._tower.enter(self)

    def hear(self, queues: set[str]) -> None:
        if self.process.paused:
            self._missed.append(queues)
        elif self._heard is not None:
            self._heard(queues)

    def _catch_up(self) -> None:
        missed, self._missed = self._missed, []
        for queues in missed:
            self.hear(queues)

    def close(self) -> None:
        self._heard = None
        self._tower.leave(self)
