"""A function that runs messages: checked when it is registered, and how its argument is made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.model.envelope import decoder
from penstock.model.errors import BadApp
from penstock.model.stack import function_place

HandlerFunction = Callable[..., Awaitable[object]]


class Handler:
    """Runs one type of message, one at a time. `name` tells the handlers of a type apart and must stay the same over
    deploys, because rows carry it."""

    __slots__ = ("decode", "function", "name", "payload_class", "takes_message", "task")

    def __init__(self, queue: str, payload_class: type, function: HandlerFunction, name: str | None = None) -> None:
        parameters = positional(function, queue)
        if not 1 <= parameters <= 2:
            raise BadApp(
                f"{function_place(function)} on queue {queue!r} must take the payload, and the message if it wants to."
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
