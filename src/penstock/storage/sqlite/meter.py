"""What each SQL statement cost: rows written and pages exactly, rows read as an estimate that is never too low.

SQLite counts the steps a statement took, not the rows it read. The estimate is the largest number of rows that fits
the steps, the other counters and the statement's program (`cost.py`): for most statements that is the true number.
"""

from __future__ import annotations

import time
from operator import itemgetter
from threading import get_ident
from typing import Any

import apsw

from penstock.model.usage import Measure
from penstock.storage.sqlite.cost import Cost, Listing, Seen, cost_of, fingerprint

TEXTS_MAX = 512  # programs kept; a connection keeps as many prepared statements
UNTRACED_FROM = 16  # executions; for fewer, tracing each is cheaper than looking at the program once more
TOLD_MAX = 1_000  # events kept before they are added up
COUNTER_SECONDS = 10.0  # no processor takes 2**32 steps faster, and after these SQLite's counter starts again
ROWS_A_SECOND_MAX = 100_000_000  # no processor reads faster; asked only where a program changed as it was executed
ROWS_A_PAGE_MAX = 65_536 // 6  # the largest page by the least room a row takes; asked only where a table is counted
LOOK_SECONDS = 60.0  # how long a change of the schema may go unnoticed, should SQLite not tell
CLOCK_SECONDS = 1.0  # how old a reading of the processor's clock may be; one costs a microsecond

_COUNTER_SIZE = 2**32
_COUNTERS = itemgetter(
    "SQLITE_STMTSTATUS_REPREPARE",
    "SQLITE_STMTSTATUS_VM_STEP",
    "SQLITE_STMTSTATUS_FULLSCAN_STEP",
    "SQLITE_STMTSTATUS_AUTOINDEX",
    "SQLITE_STMTSTATUS_FILTER_MISS",
    "SQLITE_STMTSTATUS_FILTER_HIT",
)
_NO_VALUES: Any = apsw._null_bindings  # type: ignore[attr-defined]  # what apsw itself lists programs with
_TABLE_AT = "select tbl_name from ?.sqlite_schema where rootpage = :root"
_ROWS_IN = "select count(*) from ?.?"

Told = tuple[int, ...]  # runs, and what `_COUNTERS` takes out of an event


