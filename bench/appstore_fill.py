"""Fills a database with what a pipeline knows of a whole store, in minutes.

    python -m bench.appstore_fill FOLDER '{"apps": 22000, "seed": 1}'

The app's own migrations make the tables. Rows go in by large transactions; indexes are taken off meanwhile and built at the
end, as one does with so many rows, and nothing waits for the disk. The file has no statistics for the planner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path

import apsw

from bench.appstore_process import given, tell
from bench.appstore_rows import APP_COLUMNS, Calendar, Rows, Size, Values
from penstock.cli.output import Output, progress
from penstock.testing import TestApp, run
from penstock_systems.appstore.stages import app

FILE = "market.db"
ROWS_A_TRANSACTION = 50_000
PRAGMAS = ("journal_mode = wal", "synchronous = off", "cache_size = -524288")
LOADED = ("app_registry", "crawl_keywords", "crawl_rankings", "app_keyword_mentions")

APP = f"insert into app_registry ({', '.join(APP_COLUMNS)}) values ({', '.join('?' for _ in APP_COLUMNS)})"
DEVELOPER = """
insert into developers (developer_id, name, portfolio_at, first_seen_at)
values (?, ?, ?, ?)
on conflict (developer_id) do nothing
"""
KEYWORD = """
insert into crawl_keywords (
  keyword, source, status, demand, app_count, known_count, last_searched_at, next_search_at, created_at
)
values (?, 'search', 'searched', ?, ?, ?, ?, ?, ?)
"""
RANKING = "insert into crawl_rankings (keyword, track_id, rank, crawled_at) values (?, ?, ?, ?)"
MENTION = "insert into app_keyword_mentions (track_id, keyword, field, count) values (?, ?, ?, ?)"
STATE = "insert into crawl_state (name, value, updated_at) values (?, ?, ?)"
SCANNED = "update category_scans set scanned_at = ?, apps_found = 200, next_scan_at = ? where id = ?"
INDEXES = "select name, sql, tbl_name from sqlite_schema where type = 'index' and sql is not null order by name"


async def migrated(database: Path, start: datetime) -> None:
    """A new file with the app's tables, made on the day on which it will be used: its schedules begin then."""
    async with TestApp(app, start=start, database=str(database)):
        pass


class Filler:
    def __init__(self, database: Path, rows: Rows) -> None:
        self._database = database
        self._rows = rows
        self._moved: Callable[[int], object] = int
        self.done = 0
        self.tables: dict[str, int] = {}

    def fill(self, *, with_mentions: bool) -> None:
        run(lambda: migrated(self._database, self._rows.calendar.start))
        size = self._rows.size
        with closing(apsw.Connection(str(self._database))) as connection:
            for pragma in PRAGMAS:
                connection.execute(f"pragma {pragma}")
            found = ((str(name), str(sql), table) for name, sql, table in connection.execute(INDEXES))
            indexes = {name: sql for name, sql, table in found if table in LOADED}
            for name in indexes:
                connection.execute(f'drop index "{name}"')
            total = 2 * size.apps + size.keywords + size.rankings
            with progress(Output(), f"{size.apps:,} apps into a database", total) as self._moved:
                self._load(connection, with_mentions)
            with progress(Output(), "indexes", len(indexes)) as moved:
                for number, sql in enumerate(indexes.values(), 1):
                    connection.execute(sql)
                    moved(number)
            connection.execute("pragma wal_checkpoint(truncate)")

    def _load(self, connection: apsw.Connection, with_mentions: bool) -> None:
        rows = self._rows
        self._insert(connection, "app_registry", APP, rows.apps())
        self._insert(connection, "developers", DEVELOPER, rows.developers())
        ranked = rows.ranked()
        self._insert(connection, "crawl_keywords", KEYWORD, rows.keywords(ranked))
        self._insert(connection, "crawl_rankings", RANKING, rows.rankings(ranked))
        if with_mentions:
            self._insert(connection, "app_keyword_mentions", MENTION, rows.mentions())
        self._insert(connection, "crawl_state", STATE, rows.state())
        charts = list(connection.execute("select id, priority from category_scans"))
        self._insert(connection, "category_scans", SCANNED, [rows.scan(id, priority) for id, priority in charts])

    def _insert(self, connection: apsw.Connection, table: str, sql: str, rows: Iterable[Values]) -> None:
        waiting = iter(rows)
        while some := list(islice(waiting, ROWS_A_TRANSACTION)):
            with connection:
                connection.executemany(sql, some)
            self.done += len(some)
            self._moved(self.done)
        (self.tables[table],) = next(connection.execute(f'select count(*) from "{table}"'))


def main() -> None:
    options = given()
    filler = Filler(Path(FILE), Rows(Size(options["apps"]), options["seed"], Calendar(**options.get("calendar", {}))))
    began = time.perf_counter()
    filler.fill(with_mentions=options.get("mentions", False))
    seconds = time.perf_counter() - began
    megabytes = Path(FILE).stat().st_size / 1e6
    tell({"rows": filler.done, "seconds": seconds, "megabytes": megabytes, "tables": filler.tables})


if __name__ == "__main__":
    main()
