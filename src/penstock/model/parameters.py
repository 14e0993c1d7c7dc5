"""Values for a statement's :names: each name has one, none is left over, and both databases can store them."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, NoReturn, TypeAlias
from uuid import UUID

import msgspec

from penstock.model.errors import BadParameter, TooLarge
from penstock.model.limits import LOCAL
from penstock.model.statement import Statement, one_line
from penstock.model.times import to_text

Bindable: TypeAlias = int | float | str | bytes | None

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_NUMBER_BYTES = 8  # what a number takes in a row at most
_NAMES_SHOWN = 10  # names that a message lists, before it counts the rest


@dataclasses.dataclass(frozen=True, slots=True)
class Json:
    """A value as JSON text, taken at the moment it was wrapped. `db.json(value)` makes one."""

    text: str

    @classmethod
    def of(cls, value: object) -> Json:
        return cls(as_json(value))


def as_json(value: object) -> str:
    """The value as compact JSON text."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as why:
        raise BadParameter(
            f"A {type(value).__qualname__} cannot be encoded as JSON: {why}. Use plain values.", value=value
        ) from why


def bind(
    statement: Statement, given: object, named: Mapping[str, object], *, row_bytes_max: int = LOCAL.row_bytes_max
) -> dict[str, Bindable]:
    """The values to bind, by name. A keyword wins over a value of the same name in `given`."""
    return bind_sized(statement, given, named, row_bytes_max=row_bytes_max)[0]


def bind_sized(
    statement: Statement, given: object, named: Mapping[str, object], *, row_bytes_max: int = LOCAL.row_bytes_max
) -> tuple[dict[str, Bindable], int]:
    """The values to bind and the bytes they take."""
    if given is None:
        values: Mapping[Any, Any] = named
    else:
        values = given if type(given) is dict and not named else _values(statement, given, named)
    if len(values) != len(statement.names):
        _refuse_names(statement, values)
    bound: dict[str, Bindable] = {}
    size = 0
    for name in statement.names:
        try:
            value = values[name]
        except KeyError:
            _refuse_names(statement, values)
        kind = type(value)
        # The common kinds first and inline: this loop runs for every row that is written.
        if kind is str and value.isascii() and "\0" not in value:
            size += len(value)
        elif (kind is int and _LOWEST <= value <= _HIGHEST) or (kind is float and isfinite(value)):
            size += _NUMBER_BYTES
        elif value is not None:
            value = _converted(statement, name, value)
            size += _size(value)
        bound[name] = value
    if size > row_bytes_max:
        raise TooLarge(
            f"The values for {_quote(statement)} are {size:,} bytes, and a row may have {row_bytes_max:,}. Shorten the "
            "text with `cut`, or put the value in the blob store and write a reference to it.",
            size=size,
            allowed=row_bytes_max,
        )
    return bound, size


def size_of(bound: Mapping[str, Bindable]) -> int:
    """The bytes that bound values take, as the limits count them: text in UTF-8, 8 for a number, none for NULL."""
    size = 0
    for value in bound.values():
        if type(value) is str and value.isascii():
            size += len(value)
        elif value is not None:
            size += _size(value)
    return size


def _size(value: Bindable) -> int:
    match value:
        case str():
            return len(value.encode())
        case bytes():
            return len(value)
        case _:
            return _NUMBER_BYTES


# -- which value belongs to which name --------------------------------------------------------------------


def _values(statement: Statement, given: object, named: Mapping[str, object]) -> Mapping[Any, Any]:
    """What was given, by name. Structs and dataclasses may have more fields than are needed; mappings may not."""
    if given is None:
        return named
    if isinstance(given, Mapping):
        return {**given, **named}
    if isinstance(given, msgspec.Struct):
        fields: Container[str] = given.__struct_fields__
    elif dataclasses.is_dataclass(given) and not isinstance(given, type):
        fields = given.__dataclass_fields__
    else:
        raise BadParameter(
            f"A {type(given).__qualname__} cannot be bound to {_quote(statement)}. Give a dict, a msgspec.Struct, a "
            "dataclass or keywords, one value for each :name.",
            value=given,
        )
    values = {name: getattr(given, name) for name in statement.names if name in fields and hasattr(given, name)}
    values.update(named)
    return values


def _refuse_names(statement: Statement, values: Mapping[Any, Any]) -> NoReturn:
    missing = [name for name in statement.names if name not in values]
    unexpected = [name for name in values if name not in statement.names]
    raise BadParameter(
        f"{_quote(statement)} needs {_list(statement.names)}; missing: {_list(missing)}; "
        f"unexpected: {_list(unexpected)}.",
        missing=missing,
        unexpected=unexpected,
    )


def _list(names: Iterable[object]) -> str:
    shown = [str(name) for name in names]
    more = f" and {len(shown) - _NAMES_SHOWN} more" if len(shown) > _NAMES_SHOWN else ""
    return (", ".join(shown[:_NAMES_SHOWN]) or "nothing") + more


# -- what a value becomes -----------------------------------------------------------------------------------


def _converted(statement: Statement, name: str, value: object) -> Bindable:
    """The value as both databases store it. `datetime` comes before `date`, which it is too."""
    try:
        match value:
            case None:
                return None
            case Enum():
                return _converted(statement, name, value.value)
            case bool() | int():
                return _integer(value)
            case float():
                return _float(value)
            case str():
                return _text(value)
            case bytes() | bytearray() | memoryview():
                return bytes(value)
            case datetime():
                return to_text(value)
            case date():
                return value.isoformat()
            case UUID():
                return str(value)
            case Json():
                return value.text
        raise BadParameter(f"a {type(value).__qualname__} cannot be stored. {_way_out(value)}")
    except BadParameter as why:
        if "name" in why.facts:
            raise
        raise BadParameter(f":{name} of {_quote(statement)}: {why.message}", name=name, value=value) from None


def _integer(value: int) -> int:
    if not _LOWEST <= value <= _HIGHEST:
        raise BadParameter(f"a number of {value.bit_length()} bits does not fit into 64. Store it as text.")
    return int(value)


def _float(value: float) -> float:
    if not isfinite(value):
        raise BadParameter(f"{value} is not a number. Store NULL (None) instead.")
    return float(value)


def _text(value: str) -> str:
    if "\0" in value:
        raise BadParameter("the text contains a NUL character, which PostgreSQL cannot store. Remove it, or use bytes.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadParameter(
            "the text contains a lone surrogate, which is half a character. Decode it correctly, or with errors='replace'."
        ) from None
    return str.__str__(value)


def _way_out(value: object) -> str:
    if isinstance(value, Decimal):
        return "Store whole units as int (cents), or choose float(value) or str(value)."
    if isinstance(value, dict | list | tuple | set | frozenset | msgspec.Struct) or dataclasses.is_dataclass(value):
        return "Store it as JSON: `db.json(value)`."
    return "Turn it into text, a number or bytes."


def _quote(statement: Statement) -> str:
    return f"`{one_line(statement.text, 80)}`"
