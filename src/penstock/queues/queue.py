"""A named queue: `send` joins the current unit of work, `on` names the handler of a type."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from penstock.model.envelope import encode, type_name
from penstock.model.errors import BadApp, BadMessage, TooLarge
from penstock.model.message import PRIORITIES, PRIORITY_NORMAL, NewMessage, checksum
from penstock.model.queue import QueueSettings
from penstock.runtime.unit import Unit, joined

HandlerFunction = Callable[..., Awaitable[object]]
AnyHandler = TypeVar("AnyHandler", bound=HandlerFunction)

DELAY_SECONDS_MAX = 366 * 86_400
BODY_OVERHEAD_BYTES = 100  # what an envelope adds, counted toward the limit


class Home(Protocol):
    """The app a queue belongs to."""

    @property
    def name(self) -> str: ...
    @property
    def body_bytes_max(self) -> int: ...


class Handler:
    """A function that runs one type of message, and how to make its argument."""

    __slots__ = ("decode", "function", "name", "payload_class", "takes_message")

    def __init__(self, queue: str, payload_class: type, function: HandlerFunction) -> None:
        if not inspect.iscoroutinefunction(function):
            raise BadApp(
                f"{function!r} on queue {queue!r} is not async. Write `async def`, and use `await "
                "penstock.in_thread(...)` for blocking work.",
                function=function,
            )
        positional = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        if not 1 <= len(positional) <= 2:
            raise BadApp(f"{function!r} on queue {queue!r} must take the payload, and the message if it wants to.")
        self.function = function
        self.payload_class = payload_class
        self.takes_message = len(positional) == 2
        self.name = f"{queue}:{function.__name__}"
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(payload_class).decode


class Queue:
    """Durable. One consumer, any number of senders; what is sent is there once the unit that sent it has committed."""

    def __init__(self, home: Home, settings: QueueSettings, accepts: Iterable[type] | None) -> None:
        self._home = home
        self.settings = settings
        self.name = settings.name
        self.handlers: dict[str, Handler] = {}
        self._accepts = None if accepts is None else {type_name(accepted): accepted for accepted in accepts}
        self._types: dict[type, str] = {accepted: name for name, accepted in (self._accepts or {}).items()}

    def send(self, payload: object, *, delay: float = 0.0, priority: int = PRIORITY_NORMAL) -> bytes:
        """Joins the current unit of work and returns the message's id. Nothing is sent before the unit commits."""
        unit = joined(self._home)
        name = self._types.get(type(payload)) or self._accepted(payload)
        body = encode(payload)
        if len(body) + BODY_OVERHEAD_BYTES > self._home.body_bytes_max:
            raise TooLarge(
                f"A {name} of {len(body):,} bytes is too large for queue {self.name!r}: at most "
                f"{self._home.body_bytes_max - BODY_OVERHEAD_BYTES:,}. Store it and send a reference.",
                bytes=len(body),
                bytes_max=self._home.body_bytes_max,
            )
        if delay or priority != PRIORITY_NORMAL:
            self._check(delay, priority)
        message = self._message(unit, name, body, delay, priority)
        unit.send(message)
        return message.id

    def on(self, payload_class: type) -> Callable[[AnyHandler], AnyHandler]:
        """Names the handler of a type of message: `@orders.on(OrderPlaced)`."""
        name = self._types.get(payload_class) or type_name(payload_class)
        if self._accepts is not None and name not in self._accepts:
            raise BadApp(
                f"Queue {self.name!r} does not accept {name!r}; it accepts {', '.join(self._accepts)}. Add the class to "
                "`accepts=`."
            )

        def register(function: AnyHandler) -> AnyHandler:
            if name in self.handlers:
                raise BadApp(
                    f"Queue {self.name!r} has two handlers for {name!r}: {self.handlers[name].function.__qualname__} and "
                    f"{getattr(function, '__qualname__', function)}."
                )
            self.handlers[name] = Handler(self.name, payload_class, function)
            return function

        return register

    def _accepted(self, payload: object) -> str:
        name = type_name(type(payload))
        if self._accepts is not None:
            raise BadMessage(
                f"Queue {self.name!r} does not accept {type(payload).__qualname__} ({name!r}); it accepts "
                f"{', '.join(self._accepts)}. Nothing was sent.",
                type=name,
            )
        self._types[type(payload)] = name
        return name

    def _check(self, delay: float, priority: int) -> None:
        if not 0 <= delay <= DELAY_SECONDS_MAX:
            raise BadMessage(
                f"A delay of {delay} s is not possible: it can be 0 to {DELAY_SECONDS_MAX:,}.", delay=delay
            )
        if priority not in PRIORITIES:
            raise BadMessage(f"Priority {priority!r} does not exist: 0 is high, 1 normal, 2 low.", priority=priority)

    def _message(self, unit: Unit, name: str, body: bytes, delay: float, priority: int) -> NewMessage:
        id = unit.next_id(name)
        now = unit.engine.clock.now()
        consumed = unit.delivery
        if consumed is None:
            correlation_id, causation_id, hops = id, None, 0
        else:
            correlation_id, causation_id, hops = consumed.correlation_id, consumed.id, consumed.hops + 1
        # Made through the tuple itself: twice as quick as calling the class, and one is made for every message.
        values = (
            id,
            "",
            self.name,
            priority,
            now + int(delay * 1_000_000),
            name,
            self._home.name,
            correlation_id,
            causation_id,
            hops,
            now,
            checksum(id, body),
            body,
        )
        return tuple.__new__(NewMessage, values)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"
