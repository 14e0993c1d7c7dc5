"""Keyset pages: any number of rows with bounded memory, and no row skipped or read twice while others write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from penstock.model.errors import BadStatement
from penstock.model.row import Row
from penstock.model.statement import readable

if TYPE_CHECKING:
    from penstock.data.database import Database

PAGE_ROWS_MAX = 10_000


async def pages(
    database: Database, sql: str, named: dict[str, Any], *, key: str, size: int
) -> AsyncIterator[list[Row]]:
    """The query says `where <key> > :after order by <key> limit :size`; `after` starts at what the caller gave, or below
    every number."""
    if not {"after", "size"} <= set(readable(sql).names):
        raise BadStatement(
            f"A paged query needs `where {key} > :after order by {key} limit :size`, so that each page goes on where the "
            "last one ended.",
            sql=sql,
        )
    if not 1 <= size <= PAGE_ROWS_MAX:
        raise BadStatement(f"A page of {size} rows is not possible: 1 to {PAGE_ROWS_MAX:,}.", size=size)
    after = named.pop("after", -(2**63))
    while page := await database.rows(sql, {**named, "after": after, "size": size}):
        yield page
        after = page[-1][key]
        if len(page) < size:
            return
