"""What a workflow takes and gives, by its signature: checked when a run is started, made again when it runs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import lru_cache
from types import NoneType
from typing import Any, get_type_hints

import msgspec

from penstock.model.errors import BadApp, BadMessage

WorkflowFunction = Callable[..., Awaitable[Any]]
# Of these a replay gives what was returned the first time: no code can tell one from the other. What is not plain is made
# again from what was stored, the first time too.
PLAIN = frozenset((NoneType, bool, int, float, str))
_encode = msgspec.json.Encoder().encode
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Inputs:
    """The arguments of a workflow as one JSON object."""

    def __init__(self, name: str, function: WorkflowFunction) -> None:
        if not inspect.iscoroutinefunction(function):
            raise BadApp(f"Workflow {name!r} is not async. Write `async def`.", name=name)
        signature = inspect.signature(function)
        first, rest = [*signature.parameters.values()][:1], [*signature.parameters.values()][1:]
        if not first or first[0].kind not in (inspect.Parameter.POSITIONAL_ONLY, _BY_NAME[0]):
            raise BadApp(f"Workflow {name!r} must take its run first: `async def {name}(run: Run, ...)`.", name=name)
        odd = [each.name for each in rest if each.kind not in _BY_NAME]
        if odd:
            raise BadApp(f"Workflow {name!r} cannot take {odd[0]!r}: the input of a run is stored by name.", name=name)
        self._name = name
        self._signature = signature.replace(parameters=rest)
        hints = hints_of(function)
        fields = [_field(each, hints) for each in rest]
        self._struct = msgspec.defstruct("Input", fields, kw_only=True, forbid_unknown_fields=True)
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(self._struct).decode
        self._names = [each.name for each in rest]
        self._by_place = all(each.kind is _BY_NAME[0] for each in rest)

    def encoded(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> bytes:
        """Refuses what the workflow could not be called with."""
        try:
            if self._by_place and not named and len(arguments) == len(self._names):
                given = dict(zip(self._names, arguments, strict=True))
            else:
                given = self._signature.bind(*arguments, **named).arguments
            body = _encode(self._struct(**given))
            self._decode(body)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise BadMessage(
                f"Workflow {self._name!r} cannot be started with that: {error}. Nothing was started."
            ) from error
        return body

    def decoded(self, body: bytes) -> dict[str, Any]:
        given = self._decode(body)
        return {name: getattr(given, name) for name in self._names}


def _field(parameter: inspect.Parameter, hints: dict[str, Any]) -> tuple[Any, ...]:
    kind = hints.get(parameter.name, Any)
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, kind
    default = parameter.default
    return parameter.name, kind, msgspec.field(default_factory=lambda: default)


@lru_cache(maxsize=4_096)
def hints_of(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(getattr(function, "func", function))
    except (NameError, TypeError):
        return {}


def stored(result: object, name: str, what: str = "Step") -> bytes:
    try:
        return _encode(result)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadMessage(
            f"{what} {name!r} returned a result that cannot be stored: {error}. Return plain values."
        ) from error


def restored(result: bytes, function: Any) -> Any:
    """Of the kind that the function says it returns, where that can be made of what was stored."""
    kind = hints_of(function).get("return", Any)
    try:
        return msgspec.json.decode(result, type=kind)
    except (TypeError, msgspec.ValidationError):
        return msgspec.json.decode(result)
