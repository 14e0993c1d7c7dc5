"""Deliveries in their order, handlers that give predefined answers, and failures for the note of a test that fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.model.errors import BadApp
from penstock.model.times import from_micros
from penstock.queues.batch import Batch
from penstock.queues.handler import BatchHandler, Handler
from penstock.queues.message import Message
from penstock.queues.queue import Queue
from penstock.runtime.events import EngineEvent, Events, ItemFailed, MessageFailed, TickFailed
from penstock.workflows.execution import StepFailedOnce
from penstock.workflows.executor import RunFailed

FAILURES, FAILURES_SHOWN = (MessageFailed, ItemFailed, TickFailed, StepFailedOnce, RunFailed), 5
Answers = deque[object]  # each handler takes the next one: an exception is raised, anything else is returned


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery. Two are equal if they have the same number; the rest is there to look at."""

    number: int
    payload: object = field(default=None, compare=False)
    id: str = field(default="", compare=False)
    at: datetime | None = field(default=None, compare=False)


def attempt(number: int) -> Attempt:
    """What `delivered` is compared with: `assert shop.delivered(listings) == [attempt(1), attempt(2)]`."""
    return Attempt(number)


def note_failures(events: Events) -> Callable[[BaseException | None], None]:
    """Collect the first failures of the app's code. Call what it returns to stop, and to add them to the error of a test:
    a handler that raises fails no test."""
    lines: dict[str, None] = {}

    def add(event: EngineEvent) -> None:
        if len(lines) < FAILURES_SHOWN:
            lines["\n  " + (event.line() or event.name).split(" (attempt ")[0]] = None

    leave = [events.subscribe(add, to=kind) for kind in FAILURES]

    def end(error: BaseException | None) -> None:
        for each in leave:
            each()
        if error is not None and lines:
            error.add_note("failures in the app:" + "".join(lines))

    return end


class Recorder:
    """Notes every delivery of an app's queues before its handler runs."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._before: dict[Queue[Any], tuple[dict[str, tuple[Handler, ...]], BatchHandler | None]] = {}
        self.delivered: dict[str, list[Attempt]] = {}

    def watch(self, queue: Queue[Any]) -> None:
        handlers, batch_handler = self._remember(queue)
        for type_, several in handlers.items():
            queue.handlers[type_] = tuple(
                self._recorded(queue, each.payload_class, each.function, each) for each in several
            )
        if batch_handler is not None:
            queue.batches = self._recorded_batch(queue, batch_handler)

    def _remember(self, queue: Queue[Any]) -> tuple[dict[str, tuple[Handler, ...]], BatchHandler | None]:
        return self._before.setdefault(queue, (dict(queue.handlers), queue.batches))

    def answer(self, queue: Queue[Any], answers: Answers) -> None:
        """Every type that the queue accepts is handled by giving the next answer."""
        self._remember(queue)
        handled = {type_: several[0].payload_class for type_, several in queue.handlers.items()}
        accepted = handled | (queue.accepts or {})
        if not accepted:
            raise BadApp(f"Queue {queue.name!r} has neither a type nor a handler, so it cannot be tested.")

        async def answering(_payload: object) -> object:
            answer = answers.popleft() if answers else None
            if isinstance(answer, BaseException):
                raise answer
            return answer

        for name, payload_class in accepted.items():
            queue.handlers[name] = (self._recorded(queue, payload_class, answering, None),)

    def leave(self) -> None:
        """Puts the app's own handlers back."""
        for queue, (handlers, batch_handler) in self._before.items():
            queue.handlers.clear()
            queue.handlers.update(handlers)
            queue.batches = batch_handler
        self._before.clear()

    def _recorded(
        self, queue: Queue[Any], payload_class: Any, function: Callable[..., Awaitable[object]], like: Handler | None
    ) -> Handler:
        takes_message = like is not None and like.takes_message
        delivered = self.delivered.setdefault(queue.name, [])

        async def recorded(payload: Any, message: Message[Any]) -> object:
            delivered.append(Attempt(message.attempt, payload, message.id, from_micros(self._now())))
            return await (function(payload, message) if takes_message else function(payload))

        name = getattr(function, "__name__", "handler") if like is None else like.name
        return Handler(queue.name, payload_class, recorded, name)

    def _recorded_batch(self, queue: Queue[Any], like: BatchHandler) -> BatchHandler:
        delivered = self.delivered.setdefault(queue.name, [])

        async def recorded(batch: Batch[Any]) -> object:
            at = from_micros(self._now())
            delivered.extend(Attempt(each.attempt, each.body, each.id, at) for each in batch)
            return await like.function(batch)

        recorded.__name__ = like.name
        return BatchHandler(queue.name, recorded)
