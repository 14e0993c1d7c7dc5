"""The user's database: reads that see committed data, writes that join the current unit of work."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.contracts.effects import Atomic, Line, Transaction, Write, WriteMany
from penstock.contracts.store import PROBE
from penstock.data import archive, counts, inserts
from penstock.data.old import Old, TimeUnit, key_columns, old, refuse_other_units
from penstock.data.usage import MonthUsage, month_usage
from penstock.data.usage import size as size_now
from penstock.model.errors import BadParameter, BadStatement, StatementFailed, TooManyRows
from penstock.model.forecast import Forecast
from penstock.model.parameters import Json, bind, bind_sized
from penstock.model.row import Row, row_type
from penstock.model.statement import one_line, readable, writable
from penstock.model.times import older_than as text_before
from penstock.model.times import text_of_micros
from penstock.model.upsert import quoted, upsert
from penstock.runtime.unit import caller, current_unit, open_unit, require_unit

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.blobs.folder import BlobFolder
    from penstock.runtime.engine import Engine

ROWS_MAX = 10_000  # what one read may bring into memory; `pages` reads more, a page at a time
PAGE_ROWS_MAX = 10_000
PORTION_MAX = 10_000  # rows in one commit: others wait for it
_LIMIT = re.compile(r"\blimit\s+(\d+|:\w+)\s*;?\s*$", re.IGNORECASE)
_WHERE = re.compile(r"\b(where|order\s+by|group\s+by|distinct)\b", re.IGNORECASE)
_EXPLAIN = {"sqlite": "explain query plan ", "postgres": "explain (costs off) "}
_WALKS = {
    "sqlite": re.compile(r"^(SCAN (?!.*USING (COVERING )?INDEX)|USE TEMP B-TREE|.*AUTOMATIC)"),
    "postgres": re.compile(r"^[ >-]*((Parallel )?Seq Scan|(Incremental )?Sort|Hash ?Aggregate|Group|Unique)"),
}


class Database:
    """One SQLite file or PostgreSQL database, shared with the engine. Parameters are always `:name`."""

    def __init__(self, home: App) -> None:
        self._home = home
        self.counts_kept: list[str] = []
        self.hot_queries: list[tuple[str, str, int]] = []  # each with the file and the line that say so
        self._probes = Probes(self)

    # -- reads ------------------------------------------------------------------------------------------

    async def rows(self, sql: str, given: object = None, /, **named: object) -> list[Row]:
        """All rows, at most 10,000. They see committed data, not what the current unit is about to write."""
        limits = self._home.limits
        bound = bind(readable(sql, limits), given, named, row_bytes_max=limits.row_bytes_max)
        engine = await self._home._opened()
        unit = current_unit.get()
        found = await engine.read("" if unit is None else unit.task, sql, bound, rows_max=ROWS_MAX)
        if len(found.values) > ROWS_MAX:
            raise TooManyRows(
                f"The query returned more than {ROWS_MAX:,} rows: {one_line(sql)}. Read it with `db.pages`, or add a LIMIT.",
                sql=sql,
                rows_max=ROWS_MAX,
            )
        made = row_type(found.columns)
        return [made(value) for value in found.values]

    async def first(self, sql: str, given: object = None, /, **named: object) -> Row | None:
        """The first row, or None. Say `limit 1`: the database does not know that you want only one."""
        found = await self.rows(sql, given, **named)
        return found[0] if found else None

    async def value(self, sql: str, given: object = None, /, **named: object) -> Any:
        """The first column of the first row, or None."""
        found = await self.rows(sql, given, **named)
        return found[0][0] if found else None

    async def column(self, sql: str, given: object = None, /, **named: object) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in await self.rows(sql, given, **named)]

    async def exists(self, sql: str, given: object = None, /, **named: object) -> bool:
        """Whether there is such a row: `exists("select 1 from apps where rank = 1 limit 1")`. Refused unless its plan
        shows that it reads no more rows than it returns."""
        return await self._probes.exists(sql, given, named)

    async def more_than(self, most: int, sql: str, given: object = None, /, **named: object) -> bool:
        """Return whether there are more than `most` such rows. At most one more than that is counted."""
        return await self._probes.more_than(most, sql, given, named)

    def pages(
        self, sql: str, given: Mapping[str, object] | None = None, /, *, key: str, size: int = 1_000, **named: object
    ) -> AsyncIterator[list[Row]]:
        """Reads any number of rows a page at a time, by key: `where id > :after order by id limit :size`."""
        return _pages(self, sql, {**(given or {}), **named}, key=key, size=size)

    # -- writes that join the unit ------------------------------------------------------------------------

    def write(self, sql: str, given: object = None, /, *, expect: int | None = None, **named: object) -> Write:
        """Joins the current unit. With `expect=1` the unit fails unless exactly one row was changed."""
        unit = require_unit(self._home)
        limits = self._home.limits
        bound, size = bind_sized(writable(sql, limits), given, named, row_bytes_max=limits.row_bytes_max)
        call = Write(unit, sql, bound, expect, caller())
        unit.add_call(call, len(sql) + size)
        return call

    def write_many(self, sql: str, rows: Iterable[object], /) -> WriteMany:
        """One statement for many rows. Joins the current unit as one call."""
        return self._write_many(sql, rows, caller())

    def _write_many(self, sql: str, rows: Iterable[object], line: Line) -> WriteMany:
        unit = require_unit(self._home)
        limits = self._home.limits
        statement = writable(sql, limits)
        sized = [bind_sized(statement, row, {}, row_bytes_max=limits.row_bytes_max) for row in rows]
        call = WriteMany(unit, sql, [bound for bound, _ in sized], line)
        unit.add_call(call, len(sql) + sum(size for _, size in sized))
        return call

    def insert_many(self, table: str, rows: Iterable[Mapping[str, object]], /) -> inserts.Inserted:
        """Inserts rows, many to a statement, and leaves those alone that are there already. Rows may have different
        columns. `.changes` of what comes back says how many were new."""
        unit = require_unit(self._home)
        return inserts.insert_many(unit, self._home.limits, table, list(rows), line=caller())

    def upsert(
        self,
        table: str,
        row: Mapping[str, object] | Iterable[Mapping[str, object]],
        /,
        *,
        key: str | Sequence[str],
        keep: Sequence[str] = (),
    ) -> WriteMany:
        """Inserts rows, or fills in what is new about them. None never replaces a value that is there; columns in
        `keep` are written only once. Rows may have different columns."""
        rows = [row] if isinstance(row, Mapping) else list(row)
        columns = list(dict.fromkeys(name for each in rows for name in each))
        whole = (each if len(each) == len(columns) else {name: each.get(name) for name in columns} for each in rows)
        return self._write_many(upsert(table, columns, key, keep=keep), whole, caller())

    def atomically(self, function: Callable[[Transaction], object], /) -> Atomic:
        """Runs a short synchronous function inside the commit, where no other process can change what it reads. It may run
        more than once, so it must not do anything but read and write through what it is given."""
        unit = require_unit(self._home)
        call = Atomic(unit, function, caller())
        unit.add_call(call, 0)
        return call

    # -- upkeep for months --------------------------------------------------------------------------------

    async def prune(
        self,
        table: str,
        /,
        *,
        column: str,
        older_than: str | float | timedelta,
        unit: TimeUnit = "text",
        key: str | Sequence[str] | None = None,
        chunk: int = 1_000,
    ) -> int:
        """Deletes the rows whose time lies longer back than `older_than` ("90d"), in portions that are commits of their
        own, and says how many. `unit` is how the column keeps its times; an index on it makes this cheap."""
        engine = await self._home._opened()
        rows = old(table, column, older_than, unit, now=engine.clock.now())
        return await _prune(self, engine, rows, key=key, chunk=chunk)

    async def archive(
        self,
        table: str,
        /,
        *,
        column: str,
        older_than: str | float | timedelta,
        key: str | Sequence[str],
        into: BlobFolder | str | Path,
        unit: TimeUnit = "text",
        chunk: int = 500,
    ) -> int:
        """Moves old rows into JSON lines in a folder of blobs, and says how many. A row is deleted only once it is on the
        disk, and only if it has not changed since. After a crash the next run continues where this one stopped."""
        engine = await self._home._opened()
        rows = old(table, column, older_than, unit, now=engine.clock.now())
        folder = self._home.blobs(into) if isinstance(into, str | Path) else into
        return await archive.archive(self, engine, rows, key=key, into=folder, chunk=chunk)

    def keep_count(self, table: str, /) -> None:
        """From now on the table's count is kept by triggers, so that `count` reads one row. Say it where the app is put
        together; the table is counted once, when the app is opened."""
        quoted(table)
        if table not in self.counts_kept:
            self.counts_kept.append(table)

    def hot(self, sql: str, /) -> str:
        """Says of a statement that it runs all day, and gives it back: `PENDING = db.hot("select ...")`. `penstock check`
        sees to it that it goes by an index, without reading a table through and without sorting."""
        line = sys._getframe(1)
        self.hot_queries.append((sql, line.f_code.co_filename, line.f_lineno))
        return sql

    async def count(self, table: str, /) -> int:
        """How many rows the table has: any number where the count is kept, else at most 10,000."""
        return await counts.count(self, await self._home._opened(), table, self.counts_kept)

    async def size(self) -> Forecast:
        """How large the database is, how fast it grows, and when it reaches its cap if it has one."""
        engine = await self._home._opened()
        now = engine.clock.now()
        size_bytes = await engine.in_writer(engine.writer.upkeep.size_bytes)
        return await size_now(self, size_bytes, cap_bytes=self._home.limits.database_bytes_max, now=now)

    async def usage(self, month: str | None = None) -> MonthUsage:
        """What a month has used so far, by task and by statement, and the bill for it. `month` is like "2026-11"."""
        engine = await self._home._opened()
        await engine.meter.flush()
        return await month_usage(self, month, now=engine.clock.now())

    # -- values -------------------------------------------------------------------------------------------

    async def dialect(self) -> str:
        """The database that statements are written for here: sqlite or postgres."""
        return (await self._home._opened()).store.dialect

    def json(self, value: object) -> Json:
        """Binds any plain value as JSON text; query it with `json_extract`."""
        return Json.of(value)

    async def now(self) -> str:
        """The current time in the one stored format, `YYYY-MM-DD HH:MM:SS` in UTC."""
        return text_of_micros((await self._home._opened()).clock.now())

    async def ago(self, span: str | float | timedelta) -> str:
        """The time so long ago, in the stored format: `where seen_at is null or seen_at < :stale` with `await
        db.ago("14d")` finds what is stale or was never seen."""
        return text_before(span, now=(await self._home._opened()).clock.now())


async def _pages(
    database: Database, sql: str, named: dict[str, Any], *, key: str, size: int
) -> AsyncIterator[list[Row]]:
    """The query says `where <key> > :after order by <key> limit :size`; `after` starts at what the caller gave, or below
    every number."""
    if not {"after", "size"} <= set(readable(sql).names):
        raise BadStatement(
            f"A paged query needs `where {key} > :after order by {key} limit :size`, so that each page starts after the "
            "previous one.",
            sql=sql,
        )
    if not 1 <= size <= PAGE_ROWS_MAX:
        raise BadStatement(f"size is {size}; a page has 1 to {PAGE_ROWS_MAX:,} rows.", size=size)
    after = named.pop("after", -(2**63))
    while page := await database.rows(sql, {**named, "after": after, "size": size}):
        yield page
        after = page[-1][key]
        if len(page) < size:
            return


async def _prune(database: Database, engine: Engine, rows: Old, *, key: str | Sequence[str] | None, chunk: int) -> int:
    if not 1 <= chunk <= PORTION_MAX:
        raise BadParameter(f"chunk is {chunk}; a commit has 1 to {PORTION_MAX:,} rows.", chunk=chunk)
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
                    f"{rows.table} has no {own_id} to identify rows by. Name its key: `key='id'`.", table=rows.table
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


class Probes:
    """Knows which texts were proven."""

    def __init__(self, reading: Database) -> None:
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
                    f"This probe reads more than the rows it returns ({walks[0]}): {one_line(sql)}. Add an index; a "
                    "partial index with the same condition stays small.",
                    sql=sql,
                )
        self._proven.add(sql)
