"""A lane under virtual time: does its work in place, in order, and answers later, as a thread would."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.runtime.lanes import Answer
from penstock.testing.loop import VirtualLoop
from penstock.testing.process import Killed, Process

Latency = Callable[[], float]  # virtual seconds, drawn anew before and after each piece of work


class InlineLane:
    """While its process is paused nothing is done and nothing answered; once it is dead everything is dropped."""

    def __init__(self, loop: VirtualLoop, process: Process, latency: Latency | None = None) -> None:
        self._loop = loop
        self._process = process
        self._latency = latency
        self._asked: deque[tuple[Callable[[], Any], Answer]] = deque()
        self._done: deque[tuple[Answer, Any, BaseException | None]] = deque()
        self._at_work = False
        self._answering = False
        self._closed = False
        process.when_resumed.append(self._go_on)

    def submit(self, work: Callable[[], Any], answer: Answer) -> None:
        assert not self._closed, "a closed lane does nothing any more, and nobody would be answered"
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
            self._soon(self._work)
        if self._done and not self._answering:
            self._answering = True
            self._soon(self._answer)

    def _soon(self, callback: Callable[[], None]) -> None:
        # In the process's own context, as from a thread: no handler's unit travels with an answer.
        seconds = 0.0 if self._latency is None else self._latency()
        if seconds > 0:
            self._loop.call_later(seconds, callback, context=self._process.context)
        else:
            self._loop.call_soon(callback, context=self._process.context)

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
