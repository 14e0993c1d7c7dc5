"""JSON from outside, read with one verdict whatever the store: what is refused here is refused everywhere, at its position.

Refused beyond malformed text: nesting deeper than 64, NaN, infinities and what would round to one, integers beyond 64
bits, a key twice in one object, half a character (a lone surrogate), the character NUL, and what is not UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from math import isfinite
from typing import NoReturn

import msgspec

from penstock.model.errors import BadMessage

DEPTH_MAX = 64
INTEGER_LOWEST, INTEGER_HIGHEST = -(2**63), 2**64 - 1  # every language has a type for these
NUMBER_DIGITS_MAX = 400  # more than any number of 64 bits has, however it is written

# Nineteen digits may be beyond 64 bits; the slow reader tells a colon or a NUL that is written as an escape apart.
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_TELLING_ESCAPES = (b"\\u0000", b"\\u003a", b"\\u003A")
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_decode = msgspec.json.Decoder().decode
_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<rest>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"[-+.\w]+", re.ASCII)


class BadJson(BadMessage):
    """The text is no JSON that can be kept. Its `byte`, `line` and `column` say where, `reason` why."""


def parse(text: bytes, *, depth_max: int = DEPTH_MAX) -> object:
    """The value that the text stands for. Raises BadJson with the first position that is wrong."""
    try:
        value = _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read(text, depth_max)
    return value if _is_plain(text, value, depth_max) else _read(text, depth_max)


def _is_plain(text: bytes, value: object, depth_max: int) -> bool:
    """Whether the quick decoder has judged everything: it minds neither repeated keys, long integers, NUL nor depth.

    A repeated key is dropped, and with it at least its colon: the value written again then has fewer of them.
    """
    if any(escape in text for escape in _TELLING_ESCAPES) or _LONG_NUMBER in text.translate(_ONE_DIGIT):
        return False
    if text.count(b":") != msgspec.json.encode(value).count(b":"):
        return False
    return text.count(b"[") + text.count(b"{") <= depth_max or _nests_at_most(text, depth_max)


def _nests_at_most(text: bytes, depth_max: int) -> bool:
    """Of a text that is known to be JSON: takes the strings out, then the innermost pairs, as often as may be."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_ONE_KIND, _NO_MARKS).replace(b'""', b"")
    pairs = b"".join(marks.split(b'"')[::2])
    for _ in range(depth_max):
        pairs = pairs.replace(b"[]", b"")
    return not pairs


# -- the slow reader: it knows where it is --------------------------------------------------------------------


def _read(text: bytes, depth_max: int) -> object:
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        before = text[: error.start].decode()
        _refuse(before, len(before), "the byte here is not UTF-8")
    return _JsonReader(decoded, depth_max).whole()


def _refuse(text: str, at: int, reason: str) -> NoReturn:
    before = text[:at]
    byte = len(before.encode("utf-8", "surrogatepass"))
    line = before.count("\n") + 1
    column = at - (before.rfind("\n") + 1) + 1
    raise BadJson(
        f"The JSON is not valid at byte {byte} (line {line}, column {column}): {reason}.",
        byte=byte,
        line=line,
        column=column,
        reason=reason,
    )


class _JsonReader:
    """Reads one text from its beginning. It recurses at most `depth_max` levels deep."""

    def __init__(self, text: str, depth_max: int) -> None:
        self._text = text
        self._depth_max = depth_max
        self._at = 0

    def whole(self) -> object:
        value = self._value(self._depth_max)
        if self._next():
            self._fail("there is text after the value")
        return value

    def _members(self, closing: str) -> Iterator[None]:
        """Stop before each member of a container, until it ends."""
        found = "," if self._next() != closing else closing
        self._at += found == closing
        while found == ",":
            yield
            found = self._next()
            if found not in (",", closing):
                self._fail(f"a comma or {closing} is missing")
            self._at += 1

    def _key(self, container: dict[str, object]) -> str:
        if self._next() != '"':
            self._fail("a key in double quotes is missing")
        start = self._at
        key = self._string()
        if key in container:
            self._at = start
            shown = key if len(key) <= 100 else key[:100] + "..."
            self._fail(f"the key {json.dumps(shown)} is repeated")
        if self._next() != ":":
            self._fail("a colon is missing")
        self._at += 1
        return key

    def _value(self, depth: int) -> object:
        match self._next():
            case "[" | "{" if not depth:
                self._fail(f"it nests deeper than {self._depth_max} levels")
            case "[":
                self._at += 1
                return [self._value(depth - 1) for _ in self._members("]")]
            case "{":
                self._at += 1
                fields: dict[str, object] = {}
                for _ in self._members("}"):
                    key = self._key(fields)
                    fields[key] = self._value(depth - 1)
                return fields
            case '"':
                return self._string()
            case "":
                self._fail("it ends where a value should be" if self._text.strip() else "it is empty")
            case "\ufeff":
                self._fail("it begins with a byte order mark; remove it")
        found = _NUMBER.match(self._text, self._at)
        return self._word() if found is None else self._number(found)

    def _word(self) -> bool | None:
        found = _WORD.match(self._text, self._at)
        word = found.group() if found else ""
        if word not in _WORDS:
            if word.lstrip("+-").lower() in ("nan", "inf", "infinity"):
                self._fail(f"{word} is not a number in JSON")
            self._fail("a value is missing")
        self._at += len(word)
        return _WORDS[word]

    def _number(self, found: re.Match[str]) -> int | float:
        text = found.group()
        if len(text) > NUMBER_DIGITS_MAX and not found["rest"]:
            self._fail(f"an integer of {len(text.lstrip('-'))} digits does not fit into 64 bits; send it as a string")
        number = float(text) if found["rest"] else int(text)
        if not isfinite(number):
            self._fail("the number is too large to be stored")
        if isinstance(number, int) and not INTEGER_LOWEST <= number <= INTEGER_HIGHEST:
            self._fail(f"an integer of {len(text.lstrip('-'))} digits does not fit into 64 bits; send it as a string")
        self._at = found.end()
        return number

    def _string(self) -> str:
        start = self._at
        try:
            value, self._at = _scan_string(self._text, start + 1, True)
        except json.JSONDecodeError as error:
            self._at = min(error.pos, len(self._text))
            self._fail(_STRING_FAULTS.get(error.msg.partition(" at")[0], "the string is malformed"))
        if "\0" in value:
            self._at = start + self._text[start : self._at].find("\\u0000")
            self._fail("the character NUL (\\u0000) cannot be stored; remove it, or send bytes")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                self._at = start
                self._fail("the string contains a lone surrogate, which is half a character")
        return value

    def _next(self) -> str:
        """The next character that is no space; nothing at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return self._text[self._at : self._at + 1]

    def _fail(self, reason: str) -> NoReturn:
        _refuse(self._text, self._at, reason)


_STRING_FAULTS = {
    "Unterminated string starting": "the string that begins here does not end",
    "Invalid control character": "a string contains a control character; escape it",
    "Invalid \\escape": "there is no such escape",
    "Invalid \\escape: ": "there is no such escape",
    "Invalid \\uXXXX escape": "\\u needs four hexadecimal digits",
}
