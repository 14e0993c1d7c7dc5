"""A store: one database that holds everything that waits, and the user's tables beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from penstock.contracts.audit import Audit
from penstock.contracts.calls import Calls
from penstock.contracts.effects import Bindable
from penstock.contracts.history import HistoryFile
from penstock.contracts.items import Items
from penstock.contracts.ledger import Ledger
from penstock.contracts.objects import Objects
from penstock.contracts.operations import Operations
from penstock.contracts.presence import Bell, Presence
from penstock.contracts.runs import Runs
from penstock.contracts.timers import Timers
from penstock.contracts.workers import Workers
from penstock.model.allowance import Allowance
from penstock.model.forecast import Sample
from penstock.model.migration import Migration
from penstock.model.usage import Measure

PROBE = "/* probe */ "  # before a query that goes by index wherever there is one, however small its table is today


class Rows(NamedTuple):
    """What a read gave: column names, values, and what it cost."""

    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]
    measure: Measure


class Reader(Protocol):
    """A connection that only reads. Lives in one thread."""

    def read(
        self, sql: str, parameters: dict[str, Bindable], *, rows_max: int, seconds_max: float | None = None
    ) -> Rows:
        """At most `rows_max + 1` rows, so that the caller can tell that there were more. What takes longer than
        `seconds_max` is given up."""

    def ask(self, queries: Sequence[tuple[str, dict[str, Bindable]]], allowance: Allowance) -> list[Rows]:
        """Run an HTTP client's queries in one snapshot; they reach none of the engine's tables. Raises BadStatement where
        the store takes no statements from clients."""

    def close(self) -> None: ...


class Lookout(Protocol):
    """A look at a database from outside: its size, the locks of its processes. It changes nothing."""

    def schema_version(self) -> int:
        """Return the version of the engine's tables; 0 where there are none. Raise if this Penstock cannot read them."""

    def is_alive(self, worker: int, host: str) -> bool | None:
        """Return whether a worker still holds its lock; None where that is not known on this host."""

    def cells(self, worker: int) -> memoryview | None:
        """Return its list of running handlers as it is now; None where it is not on this host."""

    def size_bytes(self) -> int: ...
    def server_time(self) -> int | None:
        """Return the server's time in microseconds, by which all processes go; None where it is this host's."""

    def close(self) -> None: ...


class Upkeep(Protocol):
    """What keeps a database healthy for months. Lives in the writer's thread."""

    def migrate(self, migrations: Sequence[Migration], *, now: int) -> list[str]: ...
    def applied(self) -> list[tuple[str, str]]: ...
    def keep_counts(self, tables: Sequence[str]) -> None: ...
    def add_usage(self, month: str, measures: Sequence[tuple[str, Measure]], *, now: int) -> None:
        """Adds to what a month has used, and notes the time, as everything does that happens often enough."""

    def prune(self, *, now: int, limit: int, dedup_seconds: float = 15 * 86_400.0) -> int:
        """Remove at most `limit` engine records that are not needed any more, and return how many. A record of an id
        that can come back is kept for `dedup_seconds`, and for as long as its message waits."""

    def size_bytes(self) -> int: ...
    def sample_size(self, *, now: int) -> list[Sample]:
        """Notes today's size; one sample a day so far, oldest first."""

    def log_bytes(self) -> int:
        """How large the log is that has not been copied back; nothing where there is no such thing."""

    def look_around(self) -> bool:
        """Whether another process has committed since the last call; reads no row. Also catches up on what could not be
        done at a commit: a checkpoint that a reader held back, a reserve to refill."""

    def server_time(self) -> int | None:
        """The time by which all processes on this database go, in microseconds; None where it is this host's."""


class Writer(Protocol):
    """The one connection of a process that writes. Lives in one thread."""

    @property
    def ledger(self) -> Ledger: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def timers(self) -> Timers: ...
    @property
    def objects(self) -> Objects: ...
    @property
    def items(self) -> Items: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def calls(self) -> Calls: ...
    @property
    def upkeep(self) -> Upkeep: ...
    def without_waiting(self) -> AbstractContextManager[bool]:
        """Return whether a small commit inside the block waits for nothing but its sync, so that the event loop may do it."""

    def audited(self, audit: Audit | None, work: Callable[[], Any]) -> Any:
        """Run work of this writer whose transactions write the audit of their effect, if there is one."""

    def close(self) -> None: ...


class Store(Protocol):
    """Opens connections; holds none itself."""

    @property
    def dialect(self) -> str: ...
    @property
    def location(self) -> str: ...

    def open_writer(self, *, now: int) -> Writer: ...
    def open_reader(self) -> Reader: ...
    def open_history(self, *, read_only: bool = False) -> HistoryFile: ...
    def presence(self, worker: int) -> Presence: ...
    def bell(self, worker: int) -> Bell: ...
