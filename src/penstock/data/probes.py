"""Probes: cheap looks that say whether there is work. Their price is proven from the plan before they first run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from penstock.contracts.store import PROBE
from penstock.model.errors import BadStatement
from penstock.model.row import Row
from penstock.model.statement import one_line, readable

_LIMIT = re.compile(r"\blimit\s+(\d+|:\w+)\s*;?\s*$", re.IGNORECASE)
_WHERE = re.compile(r"\b(where|order\s+by|group\s+by|distinct)\b", re.IGNORECASE)
_EXPLAIN = {"sqlite": "explain query plan ", "postgres": "explain (costs off) "}
_WALKS = {
    "sqlite": re.compile(r"^(SCAN (?!.*USING (COVERING )?INDEX)|USE TEMP B-TREE|.*AUTOMATIC)"),
    "postgres": re.compile(r"^[ >-]*((Parallel )?Seq Scan|(Incremental )?Sort|Hash ?Aggregate|Group|Unique)"),
}


class Reading(Protocol):
    async def dialect(self) -> str: ...
    async def rows(self, sql: str, given: object = None, /, **named: object) -> list[Row]: ...


class Probes:
    """Knows which texts were proven."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._proven: set[str] = set()

    async def exists(self, sql: str, given: object, named: dict[str, object]) -> bool:
        await self._prove(sql, given, named)
        return bool(await self._reading.rows(PROBE + sql, given, **named))

    async def more_than(self, most: int, sql: str, given: object, named: dict[str, object]) -> bool:
        text = f"{sql.strip().rstrip(';')} limit :at_most"
        more = dict(given) if isinstance(given, Mapping) else {}
        bound = {**more, **named, "at_most": most + 1}
        await self._prove(text, bound, {})
        return len(await self._reading.rows(PROBE + text, bound)) > most

    async def _prove(self, sql: str, given: object, named: dict[str, object]) -> None:
        """A probe says how many rows it wants at most, and finds them through an index; a look at any row needs none."""
        if sql in self._proven:
            return
        readable(sql)
        if not _LIMIT.search(sql):
            raise BadStatement(f"A probe ends with `limit 1`: {one_line(sql)}", sql=sql)
        if _WHERE.search(sql):
            dialect = await self._reading.dialect()
            plan = await self._reading.rows(PROBE + _EXPLAIN[dialect] + sql, given, **named)
            walks = [step.strip(" ->") for row in plan if _WALKS[dialect].match(step := str(row[-1]))]
            if walks:
                raise BadStatement(
                    f"This probe reads more than the rows it returns ({walks[0]}): {one_line(sql)}. Give it an index; a "
                    "partial one with the same condition stays small.",
                    sql=sql,
                )
        self._proven.add(sql)
