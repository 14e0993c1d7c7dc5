"""A named queue: messages are sent to it, and functions are registered that handle them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from penstock.contracts.workers import HandlerRow
from penstock.model.envelope import ANY_JSON, CONTENT_TYPES, Command, Event, types_in
from penstock.model.errors import BadApp
from penstock.model.queue import QueueSettings
from penstock.queues.handler import BatchHandler, Handler, HandlerFunction, Of, OfBoth, OneOf, Registration
from penstock.queues.sender import Sender, T

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.batch import Batch
    from penstock.queues.letters import DeadLetter

P = TypeVar("P")
R = TypeVar("R")


class Queue(Sender[T]):
    """A durable queue of messages of one type, with one consumer and any number of senders. `app.queue` makes it.

    A message is sent when the unit that sent it commits.
    """

    def __init__(self, home: App, settings: QueueSettings, payload_type: Any = ANY_JSON) -> None:
        super().__init__(home, settings, payload_type)
        self.handlers: dict[str, tuple[Handler, ...]] = {}
        self.batches: BatchHandler | None = None
        self.dead_handler: HandlerFunction | None = None
        self.repairer: HandlerFunction | None = None

    @overload
    def handler(self, /, *, name: str) -> Registration[T]: ...
    @overload
    def handler(self, payload_type: OneOf[P, T], /, *, name: str | None = None) -> Registration[P]: ...
    @overload
    def handler(self, function: OfBoth[T, R], /) -> OfBoth[T, R]: ...
    @overload
    def handler(self, function: Of[T, R], /) -> Of[T, R]: ...
    def handler(self, what: Any = None, /, *, name: str | None = None) -> Any:
        """Register a function that handles one message at a time.

        It takes the payload, and the `Message` too if it has a second parameter. Where a queue has several types, name the
        one that it takes. Several handlers of one type each get their own copy with its own retries; `name` (the
        function's) tells them apart and must stay the same over deploys.

        Example:
            @orders.handler
            async def ship(order: Order) -> None:
                print(order.id)"""
        if inspect.isroutine(what) or isinstance(what, partial):
            return self._register(self._parts(None), name, what)
        return partial(self._register, self._parts(what), name)

    def _parts(self, payload_type: Any) -> dict[str, Any]:
        """Return the named part of this queue's payload type, or all of it."""
        if payload_type is None:
            return self.accepts or {"json": dict}
        named = types_in(payload_type)
        for type_ in named:
            if self.accepts is not None and type_ not in self.accepts:
                raise BadApp(
                    f"Queue {self.name!r} does not accept {type_!r}; it accepts {', '.join(self.accepts)}. Declare it with "
                    f"all its types: app.queue({self.name!r}, A | B)."
                )
        return named

    def _register(self, wanted: dict[str, Any], name: str | None, function: Any) -> Any:
        for type_, payload_class in wanted.items():
            run = function if self.order is None else self.order.guard(function)
            handler = Handler(self.name, payload_class, run, name)
            if self.batches is not None:
                raise self._second(handler.name)
            known = self.handlers.get(type_, ())
            if any(each.name == handler.name for each in known):
                raise BadApp(
                    f"Queue {self.name!r} has two handlers of {type_!r} called {handler.name!r}. Give one of them "
                    "another `name=`."
                )
            self.handlers[type_] = (*known, handler)
        return function

    def batch_handler(self, function: Of[Batch[T], R], /) -> Of[Batch[T], R]:
        """Register the one handler that takes many of this queue's messages at a time.

        Example:
            @listed.batch_handler
            async def score(batch: ps.Batch[Listed]) -> None:
                print(len(batch))"""
        if self.order is not None:
            raise BadApp(f"Queue {self.name!r} is ordered by key, and has no handler of batches. Use `@queue.handler`.")
        handler = BatchHandler(self.name, function)
        if self.batches is not None or self.handlers:
            raise self._second(handler.name)
        self.batches = handler
        return function

    def dead_letter_handler(self, function: Of[DeadLetter, R], /) -> Of[DeadLetter, R]:
        """Register a function that is called with each dead letter of this queue, with retries of its own.

        Example:
            @orders.dead_letter_handler
            async def report(letter: ps.DeadLetter) -> None:
                print(letter.reason)"""
        self.dead_handler = function
        self._watched()
        return function

    def repair(self, function: Of[DeadLetter, T | None], /) -> Of[DeadLetter, T | None]:
        """Register a function that returns a payload to send a dead letter back with, or None. It is called once a letter.

        Example:
            @orders.repair
            async def repair(letter: ps.DeadLetter) -> Order | None:
                return None"""
        self.repairer = function
        self._watched()
        return function

    def _watched(self) -> None:
        self.settings = replace(self.settings, watched=True)
        self._home._watch(self)

    @property
    def is_served(self) -> bool:
        """Whether it has a handler."""
        return bool(self.handlers) or self.batches is not None

    def _handler_rows(self) -> list[HandlerRow]:
        """What this queue's handlers can run, for other workers to know."""
        if self.batches is not None:
            return [HandlerRow(self.name, type_, "") for type_ in self.accepts or CONTENT_TYPES]
        rows = [HandlerRow(self.name, type_, "") for type_ in self.handlers]
        return rows + [
            HandlerRow(self.name, type_, handler.name)
            for type_, handlers in self.handlers.items()
            for handler in handlers
        ]

    def _second(self, name: str) -> BadApp:
        known = (
            self.batches.name
            if self.batches
            else ", ".join(handler.name for handlers in self.handlers.values() for handler in handlers)
        )
        return BadApp(
            f"Queue {self.name!r} has two consumers: {known} and {name}. A queue has one handler for batches, or handlers "
            "for single messages."
        )

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


def check_addressees(queues: Mapping[str, Queue[Any]], queue: Queue[Any]) -> None:
    """A queue carries commands or events, and only one queue accepts a command."""
    accepted = {name: each for name, each in (queue.accepts or {}).items() if isinstance(each, type)}
    commands = [name for name, each in accepted.items() if issubclass(each, Command)]
    if commands and any(issubclass(each, Event) for each in accepted.values()):
        raise BadApp(
            f"Queue {queue.name!r} accepts commands and events. A command has one receiving queue; events "
            "go to a queue of events. Use two queues."
        )
    for other in queues.values():
        for name in commands:
            if name in (other.accepts or ()):
                raise BadApp(
                    f"The command {name!r} is accepted by queues {other.name!r} and {queue.name!r}. A command has one "
                    "receiving queue; make it an event if several queues need it."
                )
