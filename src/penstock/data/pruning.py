"""Removes old rows in small portions, each its own commit, so that nobody waits long for a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.data.old import Old, key_columns, refuse_other_units
from penstock.model.errors import BadParameter, BadStatement, StatementFailed
from penstock.runtime.unit import open_unit

if TYPE_CHECKING:
    from penstock.data.database import Database
    from penstock.runtime.engine import Engine

PORTION_MAX = 10_000  # rows in one commit: others wait for it


async def prune(database: Database, engine: Engine, rows: Old, *, key: str | Sequence[str] | None, chunk: int) -> int:
    if not 1 <= chunk <= PORTION_MAX:
        raise BadParameter(f"chunk={chunk} is not possible: 1 to {PORTION_MAX:,} rows a commit.", chunk=chunk)
    own_id = "rowid" if engine.store.dialect == "sqlite" else "ctid"
    sql = _delete(rows, [own_id] if key is None else key_columns(key))
    await refuse_other_units(database, rows)
    removed = 0
    while True:
        try:
            async with open_unit(engine, None):
                portion = database.write(sql, {**rows.bounds, "chunk": chunk})
        except StatementFailed as error:
            if key is None and own_id in str(error.facts.get("cause")):
                raise BadStatement(
                    f"{rows.table} has no {own_id} to find rows by. Name its key: `key='id'`.", table=rows.table
                ) from error
            raise
        removed += portion.changes
        if portion.changes < chunk:
            return removed


def _delete(rows: Old, keys: Sequence[str]) -> str:
    names = ", ".join(keys)
    return (
        f"delete from {rows.table} where ({names}) in "
        f"(select {names} from {rows.table} where {rows.condition} limit :chunk)"
    )
