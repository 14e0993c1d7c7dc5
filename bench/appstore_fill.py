"""Fills a database with what a pipeline knows of a whole store, in minutes.

    python -m bench.appstore_fill FOLDER '{"apps": 22000, "seed": 1, "database": "postgresql://..."}'

The app's own migrations make the tables, in a file or on a PostgreSQL server. Rows go in by large transactions; indexes are
taken off meanwhile and built at the end, as one does with so many rows, and nothing waits for the disk. A file has no
statistics for the planner; a server has them, as autovacuum gathers them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Protocol

import apsw
import psycopg
from psycopg import sql

from bench.appstore_process import given, tell
from bench.appstore_rows import COLUMNS, Calendar, Rows, Size, Values
from penstock.cli.output import Output, progress
from penstock.stores import is_postgres
from penstock.testing import TestApp, run
from penstock_systems.appstore.stages import app

FILE = "market.db"
ROWS_A_TRANSACTION = 50_000
PRAGMAS = ("journal_mode = wal", "synchronous = off", "cache_size = -524288")
CHARTS = "select id, priority from category_scans"
SCANNED = "update category_scans set scanned_at = {0}, apps_found = 200, next_scan_at = {0} where id = {0}"
INDEXES = "select name, sql, tbl_name from sqlite_schema where type = 'index' and sql is not null order by name"
SERVER_INDEXES = """
select indexname, indexdef, tablename
from pg_indexes
where schemaname = 'public'
and not exists (select 1 from pg_constraint where conname = indexname)
order by indexname
"""
SERVER_LOADS = ("synchronous_commit = off", "maintenance_work_mem = '1GB'")


class Loading(Protocol):
    """A database that takes many rows."""

    def execute(self, text: str) -> list[Values]: ...

    def change(self, text: str, rows: Iterable[Values]) -> None: ...

    def insert(self, table: str, columns: Iterable[str], rows: Iterable[Values]) -> None: ...

    def indexes(self) -> Iterable[Values]:
        """Name, statement and table of each index that may be taken off."""
        ...

    def end(self) -> int:
        """Returns the bytes of the database."""
        ...


class FileLoading:
    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        for pragma in PRAGMAS:
            connection.execute(f"pragma {pragma}")

    def execute(self, text: str) -> list[Values]:
        return list(self._connection.execute(text))

    def change(self, text: str, rows: Iterable[Values]) -> None:
        with self._connection:
            self._connection.executemany(text.format("?"), rows)

    def insert(self, table: str, columns: Iterable[str], rows: Iterable[Values]) -> None:
        names = list(columns)
        marks = ", ".join("?" for _ in names)
        self.change(f"insert into {table} ({', '.join(names)}) values ({marks})", rows)

    def indexes(self) -> Iterable[Values]:
        return self.execute(INDEXES)

    def end(self) -> int:
        self.execute("pragma wal_checkpoint(truncate)")
        return self._path.stat().st_size


class ServerLoading:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        for setting in SERVER_LOADS:
            self.execute(f"set {setting}")

    def execute(self, text: str) -> list[Values]:
        found = self._connection.execute(text.encode())
        return found.fetchall() if found.description else []

    def change(self, text: str, rows: Iterable[Values]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(text.format("%s").encode(), rows)

    def insert(self, table: str, columns: Iterable[str], rows: Iterable[Values]) -> None:
        into = sql.SQL("copy {} ({}) from stdin").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._connection.cursor() as cursor, cursor.copy(into) as copied:
            for row in rows:
                # The pipeline takes these characters out of titles, and a server refuses them.
                copied.write_row([each.replace("\0", "") if isinstance(each, str) else each for each in row])

    def indexes(self) -> Iterable[Values]:
        return self.execute(SERVER_INDEXES)

    def end(self) -> int:
        self.execute("vacuum analyze")
        ((size,),) = self.execute("select pg_database_size(current_database())")
        assert isinstance(size, int)
        return size


@contextmanager
def loading(database: str) -> Iterator[Loading]:
    if is_postgres(database):
        with closing(psycopg.connect(database, autocommit=True)) as server:
            yield ServerLoading(server)
    else:
        with closing(apsw.Connection(database)) as connection:
            yield FileLoading(connection, Path(database))


async def migrated(database: str, start: datetime) -> None:
    """The app's tables, made on the day on which they will be used: its schedules begin then."""
    async with TestApp(app, start=start, database=database):
        pass


class Filler:
    def __init__(self, database: str, rows: Rows) -> None:
        self._database = database
        self._rows = rows
        self._moved: Callable[[int], object] = int
        self.done = self.bytes = 0
        self.tables: dict[str, int] = {}

    def fill(self, *, with_mentions: bool) -> None:
        run(lambda: migrated(self._database, self._rows.calendar.start))
        size = self._rows.size
        with loading(self._database) as store:
            indexes = {str(name): str(sql) for name, sql, table in store.indexes() if table in COLUMNS}
            for name in indexes:
                store.execute(f'drop index "{name}"')
            total = 2 * size.apps + size.keywords + size.rankings
            with progress(Output(), f"{size.apps:,} apps into a database", total) as self._moved:
                self._load(store, with_mentions)
            with progress(Output(), "indexes", len(indexes)) as moved:
                for number, sql in enumerate(indexes.values(), 1):
                    store.execute(sql)
                    moved(number)
            self.bytes = store.end()

    def _load(self, store: Loading, with_mentions: bool) -> None:
        rows = self._rows
        self._insert(store, "app_registry", rows.apps())
        self._insert(store, "developers", rows.developers())
        ranked = rows.ranked()
        self._insert(store, "crawl_keywords", rows.keywords(ranked))
        self._insert(store, "crawl_rankings", rows.rankings(ranked))
        if with_mentions:
            self._insert(store, "app_keyword_mentions", rows.mentions())
        self._insert(store, "crawl_state", rows.state())
        store.change(SCANNED, [rows.scan(id, priority) for id, priority in store.execute(CHARTS)])

    def _insert(self, store: Loading, table: str, rows: Iterable[Values]) -> None:
        waiting = iter(rows)
        self.tables[table] = 0
        while some := list(islice(waiting, ROWS_A_TRANSACTION)):
            store.insert(table, COLUMNS[table], some)
            self.done += len(some)
            self.tables[table] += len(some)
            self._moved(self.done)


def main() -> None:
    options = given()
    rows = Rows(Size(options["apps"]), options["seed"], Calendar(**options.get("calendar", {})))
    filler = Filler(options.get("database", FILE), rows)
    began = time.perf_counter()
    filler.fill(with_mentions=options.get("mentions", False))
    seconds = time.perf_counter() - began
    tell({"rows": filler.done, "seconds": seconds, "megabytes": filler.bytes / 1e6, "tables": filler.tables})


if __name__ == "__main__":
    main()
