"""Takes secrets out of what is shown or stored: by the name of a field, and by the places in text where they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "[redacted]"

_WORDS = (
    r"passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|"
    r"credential|cookie|signature"
)
_NAME = re.compile(rf"(?:^|_)(?:{_WORDS})s?(?:_|$)|password")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IN_TEXT = re.compile(
    rf"""
      (?P<header> \b(?:proxy-|set-)?(?:authorization|cookie)\s{{0,2}}:\s{{0,2}})[^\r\n]+
    | (?P<url>    \b[a-z][a-z0-9+.-]{{1,20}}://[^\s/:@]{{0,200}}:)[^\s/]{{1,500}}(?=@)
    | (?P<scheme> \b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{{8,}}
    | (?P<pair>   \b[\w.-]{{0,40}}(?:{_WORDS})[\w.-]{{0,10}}["']?\s{{0,2}}
                  (?:=\s{{0,2}}["']?|:\s{{0,2}}["']?(?=[^\s"'&;,]{{6}})))
                  [^\s"'&;,<>(){{}}\[\]]{{1,500}}
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Every secret in text stands beside one of these. Most text has none, and looking for them takes a thirtieth of the time.
_MARKS = (
    *("passw", "passphrase", "pwd", "secret", "token", "key", "authorization", "credential", "cookie", "signature"),
    *("://", "bearer", "basic"),
)
_DEPTH_MAX = 6  # what lies deeper is left out


def is_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret, which does not belong in a log."""
    words = re.sub(r"[-.\s]+", "_", _CAMEL.sub("_", name)).lower()
    return _NAME.search(words) is not None


def redacted(text: str) -> str:
    """The text without passwords in URLs, credentials in headers, and `key=value` pairs whose key tells a secret."""
    if text.isascii():  # elsewhere a letter can have more than two cases
        lower = text.lower()
        if not any(mark in lower for mark in _MARKS):
            return text
    return _IN_TEXT.sub(_kept, text)


def address_shown(address: str) -> str:
    """Where a database is, without the password: everything before the last @ of a URL may be one."""
    scheme, found, rest = address.partition("://")
    host = rest.rpartition("@")[2]
    user = rest.removesuffix(host).partition(":")[0].removesuffix("@")
    named = f"{user}@" if user else ""
    return redacted(f"{scheme}://{named}{host}") if found else address


def without_secrets(value: object, *, depth: int = 0) -> object:
    """The same for plain values of any shape. A number is no secret: `prompt_tokens` stays."""
    match value:
        case str():
            return redacted(value)
        case Mapping() | list() | tuple() | set() | frozenset() if depth >= _DEPTH_MAX:
            return "..."
        case Mapping():
            return {
                str(name): HIDDEN
                if isinstance(each, str | bytes | Mapping | list | tuple) and is_secret(str(name))
                else without_secrets(each, depth=depth + 1)
                for name, each in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [without_secrets(each, depth=depth + 1) for each in value]
        case _:
            return value


def _kept(found: re.Match[str]) -> str:
    return (found["header"] or found["url"] or found["scheme"] or found["pair"]) + HIDDEN
