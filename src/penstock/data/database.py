"""The user's database: reads that see committed data, writes that join the current unit of work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.contracts.ledger import Atomic, Transaction, Write, WriteMany
from penstock.data.pages import pages
from penstock.model.errors import TooManyRows
from penstock.model.limits import Limits
from penstock.model.parameters import Json, bind, size_of
from penstock.model.row import Row, row_type
from penstock.model.statement import one_line, readable, writable
from penstock.model.times import text_of_micros
from penstock.model.upsert import upsert
from penstock.runtime.unit import caller, current_unit, joined

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

ROWS_MAX = 10_000  # what one read may bring into memory; `pages` reads more, a page at a time


class Home(Protocol):
    """The app a database belongs to."""

    @property
    def limits(self) -> Limits: ...
    async def opened(self) -> Engine: ...


class Database:
    """One SQLite file or PostgreSQL database, shared with the engine. Parameters are always `:name`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    # -- reads ------------------------------------------------------------------------------------------

    async def rows(self, sql: str, given: object = None, /, **named: object) -> list[Row]:
        """All rows, at most 10,000. They see committed data, not what the current unit is about to write."""
        statement = readable(sql)
        bound = bind(statement, given, named)
        engine = await self._home.opened()
        unit = current_unit.get()
        found = await engine.read("" if unit is None else unit.task, sql, bound, rows_max=ROWS_MAX)
        if len(found.values) > ROWS_MAX:
            raise TooManyRows(
                f"The query gave more than {ROWS_MAX:,} rows: {one_line(sql)}. Read it with `db.pages`, or add a LIMIT.",
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

    def pages(
        self, sql: str, given: Mapping[str, object] | None = None, /, *, key: str, size: int = 1_000, **named: object
    ) -> AsyncIterator[list[Row]]:
        """Reads any number of rows a page at a time, by key: `where id > :after order by id limit :size`."""
        return pages(self, sql, {**(given or {}), **named}, key=key, size=size)

    # -- writes that join the unit ------------------------------------------------------------------------

    def write(self, sql: str, given: object = None, /, *, expect: int | None = None, **named: object) -> Write:
        """Joins the current unit. With `expect=1` the unit fails unless exactly one row was changed."""
        unit = joined(self._home)
        bound = bind(writable(sql), given, named)
        call = Write(unit, sql, bound, expect, caller())
        unit.add(call, len(sql) + size_of(bound))
        return call

    def write_many(self, sql: str, rows: Iterable[object], /) -> WriteMany:
        """One statement for many rows. Joins the current unit as one call."""
        unit = joined(self._home)
        statement = writable(sql)
        bound = [bind(statement, row, {}) for row in rows]
        call = WriteMany(unit, sql, bound, caller())
        unit.add(call, len(sql) + sum(map(size_of, bound)))
        return call

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
        return self.write_many(
            upsert(table, columns, key, keep=keep), [{name: each.get(name) for name in columns} for each in rows]
        )

    def atomically(self, function: Callable[[Transaction], object], /) -> Atomic:
        """Runs a short synchronous function inside the commit, where it sees what nobody else can change. It may run
        more than once, so it must not do anything but read and write through what it is given."""
        unit = joined(self._home)
        call = Atomic(unit, function, caller())
        unit.add(call, 0)
        return call

    # -- values -------------------------------------------------------------------------------------------

    def json(self, value: object) -> Json:
        """Binds any plain value as JSON text; query it with `json_extract`."""
        return Json.of(value)

    async def now(self) -> str:
        """The current time in the one stored format, `YYYY-MM-DD HH:MM:SS` in UTC."""
        return text_of_micros((await self._home.opened()).clock.now())
