"""Reads a database beside its workers: on a connection that cannot write, and without a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from penstock.app import App
from penstock.config import Config
from penstock.contracts.history import HistoryReader
from penstock.contracts.store import Lookout, Reader, Store
from penstock.contracts.workers import WorkerRow
from penstock.data import counts
from penstock.model.redaction import address_shown
from penstock.model.row import Row, row_type
from penstock.stores import is_postgres, lookout_at, store_at

ROWS_MAX = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """A database, and its app where that is named. `address` may hold a password: only `database` is shown."""

    address: str
    config: Config
    app: App | None = None

    @property
    def database(self) -> str:
        return address_shown(self.address)

    @property
    def file(self) -> Path | None:
        """Return its file; None where it is on a server."""
        return None if is_postgres(self.address) else Path(self.address)

    @property
    def name(self) -> str:
        return Path(urlsplit(self.address).path).name or "penstock" if self.file is None else self.file.stem

    def store(self, *, metered: bool = False) -> Store:
        return store_at(self.address, synchronous=self.config.synchronous, metered=metered)


class Observer:
    """Runs queries on a database, one after the other, and sees which workers are alive."""

    def __init__(self, target: Target, reader: Reader, lookout: Lookout) -> None:
        self.target = target
        self.lookout = lookout
        self._reader = reader

    @property
    def app(self) -> App | None:
        return self.target.app

    async def rows(self, sql: str, given: object = None, /, **named: Any) -> list[Row]:
        return self.read(sql, **named)

    def read(self, sql: str, **named: Any) -> list[Row]:
        found = self._reader.read(sql, named, rows_max=ROWS_MAX)
        made = row_type(found.columns)
        return [made(value) for value in found.values]

    async def ask(self, question: Callable[[HistoryReader], T]) -> T:
        """Ask the history, which is in a file of its own."""
        with closing(self.target.store().open_history(read_only=True)) as history:
            return question(history)

    async def count(self, table: str, /) -> int:
        """Return the number of rows of a table: from the kept count, else by counting them."""
        kept = self.read(counts.KEPT, name=table)
        return int((kept or self.read(counts.all_of(table)))[0][0])

    def is_alive(self, worker: WorkerRow) -> bool | None:
        return self.lookout.is_alive(worker.id, worker.host)

    def now(self) -> int:
        """The time by which the workers go: the server's, where there is one."""
        return self.lookout.server_time() or time.time_ns() // 1_000

    def steady_micros(self) -> int:
        """The clock by which the processes of this host note when a handler began."""
        return time.monotonic_ns() // 1_000


@contextmanager
def observe(target: Target) -> Iterator[Observer]:
    """Open a database that was found sound. It may be open in this process: its file is touched by SQLite alone."""
    with closing(lookout_at(target.address)) as lookout, closing(target.store().open_reader()) as reader:
        yield Observer(target, reader, lookout)
