"""Apps of simulated workers: each has its own engine and connections, on one file, in one virtual loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import penstock as ps
from penstock.config import Config
from penstock.contracts.effects import OnceKey, SealedUnit
from penstock.contracts.ledger import ClaimRequest, Committed, Ledger
from penstock.contracts.store import Store
from penstock.model.errors import StoreUnavailable
from penstock.runtime.engine import Engine
from penstock.runtime.surroundings import Surroundings
from penstock.storage.sqlite.presence import SqlitePresence
from penstock.storage.sqlite.store import SqliteStore, SqliteWriter
from penstock.testing.process import Process


class StagedApp(ps.App):
    """An app whose store reports to its process, so that even a worker killed while it opens lets go of its files."""

    def __init__(self, database: Path, process: Process, config: Config, *, order: Random | None) -> None:
        super().__init__("simulated", database=database, migrations=database.parent / "none", config=config)
        self._process = process
        self._order = order

    async def _opened(self) -> Engine:
        """A simulated process that was closed stays closed: opened anew, it would live in real time."""
        if self._life.engine is None or not self._life.engine.is_open:
            raise StoreUnavailable("This worker has stopped.")
        return self._life.engine

    def _store(self, **options: Any) -> Store:
        options |= {"synchronous": "off", "reserve_bytes": 0, "metered": False}
        return _SimulatedStore(self._process, self._order, self.database, **options)


class _SimulatedStore(SqliteStore):
    def __init__(self, process: Process, order: Random | None, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self._process = process
        self._order = order

    def open_writer(self, *, now: int) -> Any:
        writer: Any = super().open_writer(now=now)
        assert isinstance(writer, SqliteWriter)
        self._process.writer = writer
        if self._order is not None:
            writer.ledger = _Shuffled(writer.ledger, self._order)  # type: ignore[assignment]
        return writer

    def presence(self, worker: int) -> SqlitePresence:
        self._process.presence = presence = super().presence(worker)
        return presence


class _Shuffled:
    """A ledger that gives claimed rows in any order: no consumer may lean on one."""

    def __init__(self, ledger: Ledger, order: Random) -> None:
        self._ledger = ledger
        self._order = order

    def commit(self, units: Sequence[SealedUnit], wants: Sequence[ClaimRequest], **chores: Any) -> Committed:
        committed = self._ledger.commit(units, wants, **chores)
        self._order.shuffle(committed.claimed)
        return committed

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._ledger.find_once(once)


async def run_until_stopped(app: StagedApp, surroundings: Surroundings, opened: Callable[[], None]) -> None:
    await app._open(surroundings, migrate=False)
    opened()
    await app.run()
