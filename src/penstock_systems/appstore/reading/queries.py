"""The SQL of every reading, by name: one text for both databases, bounded by `:most`, with an index behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Protocol

FILES = ("apps.sql", "markets.sql", "opportunities.sql", "people.sql", "counting.sql")
MOST = 20  # rows that are shown unless somebody wants more
MOST_MAX = 10_000  # what one read may bring into memory

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*$\n?", re.MULTILINE)


class Reading(Protocol):
    """Whatever can run a query: the app's own database, or one that is only looked at."""

    async def rows(self, sql: str, given: object = None, /, **named: Any) -> list[Any]: ...
    async def count(self, table: str, /) -> int: ...


def _loaded() -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for file in FILES:
        parts = _NAME.split((files(__package__) / file).read_text("utf-8"))[1:]
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            assert name not in texts, f"two statements are named {name}"
            texts[name] = _COMMENT.sub("", body).strip().rstrip(";")
    return texts


SQL: Mapping[str, str] = _loaded()


async def ask(reading: Reading, name: str, **named: Any) -> list[dict[str, Any]]:
    """The rows of one reading, as dictionaries."""
    return [row.asdict() for row in await reading.rows(SQL[name], **named)]


async def ask_one(reading: Reading, name: str, **named: Any) -> dict[str, Any] | None:
    return next(iter(await ask(reading, name, **named)), None)
