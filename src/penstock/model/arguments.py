"""Arguments of the calls that declare an app: one of the wrong type is refused there, by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from functools import lru_cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from penstock.model.errors import BadApp
from penstock.model.times import in_seconds

P = ParamSpec("P")
T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=1)]
PositiveSpan = Annotated[float | timedelta, msgspec.Meta(gt=0)]
SpanFromZero = Annotated[float | timedelta, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
FromZero = Annotated[float, msgspec.Meta(ge=0)]
Range = tuple[Positive, Positive]
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    NoneType: "None",
    Callable: "a function",
    type: "a class",
}


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Let a call raise BadApp for an argument that does not fit its annotation, with the parameter and the value."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        signature, hints = _declared(function)
        given = signature.bind(*arguments, **named).arguments
        for name, value in given.items():
            if name in hints and not _fits(value, hints[name]):
                subject = next((repr(each)[:100] for each in arguments[1:2] if isinstance(each, str)), "")
                call_shown, shown = f"{function.__qualname__}({subject})", repr(value)[:200]
                raise BadApp(f"{call_shown}: {name} is {shown}; give {_wanted(hints[name])}.", parameter=name)
        return function(*arguments, **named)

    return call


@lru_cache(None)
def _declared(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(function), get_type_hints(function, include_extras=True)


def _fits(value: object, hint: Any) -> bool:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, each) for each in parts)
    if kind is Annotated:
        if not _fits(value, parts[0]):
            return False
        low, given = parts[1], in_seconds(value)  # type: ignore[arg-type]
        return (low.ge is None or given >= low.ge) and (low.gt is None or given > low.gt)
    if kind is Literal:
        return any(value is each or (type(value) is type(each) and value == each) for each in parts)
    if kind is type and parts:
        bound = getattr(parts[0], "__bound__", None) or object
        return isinstance(value, type) and issubclass(value, get_origin(bound) or bound)
    if kind is Iterable:
        each_fits = not isinstance(value, Collection) or all(_fits(each, parts[0]) for each in value)
        return isinstance(value, Iterable) and not isinstance(value, str | bytes) and each_fits
    if kind is tuple and Ellipsis not in parts:
        return isinstance(value, tuple | list) and len(value) == len(parts) and all(map(_fits, value, parts))
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    try:
        return isinstance(value, kind)
    except TypeError:  # Any, a type variable, a protocol: nothing to compare with
        return True


def _wanted(hint: Any) -> str:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return " or ".join(_wanted(each) for each in parts)
    if kind is Annotated:
        low = parts[1]
        return f"{_wanted(parts[0])} {f'from {low.ge}' if low.gt is None else f'above {low.gt}'}"
    if kind is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if kind is Iterable:
        return f"a list, each {_wanted(parts[0])}"
    if kind is tuple:
        return f"({', '.join(map(_wanted, parts))})"
    return _WORDS.get(kind) or f"a {getattr(kind, '__name__', kind)}"


def check_ranges(what: str, **ranges: tuple[float, float]) -> None:
    """Raise BadApp for a range that ends below its beginning."""
    for name, (low, high) in ranges.items():
        if low > high:
            raise BadApp(f"{what}: {name} is ({low}, {high}); the larger number comes last.", parameter=name)
