"""The SQLite store: opens the writer, readers, presence and bell of one database file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from penstock.contracts.audit import Audit
from penstock.contracts.faults import Faults, NoFaults
from penstock.contracts.store import Reader, Writer
from penstock.storage.audit import carry
from penstock.storage.calls import StoredCalls
from penstock.storage.items import StoredItems
from penstock.storage.objects import StoredObjects
from penstock.storage.operations import StoredOperations
from penstock.storage.presence import started_at
from penstock.storage.schema import check_synchronous
from penstock.storage.sqlite import schema
from penstock.storage.sqlite.bell import SocketBell
from penstock.storage.sqlite.connection import SYNCHRONOUS, translated
from penstock.storage.sqlite.history import SqliteHistory
from penstock.storage.sqlite.ledger import SqliteLedger
from penstock.storage.sqlite.presence import SqlitePresence, path_of
from penstock.storage.sqlite.reader import SqliteReader
from penstock.storage.sqlite.reserve import RESERVE_BYTES, free_on_disk
from penstock.storage.sqlite.session import SqliteSession, SqliteSettings
from penstock.storage.sqlite.upkeep import SqliteUpkeep
from penstock.storage.timers import StoredTimers
from penstock.storage.workers import StoredWorkers
from penstock.storage.workflow_runs import StoredRuns

CHECKED_AT_OPEN_BYTES = 50_000_000  # a larger file is not read through at every start; `penstock doctor` does it


class SqliteWriter:
    def __init__(self, settings: SqliteSettings, faults: Faults, *, now: int) -> None:
        self._session = SqliteSession(settings, lambda worker: started_at(path_of(settings.path, worker)))
        try:
            if settings.path.stat().st_size < CHECKED_AT_OPEN_BYTES:
                with self._session.errors():
                    schema.quick_check(self._session)
            schema.ensure(self._session)
            self.ledger = SqliteLedger(self._session, faults)
            self.workers = StoredWorkers(self._session, faults, now=now)
            self.operations = StoredOperations(self._session)
            self.timers = StoredTimers(self._session)
            self.objects = StoredObjects(self._session)
            self.items = StoredItems(self._session)
            self.calls = StoredCalls(self._session)
            self.runs = StoredRuns(self._session)
            self.upkeep = SqliteUpkeep(self._session)
        except BaseException:
            self._session.close()
            raise

    def without_waiting(self) -> AbstractContextManager[bool]:
        return self._session.without_waiting()

    def audited(self, audit: Audit | None, work: Callable[[], Any]) -> Any:
        return carry(self._session, audit, work)

    def close(self) -> None:
        self._session.close()


class SqliteStore:
    dialect = "sqlite"

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: str = "full",
        vfs: str | None = None,
        reserve_bytes: int = RESERVE_BYTES,
        metered: bool = True,
        faults: Faults | None = None,
        free_bytes: Callable[[Path], int] = free_on_disk,
    ) -> None:
        check_synchronous(synchronous, SYNCHRONOUS)
        self._settings = SqliteSettings(Path(path).absolute(), synchronous, vfs, reserve_bytes, metered, free_bytes)
        self._faults = faults or NoFaults()

    @property
    def location(self) -> str:
        return str(self._settings.path)

    def open_writer(self, *, now: int) -> Writer:
        return SqliteWriter(self._settings, self._faults, now=now)

    def open_reader(self) -> Reader:
        return SqliteReader(self._settings)

    def open_history(self, *, read_only: bool = False) -> SqliteHistory:
        return SqliteHistory(self._settings.path, read_only=read_only)

    def presence(self, worker: int) -> SqlitePresence:
        with translated(self._settings.path):
            return SqlitePresence(self._settings.path, worker)

    def bell(self, worker: int) -> SocketBell:
        return SocketBell(self._settings.path, worker)
