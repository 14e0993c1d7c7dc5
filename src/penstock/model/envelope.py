"""Typed payloads: events and commands that know their type name, and how they become bytes and come back."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, dataclass_transform

import msgspec

from penstock.model.errors import BadApp, BadMessage

TYPE_NAME_MAX = 200


def dotted(class_name: str) -> str:
    """`AppEnriched` becomes `app.enriched`, the name used where a class gives none."""
    words = "".join(f".{c.lower()}" if c.isupper() else c for c in class_name)
    return words.strip("._")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _PayloadMeta(msgspec.StructMeta):
    """Lets a payload class say `type="app.enriched"` in its head, and makes it frozen and keyword-only."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], type: str | None = None, **options: Any
    ) -> Any:
        options.setdefault("frozen", True)
        options.setdefault("kw_only", True)
        made: Any = super().__new__(mcls, name, bases, namespace, **options)
        made.__message_type__ = type or dotted(name)
        return made


class Event(msgspec.Struct, metaclass=_PayloadMeta):
    """A fact that happened, for whoever wants to know."""

    __message_type__: ClassVar[str]


class Command(msgspec.Struct, metaclass=_PayloadMeta):
    """A wish, for the one service that fulfils it."""

    __message_type__: ClassVar[str]


def type_name(payload_class: type) -> str:
    """The name under which messages of this class travel. Dataclasses may set `__message_type__` too."""
    name = getattr(payload_class, "__message_type__", None)
    if isinstance(name, str):
        return name
    if dataclasses.is_dataclass(payload_class) or issubclass(payload_class, msgspec.Struct):
        return dotted(payload_class.__name__)
    raise BadApp(
        f"{payload_class.__qualname__} cannot be a message. Make it a subclass of penstock.Event or "
        "penstock.Command, a msgspec.Struct or a dataclass.",
        payload_class=payload_class,
    )


_encode = msgspec.json.Encoder().encode


def encode(payload: object) -> bytes:
    try:
        return _encode(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadMessage(
            f"A {type(payload).__qualname__} cannot be turned into JSON: {error}. Send plain values.", payload=payload
        ) from error
