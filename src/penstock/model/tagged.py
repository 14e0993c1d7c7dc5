"""Values as tagged binary, for content type `v8`: times, bytes and sets come back as what they were.

MessagePack with one tag for each kind of value that it does not know, behind two bytes that no other format begins with.
Reading makes plain values and nothing else: no class is looked up, no code is run, and nothing is set aside for a length
that the data only claims.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

import msgspec

from penstock.model.errors import BadMessage

MARK = b"\xc1\x01"  # a byte that MessagePack never uses, and the version of the tags
DEPTH_MAX = 64
INTEGER_BYTES_MAX = 1_024  # of a number beyond 64 bits

DATETIME, DATE, SET, FROZEN_SET, UUID_TAG, DECIMAL, INTEGER = range(1, 8)

_Ext = msgspec.msgpack.Ext
_pack = msgspec.msgpack.Encoder().encode


class BadTagged(BadMessage):
    """The bytes are no tagged binary. Write them with `penstock.model.tagged.encode`."""


def encode(value: object) -> bytes:
    """None, booleans, numbers, text, bytes, times, dates, UUIDs, decimals, and lists, sets and dicts of these. A tuple
    becomes a list."""
    try:
        return MARK + _pack(_tagged(value, DEPTH_MAX))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadTagged(f"A {type(value).__qualname__} cannot be encoded as tagged binary: {error}.") from error


def decode(data: bytes) -> object:
    """The value that `encode` was given. Anything else is refused."""
    if not data.startswith(MARK):
        raise BadTagged("The bytes are not tagged binary: the mark at the beginning is missing.")
    return _unpacked(data[len(MARK) :], DEPTH_MAX)


# -- writing --------------------------------------------------------------------------------------------------


def _tagged(value: object, depth: int) -> object:
    if depth < 0:
        raise BadTagged(f"The value nests deeper than {DEPTH_MAX} levels.", depth_max=DEPTH_MAX)
    match value:
        case None | bool() | float() | str():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else _Ext(INTEGER, _integer(value))
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case datetime():
            return _Ext(DATETIME, value.isoformat().encode())
        case date():
            return _Ext(DATE, value.isoformat().encode())
        case UUID():
            return _Ext(UUID_TAG, value.bytes)
        case Decimal():
            return _Ext(DECIMAL, str(value).encode())
        case list() | tuple():
            return [_tagged(each, depth - 1) for each in value]
        case set() | frozenset():
            tag = SET if isinstance(value, set) else FROZEN_SET
            return _Ext(tag, _pack([_tagged(each, depth - 1) for each in value]))
        case dict():
            return {_key(name): _tagged(each, depth - 1) for name, each in value.items()}
    raise BadTagged(f"A {type(value).__qualname__} cannot be encoded as tagged binary. Send plain values.")


def _key(key: object) -> object:
    if isinstance(key, bool | int | float | str | bytes):
        return key
    raise BadTagged(f"A {type(key).__qualname__} cannot be a key in tagged binary. Use text or a number.")


def _integer(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    if size > INTEGER_BYTES_MAX:
        raise BadTagged(f"An integer of {size:,} bytes is too large; at most {INTEGER_BYTES_MAX:,} are taken.")
    return value.to_bytes(size, "big", signed=True)


# -- reading --------------------------------------------------------------------------------------------------


def _unpacked(data: bytes, depth: int) -> Any:
    _check_shape(data, depth)

    def value_of(tag: int, content: memoryview) -> object:
        return _untagged(tag, bytes(content), depth - 1)

    try:
        return msgspec.msgpack.decode(data, ext_hook=value_of)
    except BadTagged:
        raise
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, ArithmeticError, RecursionError) as error:
        raise BadTagged(f"The tagged binary cannot be read: {error}.") from error


def _untagged(tag: int, content: bytes, depth: int) -> object:
    if tag == DATETIME:
        return datetime.fromisoformat(content.decode())
    if tag == DATE:
        return date.fromisoformat(content.decode())
    if tag in (SET, FROZEN_SET):
        members = _unpacked(content, depth)
        if not isinstance(members, list):
            raise BadTagged("A set in tagged binary has no list of members.")
        return set(members) if tag == SET else frozenset(members)
    if tag == UUID_TAG:
        return UUID(bytes=content)
    if tag == DECIMAL:
        return Decimal(content.decode())
    if tag == INTEGER and 0 < len(content) <= INTEGER_BYTES_MAX:
        return int.from_bytes(content, "big", signed=True)
    raise BadTagged(f"The tagged binary holds a tag {tag} that does not exist, or is not used so.", tag=tag)


def _check_shape(data: bytes, depth: int) -> None:
    """Walks over every head before anything is made: a decoder would believe a list that claims a billion members."""
    open_counts = [1]
    at = 0
    while open_counts:
        if open_counts[-1] == 0:
            open_counts.pop()
            continue
        open_counts[-1] -= 1
        skipped, members = _head(data, at)
        at += skipped
        if at > len(data) or members > len(data) - at:
            _refuse(at, "it ends too early")
        if members:
            open_counts.append(members)
            if len(open_counts) - 1 > depth:
                _refuse(at, f"it nests deeper than {DEPTH_MAX} levels")
    if at != len(data):
        _refuse(at, "there is text after the value")


def _head(data: bytes, at: int) -> tuple[int, int]:
    """How many bytes one head and its own content take, and how many members follow."""
    if at >= len(data):
        _refuse(at, "it ends too early")
    first = data[at]
    if first <= 0x7F or first >= 0xE0 or first in (0xC0, 0xC2, 0xC3):
        return 1, 0
    if first <= 0x8F:
        return 1, 2 * (first & 0x0F)
    if first <= 0x9F:
        return 1, first & 0x0F
    if first <= 0xBF:
        return 1 + (first & 0x1F), 0
    if first in _FIXED:
        return 1 + _FIXED[first], 0
    if first in _SIZED:
        width, extra = _SIZED[first]
        return 1 + width + extra + int.from_bytes(data[at + 1 : at + 1 + width], "big"), 0
    if first not in _MEMBERS:
        _refuse(at, f"the byte {first:#x} is not used")
    width, each = _MEMBERS[first]
    return 1 + width, each * int.from_bytes(data[at + 1 : at + 1 + width], "big")


# What follows the first byte: numbers and short tags have a fixed size; text, bytes and tags tell it; so do containers.
_FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8} | {
    0xD4 + power: 1 + 2**power for power in range(5)
}
_BYTES = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0)}
_TAGS = {0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_TEXTS = {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
_SIZED = _BYTES | _TAGS | _TEXTS
_MEMBERS = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def _refuse(at: int, reason: str) -> NoReturn:
    raise BadTagged(f"The tagged binary is not valid at byte {at}: {reason}.", byte=at, reason=reason)
