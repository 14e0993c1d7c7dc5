"""Typed payloads: events and commands that know their type name, and how they become bytes and come back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Union, dataclass_transform, get_args, get_origin

import msgspec

from penstock.model.errors import BadApp, BadMessage
from penstock.model.ids import derived
from penstock.model.tagged import decode as decode_tagged
from penstock.model.tagged import encode as encode_tagged


def dotted(class_name: str) -> str:
    """`OrderPaid` becomes `order.paid`, the name used where a class gives none."""
    words = "".join(f".{c.lower()}" if c.isupper() else c for c in class_name)
    return words.strip("._")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _PayloadMeta(msgspec.StructMeta):
    """Lets a payload class say `type="order.paid"` in its head, and makes it frozen and keyword-only."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], type: str | None = None, **options: Any
    ) -> Any:
        options.setdefault("frozen", True)
        options.setdefault("kw_only", True)
        made: Any = super().__new__(mcls, name, bases, namespace, **options)
        made.__message_type__ = type or dotted(name)
        return made


class Event(msgspec.Struct, metaclass=_PayloadMeta):
    """A fact that happened, for any consumer."""

    __message_type__: ClassVar[str]


class Command(msgspec.Struct, metaclass=_PayloadMeta):
    """A wish, for the one service that fulfils it."""

    __message_type__: ClassVar[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Typed:
    """A value of plain Python kinds, times, bytes and sets among them, that JSON could not carry."""

    value: object


class Encoded(NamedTuple):
    """A body that is written already, under the name of its type: from outside, where its class is not known."""

    type: str
    body: bytes


# What travels without a class of its own, and under which name.
UNTYPED: dict[type, str] = {str: "text", bytes: "bytes", dict: "json", list: "json", object: "json", Typed: "v8"}
ANY_JSON = dict[str, Any]  # the type of a queue that names none, and which takes anything
CONTENT_TYPES = frozenset(UNTYPED.values())
_UNTYPED_CLASSES: dict[str, type] = {"text": str, "bytes": bytes, "json": object, "v8": Typed}
BULKY = frozenset({"html", "content", "raw"})  # fields that hold things rather than name them


def type_name(payload_class: type) -> str:
    """The name under which messages of this class travel. Dataclasses may set `__message_type__` too."""
    is_class = isinstance(payload_class, type)
    name = getattr(payload_class, "__message_type__", None) or (UNTYPED.get(payload_class) if is_class else None)
    if isinstance(name, str):
        return name
    if is_class and (dataclasses.is_dataclass(payload_class) or issubclass(payload_class, msgspec.Struct)):
        return dotted(payload_class.__name__)
    shown = payload_class.__qualname__ if is_class else repr(payload_class)
    raise BadApp(
        f"{shown} cannot be a message. Make it a subclass of penstock.Event or penstock.Command, a msgspec.Struct or a "
        "dataclass; or send text, bytes, a dict or a list.",
        payload_class=payload_class,
    )


def types_in(payload_type: Any) -> dict[str, Any]:
    """Return the parts of a payload type under the names of their types."""
    named: dict[str, Any] = {}
    for part in parts_of(payload_type):
        name = type_name(get_origin(part) or part)
        if name in named and name != "json":
            raise BadApp(
                f"{named[name].__name__} and {part.__name__} have one type name, {name!r}. Rename one of them."
            )
        named[name] = named[name] | part if name in named else part
    return named


def parts_of(payload_type: Any) -> list[Any]:
    """Return the types that a union is made of, or the type itself."""
    payload_type = getattr(payload_type, "__value__", payload_type)  # of `type Events = A | B`
    if get_origin(payload_type) in (Union, UnionType):
        return [part for each in get_args(payload_type) for part in parts_of(each)]
    return [payload_type]


def content_type(type_name: str) -> str:
    """How the body of such a message is written: json unless its type says otherwise."""
    return type_name if type_name in CONTENT_TYPES else "json"


def class_named(type_name: str) -> type:
    """What a body of this type is made into where no queue knows a class for it."""
    return _UNTYPED_CLASSES.get(type_name, object)


def replay_id(origin: bytes, replays: int, letter: int) -> bytes:
    """The id under which a dead letter goes back for the `replays`-th time. Its number is part of it, because one message
    may have died for several handlers, or have been sent again long after it died."""
    return derived(origin, "replay", str(replays), str(letter))


def bulky_fields(payload_class: type) -> list[str]:
    """Fields that look as if they carry a thing itself; messages should carry its id."""
    return sorted(BULKY & set(getattr(payload_class, "__annotations__", {})))


_encode = msgspec.json.Encoder().encode


def encode(payload: object) -> bytes:
    payload_class = type(payload)
    check = _CHECKS.get(payload_class)  # known are only classes that are written as JSON: the usual case comes first
    try:
        if check is None:
            match payload:
                case Encoded():
                    return payload.body
                case bytes():
                    return payload
                case str():
                    return payload.encode()
                case Typed(value):
                    return encode_tagged(value)
            check = _check_of(payload_class)
        if payload_class is dict or payload_class is list:
            _refuse_lossy(payload, "")
        body = _encode(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadMessage(
            f"A {type(payload).__qualname__} cannot be encoded as JSON: {error}. Send plain values.", payload=payload
        ) from error
    try:
        check(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadMessage(
            f"The payload is not a valid {payload_class.__qualname__}: {error}. Nothing was sent.", payload=payload
        ) from error
    return body


def _refuse_lossy(value: Any, place: str) -> None:
    """Raise for what JSON would turn into something else: a set into a list, bytes into text."""
    kind = type(value)
    if kind is dict:
        for name, each in value.items():
            _refuse_lossy(each, f"{place}.{name}")
    elif kind is list or kind is tuple:
        for index, each in enumerate(value):
            _refuse_lossy(each, f"{place}[{index}]")
    elif isinstance(value, set | frozenset | bytes | bytearray | memoryview):
        raise BadMessage(
            f"The field {place.removeprefix('.')} holds a {kind.__name__}, which JSON cannot represent. Send a list or text, "
            "a class that declares the field, or penstock.Typed(...). Nothing was sent.",
            field=place.removeprefix("."),
        )


# Classes are made without a look at the types of their fields, so what is sent is read back once: a mistake
# is reported to the sender instead of the receiver.
_CHECKS: dict[type, Callable[[bytes], object]] = {dict: id, list: id}


def _check_of(payload_class: type) -> Callable[[bytes], object]:
    try:
        check = decoder(payload_class)
    except TypeError:  # it has fields of which msgspec knows only how they are written
        check = id
    return _CHECKS.setdefault(payload_class, check)


def decoder(payload_class: Any) -> Callable[[bytes], Any]:
    """Makes the argument of a handler from a body; raises ValueError or MsgspecError where it does not fit."""
    if payload_class is str:
        return bytes.decode
    if payload_class is bytes:
        return bytes
    if payload_class is Typed:
        return lambda body: Typed(decode_tagged(body))
    return msgspec.json.Decoder(Any if payload_class is object else payload_class).decode
