"""Authorizes statements of the app and of HTTP clients, and limits their time, memory and lengths. SQLite enforces both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import pairwise
from math import isqrt
from threading import Event, Thread

import apsw

from penstock.contracts.effects import Bindable
from penstock.model.allowance import ENGINE_VIEWS, Allowance
from penstock.model.errors import StatementFailed, TooLarge
from penstock.model.statement import ENGINE_PREFIX, one_line, pieces
from penstock.storage.sqlite.connection import Values, query

LENGTH_MAX = 8_000_000  # bytes of one value or row that a client's statement may handle
WORK_BYTES_MAX = 256_000_000  # this length times the values a statement names: no interrupt can stop straight-line code
COMPARISONS_MAX = 2_000_000_000  # about a second: of functions whose time grows with the square of the length
LIKE_BYTES_MAX = 50  # of a pattern, as on D1: matching takes the text's length times this
LIKE_WEIGHT = 12  # values that one match counts as
ARGUMENTS_MAX = 32  # of a function, as on D1
MEMORY_MAX = 256_000_000  # that SQLite may allocate while a client's statement runs: for sorting, most of all
LOOK_SECONDS = 0.02  # between two checks of memory and time


def _codes(names: str) -> set[int]:
    return {getattr(apsw, f"SQLITE_{name}") for name in names.split()}


_PERMITTED = _codes("SELECT RECURSIVE REINDEX")
_FORBIDDEN = _codes("TRANSACTION SAVEPOINT ATTACH DETACH PRAGMA") | _codes(
    "CREATE_TEMP_INDEX CREATE_TEMP_TABLE CREATE_TEMP_TRIGGER CREATE_TEMP_VIEW"
)
_MODIFIES = _codes("INSERT UPDATE DELETE")
_REWRITES_SCHEMA = _codes("ALTER_TABLE DROP_TABLE DROP_INDEX DROP_VIEW")  # SQLite then reads and changes its own tables
_DEFINES = _codes("CREATE_TABLE CREATE_INDEX CREATE_VIEW") | _REWRITES_SCHEMA
_SCHEMA = {"sqlite_master", "sqlite_temp_master"}  # SQLite's own names; it never lets a statement write them directly
_INTERNALS = {"dbstat", "bytecode", "tables_used"}  # tables that show the file's pages or other statements' programs
_SLOW = {"instr": 1, "replace": 1, "trim": 10, "ltrim": 10, "rtrim": 10, "unhex": 10, "json_patch": 10}  # by comparison
_UNBOUNDED = ("load_extension", "fts3_tokenizer", "json_pretty", "geopoly_", "rtree")

_Decides = Callable[[int, str, str, str | None, str | None], bool]


def _permit(*_: object) -> bool:
    return True


class Guard:
    """The authorizer of one connection. SQLite calls it when it prepares a statement."""

    def __init__(self, connection: apsw.Connection, calls: str) -> None:
        """`calls` is a query for the most values that the definitions of a table let a statement compute."""
        self._connection = connection
        self._calls = calls
        self._decide: _Decides = _permit  # the engine's own statements
        self._begin()
        connection.authorizer = self

    def _begin(self) -> None:
        self.denied = ""  # what was refused last
        self.defined: set[int] = set()  # kinds of definitions in this statement
        self._asked = self._slow = 0
        self._behind_views: set[str] = set()
        self._tables: set[str] = set()  # that it reads or changes

    def __call__(
        self, operation: int, one: str | None, two: str | None, database: str | None, inside: str | None
    ) -> int:
        if self._decide(operation, (one or "").lower(), (two or "").lower(), database, inside and inside.lower()):
            return apsw.SQLITE_OK
        self.denied = one or two or ""
        return apsw.SQLITE_DENY

    def users(self) -> AbstractContextManager[None]:
        """Authorize the app's statements: they read everything and write what is not the engine's."""
        self._begin()
        return self._deciding(self._as_user)

    def ask(self, sql: str, bound: dict[str, Bindable], allowance: Allowance) -> tuple[tuple[str, ...], list[Values]]:
        """Run one statement of an HTTP client within its rights and its allowance."""
        size_max = max((len(value) for value in bound.values() if isinstance(value, str | bytes)), default=0) * 4
        length = LENGTH_MAX

        def prepared() -> None:
            nonlocal length
            length = self._bound_length(sql)

        try:
            timed = at_most(self._connection, allowance.seconds_max, sql, memory_max=MEMORY_MAX)
            with self._client(size_max), timed:
                collect = partial(allowance.collect, sql)
                return query(self._connection, sql, bound, can_cache=False, prepared=prepared, collect=collect)
        except apsw.AuthError as error:
            what = f"{self.denied or 'what it does'} is the engine's, or cannot be used over HTTP"
            raise StatementFailed(f"The database refused it: {error}, since {what}: {one_line(sql)}") from error
        except apsw.TooBigError as error:
            why = "Use fewer values in a statement, or avoid functions such as instr, replace and trim."
            raise TooLarge(f"A value or row has more than {length:,} bytes. {why}", bytes_max=length) from error

    @contextmanager
    def _client(self, size_max: int) -> Iterator[None]:
        """Authorize and limit a client's statement, which is prepared inside: one from the cache was authorized before."""
        limits = {
            apsw.SQLITE_LIMIT_LENGTH: max(isqrt(COMPARISONS_MAX), size_max),  # until the statement is known
            apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: LIKE_BYTES_MAX,
            apsw.SQLITE_LIMIT_FUNCTION_ARG: ARGUMENTS_MAX,
        }
        self._begin()
        before = {limit: self._connection.limit(limit, value) for limit, value in limits.items()}
        try:
            with self._deciding(self._as_client):
                yield
        finally:
            for limit, value in before.items():
                self._connection.limit(limit, value)

    def _bound_length(self, sql: str) -> int:
        """Limit values to a length at which no step of the prepared statement takes long, and return it."""
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, LENGTH_MAX)
        with self._deciding(_permit):
            hidden = sum(self._connection.execute(self._calls, (table,)).get for table in self._tables)
        length = min(LENGTH_MAX, WORK_BYTES_MAX // (len(sql) // 4 + self._asked + int(hidden) + 1))
        if self._slow:
            length = min(length, isqrt(COMPARISONS_MAX // self._slow))
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, length)
        return length

    @contextmanager
    def _deciding(self, decide: _Decides) -> Iterator[None]:
        before, self._decide = self._decide, decide
        try:
            yield
        finally:
            self._decide = before

    # -- decisions ----------------------------------------------------------------------------------------

    def _as_user(self, operation: int, one: str, two: str, database: str | None, inside: str | None) -> bool:
        if operation in _FORBIDDEN or (database == "temp" and operation in _DEFINES):
            # The meter reads the schema's version between users' statements.
            return (operation, one, two) == (apsw.SQLITE_PRAGMA, "schema_version", "")
        if operation in _PERMITTED or operation in (apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_ANALYZE):
            return True
        # Only the engine makes triggers of such names: they keep counts, and may write where they belong.
        if inside is not None and inside.startswith(ENGINE_PREFIX):
            return True
        # Dropping a table drops the triggers that keep its count; a statement cannot name them itself.
        if operation == apsw.SQLITE_DROP_TRIGGER and not two.startswith(ENGINE_PREFIX):
            return True
        # What is changed or defined is named first, the table that it belongs to second.
        if any(name.startswith(ENGINE_PREFIX) or name in ENGINE_VIEWS for name in (one, two)):
            return False
        if operation in _DEFINES:
            self.defined.add(operation)
        elif operation in _MODIFIES and one.startswith("sqlite_") and one not in _SCHEMA:
            # `analyze` deletes from its tables by a statement of its own; without them plans are merely the usual ones.
            return bool(self.defined & _REWRITES_SCHEMA) or (operation == apsw.SQLITE_DELETE and "_stat" in one)
        return True

    def _as_client(self, operation: int, one: str, two: str, database: str | None, inside: str | None) -> bool:
        self._asked += 1
        if operation == apsw.SQLITE_READ or operation in _MODIFIES:
            self._tables.add(one)
        if operation == apsw.SQLITE_READ:
            return self._may_read(one, two, inside)
        if operation == apsw.SQLITE_FUNCTION:
            return self._may_call(two)
        if operation == apsw.SQLITE_DROP_TRIGGER and not self.defined:
            return False  # of its own; a table that is dropped takes its triggers along
        known = operation in _PERMITTED | _MODIFIES | _DEFINES or operation == apsw.SQLITE_DROP_TRIGGER
        return known and self._as_user(operation, one, two, database, inside)

    def _may_read(self, table: str, column: str, inside: str | None) -> bool:
        if table.startswith(ENGINE_PREFIX):
            if table in ENGINE_VIEWS.get(inside or "", ()):
                self._behind_views.add(table)
                return True
            # A view that is counted needs no column; a trigger that keeps a count reads the count.
            counts = inside is not None and inside.startswith(f"{ENGINE_PREFIX}count_")
            return (not column and table in self._behind_views) or (counts and table == f"{ENGINE_PREFIX}counts")
        if table.startswith("sqlite_"):
            return bool(self.defined & _REWRITES_SCHEMA) or (bool(self.defined) and column == "rowid")
        return table not in _INTERNALS

    def hides_calls(self, sql: str) -> bool:
        """Whether a definition makes statements call a function that they do not name, and that may take long."""
        held = pieces(sql)[0].tokens if self.defined - {apsw.SQLITE_CREATE_VIEW} else ()
        return any(
            after.text == "(" and (token.name in _SLOW or token.name.startswith(_UNBOUNDED))
            for token, after in pairwise(held)
        )

    def _may_call(self, function: str) -> bool:
        if function in _SLOW:
            self._slow += _SLOW[function]
        if function in ("like", "glob"):
            self._asked += LIKE_WEIGHT
        return not function.startswith(_UNBOUNDED)


@contextmanager
def at_most(connection: apsw.Connection, seconds: float, sql: str, *, memory_max: int | None = None) -> Iterator[None]:
    """Interrupt a statement that takes longer, or more memory. Raises StatementFailed."""
    ends, done, reason = time.perf_counter() + seconds, Event(), ""
    most = None if memory_max is None else apsw.memory_used() + memory_max

    def look() -> None:
        nonlocal reason
        while not done.wait(LOOK_SECONDS):
            if most is not None and apsw.memory_used() > most:
                reason = reason or f"needed more than {memory_max:,} bytes of memory"
            elif time.perf_counter() > ends:
                reason = reason or f"took longer than {seconds:g} s"
            if reason:
                connection.interrupt()  # again and again: one that comes before the statement begins is lost

    thread = Thread(target=look, name="penstock deadline", daemon=True)
    thread.start()
    try:
        yield
    except apsw.InterruptError as error:
        raise StatementFailed(f"A statement {reason} and was cancelled: {one_line(sql)}", sql=sql) from error
    finally:
        done.set()
        thread.join()  # an interrupt that came later would hit the next statement
