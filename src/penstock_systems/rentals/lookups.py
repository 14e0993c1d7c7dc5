"""Reads the rows of many keys with few statements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from penstock_systems.rentals.app import db

KEYS_A_STATEMENT = 40  # a database may take 100 parameters
PARTS_A_STATEMENT = 10
_ALL = "select *"
_NAME = re.compile(r"(?<!:):(\w+)")


async def rows_of(sql: str, keys: Sequence[str]) -> list[Any]:
    """Return the rows of a statement that has `:keys` where a list of keys belongs, each of which finds a row or two."""
    found: list[Any] = []
    statement = _with_keys(sql)
    for start in range(0, len(keys), KEYS_A_STATEMENT):
        part = keys[start : start + KEYS_A_STATEMENT]
        padded = [*part, *[None] * (KEYS_A_STATEMENT - len(part))]
        found += await db.rows(statement, {f"key_{n}": key for n, key in enumerate(padded)})
    return found


async def rows_of_each(sql: str, given: Sequence[Mapping[str, object]], *, parts: int = PARTS_A_STATEMENT) -> list[Any]:
    """Return the rows that a statement with a limit of its own finds for each of these parameters."""
    found: list[Any] = []
    statement = _repeated(sql, parts)
    for start in range(0, len(given), parts):
        bound = {
            f"{name}_{n}": value for n, each in enumerate(given[start : start + parts]) for name, value in each.items()
        }
        left = range(len(given) - start, parts)
        # A comparison with NULL finds no row.
        found += await db.rows(statement, bound | {f"{name}_{n}": None for n in left for name in given[0]})
    return found


@cache
def _with_keys(sql: str) -> str:
    return sql.replace(":keys", ", ".join(f":key_{n}" for n in range(KEYS_A_STATEMENT)))


@cache
def _repeated(sql: str, parts: int) -> str:
    """The statement once for each part, with numbered names: `:home_0`, `:home_1` and so on."""
    numbered = (_NAME.sub(rf":\1_{n}", sql) for n in range(parts))
    return "\nunion all\n".join(f"{_ALL} from ({each}) as part_{n}" for n, each in enumerate(numbered))
