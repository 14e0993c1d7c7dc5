"""What each SQL statement cost: rows written and pages exactly, rows read as an estimate that is never too low.

SQLite counts the steps a statement took, not the rows it read. The estimate is the largest number of rows that fits
the steps, the other counters and the statement's program (`cost.py`): for most statements that is the true number.
"""

from __future__ import annotations

import time
from threading import get_ident
from typing import Any

import apsw

from penstock.model.usage import Measure
from penstock.storage.sqlite.cost import Cost, Listing, Most, Seen

TEXTS_MAX = 512  # programs kept; a connection keeps as many prepared statements
UNTRACED_FROM = 16  # executions; for fewer, tracing each is cheaper than looking at the program again
STEPS_A_SECOND_MAX = 400_000_000  # no processor is faster; SQLite's counter starts again after 2**32 steps
ROWS_A_SECOND_MAX = 100_000_000  # no processor is faster; used only where the program changed under our eyes
CELL_BYTES_MIN = 6  # the least room a row takes in a page
CLOCK_SECONDS = 1.0  # how old a reading of the processor's clock may be: it costs as much as all the rest

_COUNTER_SIZE = 2**32
_NAMES = ("VM_STEP", "FULLSCAN_STEP", "AUTOINDEX", "FILTER_MISS", "FILTER_HIT", "REPREPARE")
_STEPS, _SCANNED, _INDEXED, _PASSED, _STOPPED, _COMPILED = (f"SQLITE_STMTSTATUS_{name}" for name in _NAMES)

# A table's name cannot be a parameter. It comes from the schema and is quoted.
_COUNT = "select count(*) from {database}.{table}"
_TABLE = "select tbl_name from {database}.sqlite_schema where rootpage = ?"


class Meter:
    """Measures one connection, in one thread. A text that is measured may not also run unmeasured.

    It turns on SQLite's plan stability (QPSG): a plan then depends on the text and the schema, not on the values bound
    to it, or every execution might have a program of its own. After a `pragma` or a change of the schema on this very
    connection call `forget`; changes by others are noticed.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._connection = connection
        self._costs: dict[str, tuple[int, Cost]] = {}
        self._schema = 0  # goes up whenever programs may have changed
        self._prepared = 0
        self._told: dict[str, list[int]] = {}
        self._untraced: tuple[int, Cost] | None = None
        self._clock = (0.0, 0, 0.0)

    def begin(self, sql: str, *, executions: int | None = None) -> None:
        """Starts to measure. Say how many executions there will be, and those that are cheap anyway are not traced."""
        self._told = {}
        self._untraced = self._without_trace(sql, executions) if executions and executions >= UNTRACED_FROM else None
        if self._untraced is None:
            self._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note, id=self)
        self._began = time.perf_counter()
        if self._began > self._clock[0] or self._clock[1] != get_ident():
            self._clock = (self._began + CLOCK_SECONDS, get_ident(), time.thread_time())
        self._changes = self._connection.total_changes()
        self._pages = self._pages_read()

    def end(self, sql: str, *, rows: int | None = None) -> Measure:
        """What all executions since `begin` cost together. They have to be finished or closed by now.

        `rows` is how many rows they returned, given only if each of them ran to its end: the estimate is tighter then.
        """
        pages = self._pages_read() - self._pages
        changes = self._connection.total_changes() - self._changes
        seconds = time.perf_counter() - self._began
        if self._untraced is not None:
            executions, cost = self._untraced
            read = self._read_untraced(sql, cost, Seen(executions, rows, changes), seconds)
            return Measure(sql, executions, read, changes, pages, 0, seconds)
        self._connection.trace_v2(0, None, id=self)
        # Other texts ran inside a virtual table or a function; they are not this one's.
        told = {text: counts for text, counts in self._told.items() if text == sql or text in sql}
        executions = steps = read = 0
        for text, counts in told.items():
            alone = len(self._told) == 1
            runs, stepped, scanned, indexed, passed, stopped, compiled = counts
            seen = Seen(runs, rows if alone else None, changes if alone else None, stepped, scanned, indexed, passed, stopped)
            stepped += self._lost_steps(seconds)
            read += stepped if stepped != seen.steps else self._read(text, seen, compiled, pages)
            executions += runs
            steps += stepped
        return Measure(sql, executions, read, changes, pages, steps, seconds)

    def forget(self) -> None:
        """Looks at every program again before the next estimate."""
        self._schema += 1

    def _note(self, event: dict[str, Any]) -> None:
        status = event["stmt_status"]
        text = event["sql"]
        if text not in self._told:
            self._told[text] = [0] * 7
        told = self._told[text]
        told[0] += 1
        told[1] += status[_STEPS] % _COUNTER_SIZE
        ...

    def _pages_read(self) -> int:
        status = self._connection.status
        return status(apsw.SQLITE_DBSTATUS_CACHE_HIT)[0] + status(apsw.SQLITE_DBSTATUS_CACHE_MISS)[0]
