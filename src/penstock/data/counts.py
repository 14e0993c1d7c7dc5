"""Counts that cost one row: kept by triggers inside the transactions that change a table, or bounded."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from penstock.model.errors import TooManyRows
from penstock.model.sql_files import load
from penstock.model.upsert import quoted

if TYPE_CHECKING:
    from penstock.data.database import Database
    from penstock.runtime.engine import Engine

COUNTED_MAX = 10_000  # beyond this a count is kept, not counted: one scan a minute would cost more than the work itself

KEPT = load("penstock.data", "data.sql")["kept_count"]


async def count(database: Database, engine: Engine, table: str, kept: Collection[str]) -> int:
    checked = quoted(table)
    total: Any = await database.value(KEPT, name=table)
    if total is None and table in kept:
        await engine.in_writer(engine.writer.upkeep.keep_counts, [table])
        total = await database.value(KEPT, name=table)
    if total is None:
        total = await database.value(_bounded(checked), most=COUNTED_MAX + 1)
        if total > COUNTED_MAX:
            raise TooManyRows(
                f"{table} has more than {COUNTED_MAX:,} rows, and a count would read all of them. Call "
                f"`db.keep_count({table!r})` where the app is defined; a count then reads one row.",
                table=table,
                rows_max=COUNTED_MAX,
            )
    return int(total)


def _bounded(checked: str) -> str:
    return f"select count(*) from (select 1 from {checked} limit :most) as counted"


def all_of(table: str) -> str:
    """Count the rows one by one: for a single look at a table without a kept count."""
    return f"select count(*) from {quoted(table)}"
