"""The PostgreSQL store: opens the writer, readers, presence and bell of one database."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import psycopg

from penstock.contracts.audit import Audit
from penstock.contracts.faults import Faults, NoFaults
from penstock.contracts.store import Reader, Writer
from penstock.storage.audit import carry
from penstock.storage.calls import StoredCalls
from penstock.storage.items import StoredItems
from penstock.storage.objects import StoredObjects
from penstock.storage.operations import StoredOperations
from penstock.storage.postgres import schema
from penstock.storage.postgres.bell import NotifyBell
from penstock.storage.postgres.connection import SYNCHRONOUS, PostgresSettings, failed, translated
from penstock.storage.postgres.history import PostgresHistory
from penstock.storage.postgres.ledger import PostgresLedger
from penstock.storage.postgres.presence import PostgresPresence, folder_of, path_in
from penstock.storage.postgres.reader import PostgresReader
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.postgres.upkeep import PostgresUpkeep
from penstock.storage.presence import started_at
from penstock.storage.schema import check_synchronous
from penstock.storage.timers import StoredTimers
from penstock.storage.workers import StoredWorkers
from penstock.storage.workflow_runs import StoredRuns


class PostgresWriter:
    def __init__(self, settings: PostgresSettings, faults: Faults, *, now: int) -> None:
        self.folder = Path()
        self.session = PostgresSession(settings, lambda worker: started_at(path_in(self.folder, worker)))
        try:
            self.session.surely(lambda: schema.ensure(self.session.connection, settings))
            identity: str = self.session.transact(
                lambda: self.session.value("workers.identity", {"fresh": os.urandom(16).hex()})
            )
            self.folder = folder_of(identity)
            self.ledger = PostgresLedger(self.session, faults)
            self.workers = StoredWorkers(self.session, faults, now=now)
            self.session.came_back = self.workers.register_again
            self.operations = StoredOperations(self.session)
            self.timers = StoredTimers(self.session)
            self.objects = StoredObjects(self.session)
            self.items = StoredItems(self.session)
            self.calls = StoredCalls(self.session)
            self.runs = StoredRuns(self.session)
            self.upkeep = PostgresUpkeep(self.session)
        except BaseException as error:
            self.session.close()
            if isinstance(error, psycopg.Error):
                with translated(settings):
                    raise
                raise failed(settings, error) from error
            raise

    def without_waiting(self) -> AbstractContextManager[bool]:
        return nullcontext(False)  # a server that is lost would be waited for

    def audited(self, audit: Audit | None, work: Callable[[], Any]) -> Any:
        return carry(self.session, audit, work)

    def close(self) -> None:
        self.session.close()


class PostgresStore:
    dialect = "postgres"

    def __init__(
        self, url: str, *, synchronous: str = "full", metered: bool = True, faults: Faults | None = None
    ) -> None:
        check_synchronous(synchronous, SYNCHRONOUS)
        self._settings = PostgresSettings(url, synchronous, metered)
        self._faults = faults or NoFaults()
        self._writers: WeakValueDictionary[int, PostgresWriter] = WeakValueDictionary()

    @property
    def location(self) -> str:
        return self._settings.shown

    def open_writer(self, *, now: int) -> Writer:
        writer = PostgresWriter(self._settings, self._faults, now=now)
        self._writers[writer.workers.me] = writer
        return writer

    def open_reader(self) -> Reader:
        return PostgresReader(self._settings)

    def open_history(self, *, read_only: bool = False) -> PostgresHistory:
        return PostgresHistory(self._settings, read_only=read_only)

    def presence(self, worker: int) -> PostgresPresence:
        """Belongs to the writer of that number: its connection is what holds the lock."""
        writer = self._writers[worker]
        return PostgresPresence(writer.session, writer.folder, worker)

    def bell(self, worker: int) -> NotifyBell:
        return NotifyBell(self._settings, worker)
