"""Takes secrets out of what is shown or stored: by the name of a field, and by the places in text where they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "[redacted]"

_WORDS = r"pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credential|cookie|signature"
_SECRET_NAME = re.compile(rf"(?:^|[_\-.\s]|(?<=[a-z])(?=[A-Z]))?(?:{_WORDS})s?(?:$|[_\-.\s]|(?=[A-Z]))", re.IGNORECASE)
_IN_TEXT = re.compile(
    rf"""
      (?P<url>    \b[a-z][a-z0-9+.-]{{1,20}}://[^\s/:@]{{0,200}}:)[^\s/@]{{1,500}}(?=@)
    | (?P<scheme> \b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{{6,}}
    | (?P<pair>   \b[\w.-]{{0,40}}(?:{_WORDS})[\w.-]{{0,10}}["']?\s{{0,2}}[=:]\s{{0,2}}["']?)[^\s"'&;,<>(){{}}\[\]]{{1,500}}
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DEPTH_MAX = 6  # deeper values are shown as a word


def is_secret(name: str) -> bool:
    """Whether a field of this name holds something that nobody should read in a log."""
    return _SECRET_NAME.search(name) is not None


def redacted(text: str) -> str:
    """The text without passwords in URLs, bearer tokens and `key=value` pairs whose key tells a secret."""
    return _IN_TEXT.sub(_kept, text)


def without_secrets(value: object, *, depth: int = 0) -> object:
    """The same for plain values of any shape."""
    match value:
        case str():
            return redacted(value)
        case Mapping() if depth < _DEPTH_MAX:
            return {
                str(name): HIDDEN if is_secret(str(name)) else without_secrets(each, depth=depth + 1)
                for name, each in value.items()
            }
        case list() | tuple() | set() | frozenset() if depth < _DEPTH_MAX:
            return [without_secrets(each, depth=depth + 1) for each in value]
        case Mapping() | list() | tuple() | set() | frozenset():
            return "..."
        case _:
            return value


def _kept(found: re.Match[str]) -> str:
    return (found["url"] or found["scheme"] or found["pair"]) + HIDDEN
