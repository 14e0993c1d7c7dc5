"""JSON from the store, read piece by piece: what is wrong in one piece harms no other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

import penstock as ps

T = TypeVar("T")

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)


class Read(NamedTuple, Generic[T]):
    """What an answer says, and how many of its entries could not be read and were left out."""

    facts: T
    skipped: int = 0


def decoded(body: bytes | msgspec.Raw, kind: type[T], what: str) -> T:
    """What `kind` names, such as a few fields of an object that has many. Blank lines before it are no matter."""
    read: T = _decoded(body, kind, what)
    return read


def each(pieces: Iterable[msgspec.Raw], kind: type[T]) -> Read[list[tuple[int, T]]]:
    """Every piece that is a `kind`, with its place from 1. One of another shape is left out and counted."""
    kept: list[tuple[int, T]] = []
    skipped = 0
    for place, piece in enumerate(pieces, 1):
        try:
            kept.append((place, decoded(piece, kind, "A piece")))
        except ps.Unparsable:
            skipped += 1
    return Read(kept, skipped)


def pieces(raw: Iterable[msgspec.Raw]) -> Read[list[Any]]:
    """Every piece as it is, whatever it is. One that is no JSON that can be kept is left out and counted."""
    kept: list[Any] = []
    skipped = 0
    for piece in raw:
        try:
            kept.append(_decoded(piece, Any, "A piece"))
        except ps.Unparsable:
            skipped += 1
    return Read(kept, skipped)


def field(value: object, *names: str) -> Any:
    """What stands at the end of a path of names; None where the path breaks off."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def listed(value: object) -> list[Any]:
    """A list, also where a single thing was not put into one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _decoded(body: bytes | msgspec.Raw, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = error
    if not isinstance(reason, RecursionError) and (mended := _mended(bytes(body))) != body:
        try:
            return msgspec.json.decode(mended, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            reason = error
    raise ps.Unparsable(f"{what} cannot be read: {str(reason)[:200]}.", reason="bad_json") from reason


def _mended(body: bytes) -> bytes:
    """The same text without a mark at its start, halves of characters and bytes that are none."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").encode("utf-8", "replace")
    return _ESCAPE.sub(lambda escape: b"" if escape[1] else escape[0], text)
