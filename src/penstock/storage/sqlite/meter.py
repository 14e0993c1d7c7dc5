"""What each SQL statement cost: rows written and pages exactly, rows read as an estimate that is never too low.

SQLite counts the steps a statement took, not the rows it read. The estimate is the most rows that fit the steps, the
rows returned and the loops of the statement (`loops.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import apsw

from penstock.model.usage import Measure
from penstock.storage.sqlite.loops import Loops

TEXTS_MAX = 512  # whose loops are kept; a connection keeps as many prepared statements
LINES_MAX = 500  # instructions; in a longer program every step counts as a row
COUNTER_SECONDS = 10.0  # no processor takes 2**32 steps faster, and then SQLite's counter starts again
ROWS_A_SECOND_MAX = 100_000_000  # no processor reads faster; used only where the schema changed during an execution
ROWS_A_PAGE_MAX = 65_536 // 6  # the largest page by the smallest row; used only where a table is counted whole

_COUNTER_SIZE = 2**32
_COUNTERS = itemgetter("SQLITE_STMTSTATUS_VM_STEP", "SQLITE_STMTSTATUS_FULLSCAN_STEP", "SQLITE_STMTSTATUS_AUTOINDEX")
_TABLE_AT = "select tbl_name from ?.sqlite_schema where rootpage = :root"
_ROWS_IN = "select count(*) from ?.?"

Values = Mapping[str, Any] | Sequence[Any] | None


class SqliteMeter:
    """Measures one connection.

    A statement whose executions visit a fixed number of rows, or exactly the rows they return, is not traced once this
    is known. Call `forget` after a change of the schema on this very connection; changes by others are noticed.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, Loops | None] = {}
        self._trusted: set[str] = set()  # texts that were looked at after an execution
        self._by_value: set[str] = set()  # texts that SQLite compiles again for the values bound to them
        self._uncounted: set[str] = set()  # texts with long programs in which no step counts a table whole
        self._version: object = None
        self._data = connection.data_version()
        self._snapshot = False

    def begin(self, sql: str, values: Values = None, *, executions: int = 1) -> None:
        """Start to measure the next `executions` of a text; `values` are those of the first."""
        connection = self._connection
        if self._snapshot:
            self._release()
        self._values = values
        self._executions = executions
        loops = self._known[sql] if sql in self._known and sql not in self._by_value else self._look(sql)
        self._traced = sql not in self._trusted or loops is None or (loops.fixed is None and loops.beside_rows is None)
        if self._traced:
            if loops is not None and loops.counted and loops.only_reads and not connection.in_transaction:
                self._hold()
            self._events: list[tuple[int, ...]] = []
            self._sql = sql
            self._processor = time.thread_time()
            connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note, id=self)
        self._changes = connection.total_changes()
        self._pages = self._pages_read()
        self._began = time.perf_counter()

    def end(self, sql: str, *, rows: int | None = None, rows_max: int | None = None) -> Measure:
        """What the executions since `begin` cost. They have ended or were closed.

        `rows` is the number of rows they returned, given only if each ran to its end. Otherwise `rows_max` is the most
        rows they can have returned.
        """
        connection = self._connection
        seconds = time.perf_counter() - self._began
        pages = (self._pages_read() - self._pages) % _COUNTER_SIZE
        changes = connection.total_changes() - self._changes
        if not self._traced:
            read = self._untraced(sql, rows, rows_max, seconds)
            return Measure(sql, self._executions, read, changes, pages, 0, seconds)
        connection.trace_v2(0, None, id=self)
        runs = len(self._events)
        steps, scanned, indexed = self._events[0] if runs == 1 else _sum(self._events)
        lost = 0
        if seconds > COUNTER_SECONDS:
            lost = int((time.thread_time() - self._processor) / COUNTER_SECONDS) * _COUNTER_SIZE
        if self._changed() or sql not in self._trusted:
            self._look(sql)
        loops = self._known[sql]
        if sql not in self._by_value:
            self._trusted.add(sql)
        if loops is None or (sql in self._by_value and runs > 1):  # each execution may have had a program of its own
            counts = loops.counts if loops is not None else sql not in self._uncounted
            read = steps + (pages * ROWS_A_PAGE_MAX if counts else 0)
        else:
            read = loops.most(runs, steps, scanned + indexed, rows)
            if loops.counts:
                times = min(runs * loops.counts, read) if loops.counts_once else read
                read += times * (max(self._counted(loops, changes, pages), 1) - 1)
        if self._snapshot:
            self._release()
        return Measure(sql, runs, read + lost, changes, pages, steps + lost, seconds)

    def forget(self) -> None:
        """Look at every program again before its next estimate."""
        self._known.clear()
        self._trusted.clear()
        self._by_value.clear()
        self._uncounted.clear()

    def _note(self, event: dict[str, Any]) -> None:
        if event["sql"] == self._sql or event["sql"] in self._sql:  # else it ran inside a function or a virtual table
            self._events.append(_COUNTERS(event["stmt_status"]))

    def _pages_read(self) -> int:
        status = self._connection.status
        return status(apsw.SQLITE_DBSTATUS_CACHE_HIT)[0] + status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]

    def _untraced(self, sql: str, rows: int | None, rows_max: int | None, seconds: float) -> int:
        loops = self._look(sql) if self._changed() else self._known[sql]
        returned = rows if rows is not None else None if rows_max is None else rows_max + self._executions
        if loops is not None and loops.fixed is not None and (returned is None or loops.beside_rows is None):
            return loops.fixed * self._executions
        if loops is None or loops.beside_rows is None or returned is None:
            return int(seconds * ROWS_A_SECOND_MAX)
        most = returned + loops.beside_rows * self._executions
        return most if loops.fixed is None else min(most, loops.fixed * self._executions)

    def _changed(self) -> bool:
        """Whether another connection changed the schema; asked only after it changed anything."""
        if self._version is not None and self._data == self._connection.data_version():
            return False
        self._data = self._connection.data_version()
        before = self._version
        try:
            self._version = self._connection.execute("pragma schema_version").get
        except apsw.Error:
            self._version = None  # it may have changed
        if self._version is not None and before in (None, self._version):
            return False
        self.forget()
        return True

    def _look(self, sql: str) -> Loops | None:
        """Count the loops of the program as SQLite would compile it now, for these values."""
        if len(self._known) >= TEXTS_MAX:
            self.forget()
        execute, compiled = self._connection.execute, list[int]()
        self._connection.trace_v2(
            apsw.SQLITE_TRACE_PROFILE,
            lambda event: compiled.append(event["stmt_status"]["SQLITE_STMTSTATUS_REPREPARE"]),
            id=self,
        )
        try:
            listing = execute(sql, self._values, explain=1, can_cache=False).fetchall()
            if self._values and listing:
                # Listing a plan compiles a statement once more; SQLite did it again for the values.
                execute(sql, self._values, explain=2, can_cache=False).fetchall()
                (self._by_value.add if compiled[-1] > 1 else self._by_value.discard)(sql)
        except (apsw.Error, TypeError):
            listing = []
        finally:
            self._connection.trace_v2(0, None, id=self)
        self._known[sql] = loops = Loops(listing) if 0 < len(listing) <= LINES_MAX else None
        if loops is None and listing and all(line[1] != "Count" for line in listing):
            self._uncounted.add(sql)
        return loops

    def _hold(self) -> None:
        """Keep other connections from changing a table that will be counted again at the end."""
        try:
            self._connection.execute("begin")
            self._snapshot = True
        except apsw.Error:
            pass  # the estimate will be further off

    def _release(self) -> None:
        self._snapshot = False
        self._connection.execute("commit")

    def _counted(self, loops: Loops, changes: int, pages: int) -> int:
        """No fewer rows than there were in the largest of the tables that were counted whole."""
        if self._connection.in_transaction:
            try:
                # A change may replace one row for each unique key, which SQLite does not count as a change.
                return max(self._size(*table) for table in loops.counted) + changes * loops.probes
            except apsw.Error:
                pass  # one of them is gone
        return pages * ROWS_A_PAGE_MAX

    def _size(self, database_number: int, root_page: int) -> int:
        database = self._connection.db_names()[database_number]
        table = self._connection.execute(_named(_TABLE_AT, database), (root_page,)).get
        return int(self._connection.execute(_named(_ROWS_IN, database, table or "sqlite_schema")).get)


def _sum(events: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip((0,) * 3, *events, strict=True)))


def _named(sql: str, *names: str) -> str:
    """The text with names in it, which SQL takes no parameters for. They come from the schema and are quoted."""
    for name in names:
        sql = sql.replace("?", '"' + name.replace('"', '""') + '"', 1)
    return sql
