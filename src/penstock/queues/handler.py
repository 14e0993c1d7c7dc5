"""A function that runs messages: checked when it is registered, and how its argument is made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from penstock.model.envelope import decoder
from penstock.model.errors import BadApp
from penstock.model.stack import function_place

if TYPE_CHECKING:
    from penstock.queues.message import Message

HandlerFunction = Callable[..., Awaitable[object]]
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Part_co = TypeVar("Part_co", covariant=True)
Of = Callable[[T], Coroutine[Any, Any, R]]  # a handler of payloads of type T
OfBoth = Callable[[T, "Message[T]"], Coroutine[Any, Any, R]]  # one that also takes the message


class Registration(Protocol[T]):
    """What `queue.handler(OrderPaid)` returns: a decorator of handlers of that type."""

    @overload
    def __call__(self, function: Of[T, R], /) -> Of[T, R]: ...
    @overload
    def __call__(self, function: OfBoth[T, R], /) -> OfBoth[T, R]: ...


class OneOf(Protocol[Part_co, T_co]):
    """A class of type `Part_co` that is also one of the types `T_co`: what makes both overloads true."""

    @overload
    def __call__(self, *_: Any, **__: Any) -> Part_co: ...
    @overload
    def __call__(self, *_: Any, **__: Any) -> T_co: ...  # type: ignore[overload-cannot-match]


class Handler:
    """Runs one type of message, one at a time. `name` tells the handlers of a type apart and must stay the same over
    deploys, because rows carry it."""

    __slots__ = ("decode", "function", "name", "payload_class", "takes_message", "task")

    def __init__(self, queue: str, payload_class: Any, function: HandlerFunction, name: str | None = None) -> None:
        parameters = positional(function, queue)
        if not 1 <= parameters <= 2:
            raise BadApp(
                f"{function_place(function)} on queue {queue!r} must take the payload, and optionally the message."
            )
        self.function = function
        self.payload_class = payload_class
        self.takes_message = parameters == 2
        self.name = name or function_name(function)
        self.task = f"{queue}:{self.name}"
        self.decode: Callable[[bytes], Any] = decoder(payload_class)


class BatchHandler:
    """Runs many messages at once."""

    __slots__ = ("function", "name", "task")

    def __init__(self, queue: str, function: HandlerFunction) -> None:
        if positional(function, queue) != 1:
            raise BadApp(f"{function_place(function)} on queue {queue!r} must take the batch and nothing else.")
        self.function = function
        self.name = function_name(function)
        self.task = f"{queue}:{self.name}"


def positional(function: HandlerFunction, queue: str) -> int:
    """How many arguments it takes by position. Refuses what is not async."""
    if not inspect.iscoroutinefunction(function):
        raise BadApp(
            f"{function_place(function)} on queue {queue!r} is not async. Write `async def`, and use `await "
            "penstock.in_thread(...)` for blocking work.",
            function=function,
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in inspect.signature(function).parameters.values())


def function_name(function: HandlerFunction) -> str:
    return getattr(function, "__name__", type(function).__name__)
