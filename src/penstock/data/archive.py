"""Moves old rows to files: a row is deleted only after it is on the disk, and only if it has not changed since.

Each portion is first a file under `<table>/pending/`, then its rows are deleted, then it gets its place under `<table>/`.
A run begins with what an interrupted one left pending, so no row is in two portions and none is lost.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.contracts.effects import Bindable, Write
from penstock.data.old import Old, key_columns, refuse_other_units
from penstock.model.errors import BadParameter, StoreCorrupt
from penstock.model.parameters import size_of
from penstock.model.times import day_of
from penstock.model.upsert import quoted
from penstock.runtime.unit import caller, open_unit

if TYPE_CHECKING:
    from penstock.blobs.folder import BlobFolder
    from penstock.data.database import Database
    from penstock.runtime.engine import Engine

PORTION_MAX = 1_000  # rows in one file; they are held in memory
COMMIT_CALLS, COMMIT_BYTES = 500, 2_000_000  # half of what a unit may hold

Values = dict[str, Bindable]


async def archive(
    database: Database, engine: Engine, rows: Old, *, key: str | Sequence[str], into: BlobFolder, chunk: int
) -> int:
    if not 1 <= chunk <= PORTION_MAX:
        raise BadParameter(f"chunk is {chunk}; a file has 1 to {PORTION_MAX:,} rows.", chunk=chunk)
    keys = key_columns(key)
    await refuse_other_units(database, rows)
    moved = 0
    for pending in await into.list(f"{rows.table}/pending/"):
        moved += await _finish(engine, into, pending, rows, keys)
    while found := await database.rows(_select(rows, keys), {**rows.bounds, "chunk": chunk}):
        portion = [row.asdict() for row in found]
        _refuse_null_keys(rows, keys, portion)
        content = b"".join(msgspec.json.encode({n: _plain(v) for n, v in row.items()}) + b"\n" for row in portion)
        name = f"{day_of(engine.clock.now())}-{blake2b(content, digest_size=12).hexdigest()}.jsonl"
        await into.put(f"{rows.table}/pending/{name}", content)
        removed = await _finish(engine, into, f"{rows.table}/pending/{name}", rows, keys)
        moved += removed
        if len(found) < chunk or not removed:
            break
    return moved


async def _finish(engine: Engine, into: BlobFolder, pending: str, rows: Old, keys: Sequence[str]) -> int:
    """Deletes the rows that a pending file holds, then gives it its place. Doing it twice does no more."""
    content = await into.get(pending)
    if content is None:
        return 0  # another process has just finished it
    removed = 0
    for batch in _batches(_rows_in(content, pending)):
        async with open_unit(engine, None) as unit:
            calls = []
            for row in batch:
                sql, values = _delete_unchanged(rows, keys, row)
                calls.append(Write(unit, sql, values, None, caller()))
                unit.add_call(calls[-1], len(sql) + size_of(values))
        removed += sum(call.changes for call in calls)
    await into.put(pending.replace("/pending/", "/", 1), content)
    await into.delete(pending)
    return removed


def _batches(rows: Sequence[Values]) -> Iterator[list[Values]]:
    batch: list[Values] = []
    size = 0
    for row in rows:
        size += size_of(row)
        if batch and (len(batch) >= COMMIT_CALLS or size > COMMIT_BYTES):
            yield batch
            batch, size = [], size_of(row)
        batch.append(row)
    if batch:
        yield batch


def _select(rows: Old, keys: Sequence[str]) -> str:
    order = ", ".join(dict.fromkeys([rows.column, *keys]))
    return f"select * from {rows.table} where {rows.condition} order by {order} limit :chunk"


def _delete_unchanged(rows: Old, keys: Sequence[str], row: Values) -> tuple[str, Values]:
    conditions = [
        f"{quoted(column)} {'=' if quoted(column) in keys else 'is not distinct from'} :c{place}"
        for place, column in enumerate(row)
    ]
    values = {f"c{place}": value for place, value in enumerate(row.values())}
    return f"delete from {rows.table} where {' and '.join(conditions)}", values


def _refuse_null_keys(rows: Old, keys: Sequence[str], portion: Sequence[Mapping[str, Any]]) -> None:
    columns = {quoted(column): column for column in portion[0]}
    for name in keys:
        if name not in columns:
            raise BadParameter(f"{rows.table} has no column {name}. Its columns: {', '.join(columns)}.", key=name)
        if any(row[columns[name]] is None for row in portion):
            raise BadParameter(f"{rows.table}.{name} is NULL in some rows. A key must identify every row.", key=name)


# -- values as JSON and back ------------------------------------------------------------------------------


def _plain(value: object) -> object:
    """JSON has no bytes and no infinity: they travel in an object, which no column can hold otherwise."""
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, float) and math.isinf(value):
        return {"$float": str(value)}
    return value


def _rows_in(content: bytes, name: str) -> list[Values]:
    try:
        found = [msgspec.json.decode(line, type=dict[str, Any]) for line in content.splitlines()]
        return [{column: _restored(value) for column, value in row.items()} for row in found]
    except (msgspec.MsgspecError, ValueError, KeyError) as error:
        raise StoreCorrupt(f"The archive file {name} is damaged ({error}); no row was deleted.", path=name) from error


def _restored(value: Any) -> Bindable:
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]
    return b64decode(value["$bytes"]) if "$bytes" in value else float(value["$float"])