class Meter:
    """Measures one connection. A text that is measured may not also run unmeasured on it.

    It turns on SQLite's plan stability (QPSG): a plan then depends on the text and the schema, not on the values bound
    to it, or each execution might have a program of its own. After a `pragma` or a change of the schema on this very
    connection call `forget`; changes by other connections are noticed.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._connection = connection
        self._costs: dict[str, tuple[int, Cost]] = {}
        self._schema = 0  # goes up whenever programs may have changed
        self._prepared = 0
        self._look_at = 0.0
        self._clock = (0.0, 0, 0.0)
        self._told: dict[str, list[Told]] = {}
        self._untraced: tuple[int, Cost] | None = None
        self._snapshot = False

    def begin(self, sql: str, *, executions: int | None = None) -> None:
        """Starts to measure. Say how many executions there will be, and those that are cheap anyway are not traced."""
        self._let_go()
        self._untraced = None
        if executions is not None and executions >= UNTRACED_FROM and (cost := self._cost(sql)) and cost.bounded:
            self._untraced = executions, cost
            self._connection.trace_v2(0, None, id=self)
        else:
            if not self._connection.in_transaction:
                self._hold(sql)
            self._told = {}
            self._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note, id=self)
        self._began = time.perf_counter()
        if self._began > self._clock[0] or self._clock[1] != get_ident():
            self._clock = (self._began + CLOCK_SECONDS, get_ident(), time.thread_time())
            if self._began > self._look_at:
                self._look_at = self._began + LOOK_SECONDS
                self.forget()
        self._changes = self._connection.total_changes()
        self._pages = self._pages_read()

    def end(self, sql: str, *, rows: int | None = None) -> Measure:
        """What all executions since `begin` cost together. They have to be finished or closed by now.

        `rows` is how many rows they returned, given only if each of them ran to its end: the estimate is tighter then.
        Executions that were not traced have 0 steps.
        """
        pages = (self._pages_read() - self._pages) % _COUNTER_SIZE
        changes = self._connection.total_changes() - self._changes
        seconds = time.perf_counter() - self._began
        if self._untraced is not None:
            executions, cost = self._untraced
            read = self._read_untraced(sql, cost, Seen(executions, rows, changes), seconds)
            return Measure(sql, executions, read, changes, pages, 0, seconds)
        self._connection.trace_v2(0, None, id=self)
        executions = steps = read = 0
        alone = len(self._told) == 1
        for text, events in self._told.items():
            if text != sql and text not in sql:
                continue  # it ran inside a function or a virtual table
            told = events[0] if len(events) == 1 else _sum(events)
            executions += told[0]
            taken = told[2] % _COUNTER_SIZE
            if seconds > COUNTER_SECONDS and (lost := self._steps_lost()):
                taken += lost
                read += taken
            else:
                read += self._read(text, told, taken, rows if alone else None, changes if alone else None, pages)
            steps += taken
        self._let_go()
        return Measure(sql, executions, read, changes, pages, steps, seconds)

    def forget(self) -> None:
        """Has every program looked at again before its next estimate."""
        self._schema += 1

    def _note(self, event: dict[str, Any]) -> None:
        """Takes down what SQLite tells at the end of each execution."""
        events = self._told.setdefault(event["sql"], [])
        events.append((1, *_COUNTERS(event["stmt_status"])))
        if len(events) >= TOLD_MAX:
            events[:] = [_sum(events)]

    def _pages_read(self) -> int:
        status = self._connection.status
        return status(apsw.SQLITE_DBSTATUS_CACHE_HIT)[0] + status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]

    def _steps_lost(self) -> int:
        """Steps that may be missing because the counter started again."""
        return int((time.thread_time() - self._clock[2]) / COUNTER_SECONDS) * _COUNTER_SIZE

    def _read(self, text: str, told: Told, steps: int, rows: int | None, changes: int | None, pages: int) -> int:
        """The most rows that were read; where the program cannot be read, every step counts as a row."""
        runs, compiled, _, scanned, indexed, passed, stopped = told
        cost = self._cost(text, compiled_again=compiled > 0)
        if cost is None:
            return steps + pages * ROWS_A_PAGE_MAX
        most = cost.most((runs, rows, changes, steps, scanned, indexed, passed, stopped))
        # A statement that met a changed schema was compiled again; the steps of its first attempts were counted too.
        for attempt in range(1, 1 + compiled * (1 + cost.transactions)):
            other = cost.most((runs, rows, changes, steps - attempt, scanned, indexed, passed, stopped))
            most = max(filter(None, (most, other)), default=None)
        if most is None:
            return steps + (pages * ROWS_A_PAGE_MAX if cost.counts_tables else 0)
        return most.visits + (self._counted(cost, most.counted, changes, pages) if most.counted else 0)

    def _read_untraced(self, sql: str, cost: Cost, seen: Seen, seconds: float) -> int:
        listing = self._listed(sql)
        most = cost.most(seen) or cost.most(Seen(seen.runs))
        if listing is None or fingerprint(listing) != cost.fingerprint or most is None:
            return int(seconds * ROWS_A_SECOND_MAX)
        return most.visits

    def _cost(self, text: str, *, compiled_again: bool = False) -> Cost | None:
        """What is known about the program. It is looked at again whenever SQLite compiled anything in between."""
        prepared = self._connection.cache_stats()["misses"]
        if prepared != self._prepared or compiled_again:
            self._prepared = prepared
            self._schema += 1
        schema, cost = self._costs.get(text, (-1, None))
        if schema == self._schema:
            return cost
        listing = self._listed(text)
        if listing is None:
            return None
        if cost is None or cost.fingerprint != fingerprint(listing):
            cost = cost_of(tuple(listing))
            if len(self._costs) >= TEXTS_MAX:
                del self._costs[next(iter(self._costs))]
        self._costs[text] = self._schema, cost
        return cost

    def _listed(self, text: str) -> Listing | None:
        """The program as it would be compiled now: from the schema in memory, which the last execution found current."""
        self._prepared += 1
        try:
            return self._connection.execute(text, _NO_VALUES, explain=1, can_cache=False).fetchall()
        except apsw.Error:
            return None

    def _hold(self, sql: str) -> None:
        """A table that is counted whole is counted again at the end, and nobody may change it until then."""
        cost = self._costs[sql][1] if sql in self._costs else self._cost(sql)
        if cost is not None and cost.tables_counted and cost.only_reads:
            try:
                self._connection.execute("begin")
                self._snapshot = True
            except apsw.Error:
                pass  # the estimate will be further off

    def _let_go(self) -> None:
        if self._snapshot:
            self._snapshot = False
            self._connection.execute("commit")

    def _counted(self, cost: Cost, times: int, changes: int | None, pages: int) -> int:
        """No fewer rows than there were in the tables that were counted whole."""
        if self._connection.in_transaction and changes is not None and cost.tables_counted and not cost.hides_deletes:
            try:
                return times * (max(self._size(*table) for table in cost.tables_counted) + changes)
            except apsw.Error:
                pass  # one of them is gone
        return pages * ROWS_A_PAGE_MAX

    def _size(self, database_number: int, root_page: int) -> int:
        database = self._connection.db_names()[database_number]
        table = self._connection.execute(_named(_TABLE_AT, database), (root_page,)).get
        return int(self._connection.execute(_named(_ROWS_IN, database, table or "sqlite_schema")).get)


def _sum(events: list[Told]) -> Told:
    return tuple(map(sum, zip(*events, strict=True)))


def _named(sql: str, *names: str) -> str:
    """The text with names in it, which SQL takes no parameters for. They come from the schema and are quoted."""
    for name in names:
        sql = sql.replace("?", '"' + name.replace('"', '""') + '"', 1)
    return sql
