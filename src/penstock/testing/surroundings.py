"""Virtual surroundings: one host with its wall clock, bells and seeded chance, and the processes that run on it."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Collection
from random import Random
from typing import Any

from penstock.contracts.faults import Faults
from penstock.runtime.clock import HostClock
from penstock.runtime.lanes import Answer
from penstock.runtime.surroundings import Surroundings
from penstock.testing.loop import VirtualLoop
from penstock.testing.process import Killed, Process

Latency = Callable[[], float]  # virtual seconds, drawn anew before and after each piece of work
Heard = Callable[[set[str]], None]
Fate = Callable[[], list[float]]  # after how many seconds each copy of one ring arrives; no copy at all is a lost ring


class BellTower:
    """Each ring reaches every other engine that listens. While `held`, rings wait until they are let go."""

    def __init__(self, fate: Fate | None) -> None:
        self._fate = fate or (lambda: [0.0])
        self._listening: list[InlineBell] = []
        self._waiting: list[tuple[InlineBell, set[str]]] = []
        self.held = False

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
            bell.process.call_later(seconds, bell.hear, queues)


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


class InlineLane:
    """While its process is paused nothing is done and nothing answered; once it is dead everything is dropped."""

    def __init__(self, process: Process, latency: Latency | None = None) -> None:
        self._process = process
        self._latency = latency or (lambda: 0.0)
        self._asked: deque[tuple[Callable[[], Any], Answer]] = deque()
        self._done: deque[tuple[Answer, Any, BaseException | None]] = deque()
        self._at_work = False
        self._answering = False
        self._closed = False
        process.when_resumed.append(self._go_on)

    @property
    def is_idle(self) -> bool:
        return False  # it has no thread whose hand-over could be saved

    def submit(self, work: Callable[[], Any], answer: Answer) -> None:
        assert not self._closed, "a closed lane executes nothing"
        if not self._process.dead:
            self._asked.append((work, answer))
            self._go_on()

    def close(self) -> None:
        self._closed = True
        self._process.when_resumed.remove(self._go_on)

    def _go_on(self) -> None:
        if self._process.paused:
            return
        if self._asked and not self._at_work:
            self._at_work = True
            self._process.call_later(self._latency(), self._work)
        if self._done and not self._answering:
            self._answering = True
            self._process.call_later(self._latency(), self._answer)

    def _work(self) -> None:
        self._at_work = False
        if self._process.paused or self._process.dead:
            return
        work, answer = self._asked.popleft()
        try:
            self._done.append((answer, work(), None))
        except Killed:
            return
        except BaseException as error:
            self._done.append((answer, None, error))
        self._go_on()

    def _answer(self) -> None:
        self._answering = False
        if self._process.paused or self._process.dead:
            return
        answer, result, error = self._done.popleft()
        try:
            answer(result, error)
        except Killed:
            return
        self._go_on()


class VirtualHost:
    """A machine of its own inside the running virtual loop. All its processes see one wall clock and ring one bell."""

    def __init__(self, *, seed: int = 0, fate: Fate | None = None) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            raise TypeError(
                "This needs the virtual loop. Run the test with `@penstock.testing.virtual`, or with the pytest plugin "
                "`penstock.testing.plugin`."
            )
        self.loop = loop
        self.seed = seed
        self.bells = BellTower(fate)
        self.processes: list[Process] = []
        self.context = contextvars.copy_context()  # of its creator: outside all processes

    def chance(self, concern: str) -> Random:
        """A source of its own for each concern, so that a new draw in one leaves the others as they were."""
        return Random(f"{self.seed}/{concern}")

    def process(self, name: str) -> Process:
        made = Process(self.loop, name)
        self.processes.append(made)
        return made

    def surroundings(
        self, process: Process, faults: Faults, *, tick_seconds: float | None = None, latency: Latency | None = None
    ) -> Surroundings:
        """What an engine in this process is given. Without ticks days of idleness cost nothing."""
        return Surroundings(
            clock=HostClock(wall=self.loop.wall_ns, monotonic=self.loop.time),
            random=self.chance(f"ids of {process.name}"),
            faults=faults,
            lane=lambda _name: InlineLane(process, latency),
            bell=lambda _store, _worker: InlineBell(self.bells, process),
            tick_seconds=tick_seconds,
            in_place=True,
        )

    def dispose(self) -> None:
        """Lets go of every process. Those that still live are killed first."""
        for process in self.processes:
            process.kill()
            process.dispose()
        self.processes.clear()
