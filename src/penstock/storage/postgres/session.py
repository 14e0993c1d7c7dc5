"""The writer's connection with all that belongs to it: its lock, its statements, and its way back after a loss. Lives in
one thread."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from penstock.contracts.audit import Audit
from penstock.contracts.ledger import Calls, ClaimRequest, NotCommitted
from penstock.model.errors import StoreUnavailable
from penstock.model.message import PRIORITIES, NewMessage
from penstock.model.queue import QueueSettings
from penstock.model.usage import Measure
from penstock.storage.audit import audited
from penstock.storage.postgres.connection import (
    CONFLICTS,
    ENGINE_PLANS,
    Numbers,
    PostgresSettings,
    connect,
    failed,
    first_line,
    is_lost,
    statements,
    translated,
    understand_numbers,
)
from penstock.storage.postgres.floors import Floors
from penstock.storage.postgres.meter import PostgresMeter
from penstock.storage.postgres.users import run_calls
from penstock.storage.session import Bound

T = TypeVar("T")

TRIES = 30  # of a transaction that others get in the way of
PATIENCE_SECONDS = 60.0  # how long a server may be away before the process gives up
AGAIN_SECONDS = 0.1  # between two tries to reach it
LOCK_SECONDS = 20.0  # longer than a process holds the lock of another, unless it is stopped in the middle
NOTHING: dict[str, Any] = {}
TYPES = {  # of the columns of rows that are copied
    "sends.send": "bytea text int8 int8 text text bytea bytea int8 int8 int8 int8 bytea int8 int8".split(),
    "sends.note_seen": "bytea text text text int8".split(),
    "workflow_runs.create": "bytea text text text bytea int8 bytea bytea text int8".split(),
    "workflow_runs.add_step": "bytea int8 text text text int8 int8 int8 int8 bytea text text".split(),
}
_place = itemgetter(20, 21)
_order = itemgetter(20, 21, 0)  # what is due at one moment, as it was sent


class Conflict(Exception):
    """Another transaction was faster: this one is rolled back and can be run again."""


class PostgresSession:
    numbers_last = True

    def __init__(self, settings: PostgresSettings, started_in: Callable[[int], list[int] | None]) -> None:
        self.settings = settings
        self.worker = 0
        self.audit: Audit | None = None
        self.guarded: dict[str, QueueSettings] = {}
        self.departed: set[int] = set()  # workers that were found dead, and whose rows are not released
        self.came_back: Callable[[], None] | None = None
        self.cut_off: Callable[[bool], object] = lambda away: None
        self._started_in = started_in
        self._sql = statements()
        self._inside = False  # of a transaction
        self._to_begin: str | None = None  # the way a transaction is to begin, as long as nothing was sent of it
        self._last: list[tuple[str, Bound]] = []  # what is to be run before the commit, and with it
        self._noted = 0  # the number of the last transaction that was not a group's
        self._floors = Floors()
        self._backends: list[int] = []  # the server's processes behind our connections, the last one and any before it
        self._connect()

    def _connect(self) -> None:
        self.connection = connect(self.settings, options=ENGINE_PLANS)
        understand_numbers(self.connection)
        self.cursor = self.connection.cursor(binary=True)
        self.meter = PostgresMeter(self.connection) if self.settings.metered else None
        self._backends.append(self.connection.info.backend_pid)

    # -- statements ---------------------------------------------------------------------------------------

    def rows(self, statement: str, bound: Bound | None = None) -> list[Any]:
        return self._run(statement, bound).fetchall()

    def value(self, statement: str, bound: Bound | None = None) -> Any:
        row = self._run(statement, bound).fetchone()
        return None if row is None else row[0]

    def change(self, statement: str, bound: Bound | None = None) -> int:
        return self._run(statement, bound).rowcount

    def _run(self, statement: str, bound: Bound | None) -> psycopg.Cursor[tuple[Any, ...]]:
        if self._inside:
            if self._to_begin is not None and not bound:
                return self._begin_with(self._sql[statement])
            return self._ready().execute(self._sql[statement], bound or NOTHING)
        # Outside of a transaction only questions are put.
        return self.surely(lambda: self.cursor.execute(self._sql[statement], bound or NOTHING))

    def surely(self, work: Callable[[], T]) -> T:
        """Does again what was lost, or what others got in the way of. It must do no harm to have it done twice."""
        for _ in range(TRIES):
            self.ensure()
            try:
                return work()
            except CONFLICTS:
                continue
            except psycopg.Error as error:
                if not is_lost(self.connection, error):
                    with translated(self.settings):
                        raise
                    raise failed(self.settings, error) from error
                self.reopen()
        raise StoreUnavailable(f"{self.settings.shown}: {TRIES} conflicts with other transactions in a row.")

    def change_many(self, statement: str, bounds: Sequence[Bound]) -> None:
        if bounds:
            self._ready().executemany(self._sql[statement], bounds)

    def change_last(self, statement: str, bound: Bound) -> None:
        self._last.append((self._sql[statement], bound))

    def note_number(self, number: int, now: int) -> None:
        self.change_last("ledger.note_number", {"number": number, "worker": self.worker, "now": now})

    def numbers(self, numbers: list[int]) -> Any:
        return Numbers(numbers)

    def insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
        try:
            with self._ready().copy(self._sql[f"{statement}_many"]) as copy:
                copy.set_types(TYPES[statement])
                for row in rows:
                    copy.write_row(row)
        except errors.UniqueViolation:
            return 0
        return len(rows)

    def insert_messages(self, rows: Sequence[NewMessage]) -> int:
        self._floors.sent(rows)
        if len(rows) == 1:
            return self.change("sends.send", rows[0]._asdict())
        return self.insert("sends.send", rows)

    def send_alone(self, row: NewMessage, now: int) -> int | None:
        """Insert one message in a transaction of its own, in one way to the server. Return the number that it was given;
        None where it was there already. A lost answer is read back."""
        self._floors.sent([row])
        self._noted = noted = self._noted - 1  # on its way back this process may note something else
        added = {"worker": self.worker, "bytes": len(row.body), "number": noted, "now": now}
        try:
            number: int | None = self._ask("sends.send_alone", row._asdict() | added)
        except psycopg.Error as error:
            if not is_lost(self.connection, error):
                raise
            if self.reopen() != noted:
                raise NotCommitted(f"The connection was lost ({first_line(error)}); nothing was saved.") from error
            return 0
        return number

    def take(
        self, request: ClaimRequest, limit: int, priorities: Sequence[int], *, holder: int, number: int, now: int
    ) -> list[Any]:
        lease_end = now + request.lease_micros
        bound = {
            "priorities": priorities,
            "queue": request.queue,
            "now": now,
            "limit": limit,
            "number": number,
            "worker": holder,
            "lease_end": lease_end,
        }
        floors = self._floors.of(request.queue, now)
        began = time.perf_counter()
        rows = self._take(bound, floors)
        self._floors.looked(
            request.queue,
            [(priorities[place - 1], due) for place, due in map(_place, rows)],
            everything=not floors,
            dry=len(rows) < limit,
            now=now,
            lease_end=lease_end,
            seconds=time.perf_counter() - began,
        )
        return [row[:20] for row in rows]

    def _take(self, bound: dict[str, Any], floors: dict[int, int]) -> list[Any]:
        priorities = bound["priorities"]
        arrays = {
            "priorities": Numbers(priorities),
            "floors": Numbers([floors.get(priority, 0) for priority in priorities]),
        }
        rows = self.rows("claims.take", bound | arrays)
        rows.sort(key=_order)
        return rows

    def next_due(self, queue: str, now: int) -> int | None:
        looked = self._floors.after(queue, now)
        if looked is None:
            due: int | None = self.value("claims.next_due", {"queue": queue})
            return due
        floors, again = looked
        bound = {"queue": queue, "priorities": Numbers(PRIORITIES), "floors": Numbers(floors)}
        return min(again, self.value("claims.next_due_above", bound) or again)

    def next_lapse(self, *, surely: bool) -> int | None:
        lapse = None if surely else self._floors.lapse_known()
        if lapse is None:
            lapse = self.value("claims.next_lapse")
            self._floors.lapse_is(lapse)
        return lapse

    def run_calls(self, calls: Calls, measures: list[tuple[str, Measure]]) -> list[Any]:
        return run_calls(self, calls, measures)

    def lock_queue(self, queue: str) -> None:
        self.rows("claims.lock_queue", {"queue": queue})

    def try_lock_queue(self, queue: str) -> bool:
        return bool(self.value("claims.try_lock_queue", {"queue": queue}))

    def enrolled(self, worker: int) -> None:
        self.rows("workers.hold_lock", {"worker": worker})

    def stays_away(self, worker: int) -> bool:
        return worker not in self.departed or bool(self.value("workers.keep_away", {"worker": worker}))

    def started_in(self, worker: int) -> list[int] | None:
        return self._started_in(worker)

    # -- transactions -------------------------------------------------------------------------------------

    def begin(self, *, serializable: bool = False, with_first: bool = False) -> None:
        """With `with_first` it is sent together with the first statement, which must be a named one."""
        self._inside = True
        self._to_begin = "begin isolation level serializable" if serializable else "begin"
        self._floors.begin()
        if not with_first:
            self._ready()

    def _ready(self) -> psycopg.Cursor[tuple[Any, ...]]:
        """The cursor, inside a transaction that the server knows of, with everything run that came before."""
        begin, self._to_begin = self._to_begin, None
        if begin is not None:
            self.connection.execute(begin.encode())
        last, self._last = self._last, []
        for statement, bound in last:
            self.cursor.execute(statement, bound)
        return self.cursor

    def _begin_with(self, statement: str) -> psycopg.Cursor[tuple[Any, ...]]:
        """One way to the server instead of two. It is not prepared: only single statements are."""
        begin, self._to_begin = self._to_begin or "", None
        cursor = self.connection.execute("; ".join((begin, statement)).encode(), prepare=False)
        cursor.nextset()
        return cursor

    def commit(self) -> None:
        if self._to_begin is None:
            self._commit()
        self._to_begin = None
        self._inside = False

    def _commit(self) -> None:
        if not self._last:
            self.connection.execute("commit")
            return
        last, self._last = self._last, []
        # One way to the server for all of it. The first that fails raises, and nothing after it is run.
        with self.connection.pipeline():
            for statement, bound in last:
                self.cursor.execute(statement, bound)
            self.connection.execute("commit")

    def rollback(self) -> None:
        self._inside = False
        self._to_begin = None
        self._last = []
        self._floors.rolled_back()
        if not self.connection.closed and self.connection.info.transaction_status:
            try:
                self.connection.execute("rollback")
            except psycopg.Error:
                self.connection.close()

    def transact(self, work: Callable[[], T]) -> T:
        """Run again where another transaction was faster, or the connection was lost and nothing was saved."""
        work = audited(self, work)
        for tried in range(TRIES):
            try:
                return self._transact(work)
            except Conflict:
                time.sleep(0.001 * tried)
        raise StoreUnavailable(f"{self.settings.shown}: {TRIES} conflicts in a row; nothing was saved.")

    def _transact(self, work: Callable[[], T]) -> T:
        self.ensure()
        number: int | None = None
        try:
            self.begin()
            result = work()
            number = self._note_changes()
            self.commit()
            return result
        except psycopg.Error as error:
            self.rollback()
            if isinstance(error, CONFLICTS):
                raise Conflict from error
            if is_lost(self.connection, error):
                saved = self.reopen()
                if number is not None and saved == number:
                    return result  # an error at commit may still be a commit
                raise Conflict from error
            with translated(self.settings):
                raise
            raise failed(self.settings, error) from error
        except BaseException:
            self.rollback()
            raise

    def _note_changes(self) -> int | None:
        """By which `reopen` tells whether this transaction was committed; None for a process that has no row yet. Groups
        have numbers above zero. These are below it and not drawn from the server: to others a new number there is news."""
        if not self.worker:
            return None
        self._noted -= 1
        self.change_last("ledger.note_changes", {"number": self._noted, "worker": self.worker})
        return self._noted

    # -- the way back -------------------------------------------------------------------------------------

    def ensure(self) -> None:
        if self.connection.closed:
            self.reopen()

    def reopen(self) -> int | None:
        """A fresh connection, as soon as there is a server. What the old one had begun is over by then: the number of the
        last transaction that this process has noted and committed tells how it ended."""
        self._inside = False
        self._to_begin = None
        self._last = []
        self._floors.rolled_back()
        ends = time.perf_counter() + PATIENCE_SECONDS
        number: int | None = None
        is_read = False
        self.cut_off(True)
        self.connection.close()
        while True:
            try:
                self._connect()
                if self.worker:
                    self._take_lock_again()
                    if not is_read:  # once, before anything else is noted in its place
                        number, is_read = self._ask("ledger.read_number", {"worker": self.worker}), True
                    self._enrol_again()
                self.cut_off(False)
                return number
            except BaseException as error:
                self.connection.close()  # the next caller comes here again: that it is back is not reported yet
                if time.perf_counter() > ends or not isinstance(error, StoreUnavailable | psycopg.Error):
                    raise
                time.sleep(AGAIN_SECONDS)

    def _take_lock_again(self) -> None:
        """The server may still believe in the old connection, and in its lock: that one is ended. A process that has taken
        this one for dead and is releasing its rows is waited for."""
        me = {"worker": self.worker}
        ends = time.perf_counter() + LOCK_SECONDS
        while not self._ask("workers.try_lock", me):
            if time.perf_counter() > ends:
                raise StoreUnavailable(f"{self.settings.shown}: another connection locks worker {self.worker}.")
            self._ask("workers.end_old_connection", me | {"old": self._backends[:-1]})
            time.sleep(AGAIN_SECONDS / 10)
        self._backends = self._backends[-1:]

    def _enrol_again(self) -> None:
        me = {"worker": self.worker, "host": socket.gethostname(), "pid": os.getpid()}
        enrolled = me | {"now": self._ask("upkeep.server_time")}
        if self._ask("workers.enrol_again", enrolled) and self.came_back is not None:
            self.came_back()

    def _ask(self, statement: str, bound: Bound | None = None) -> Any:
        """On the way back itself, where a loss is not made good."""
        row = self.cursor.execute(self._sql[statement], bound or NOTHING).fetchone()
        return None if row is None else row[0]

    def close(self) -> None:
        self.connection.close()
