"""An app as users have it, but for a watch between its committer and its ledger that sees each commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.config import Config
from penstock.contracts.ledger import Committed, Ledger, OnceKey, SealedUnit, Want
from penstock.contracts.store import Writer
from penstock.runtime.events import MessageFailed
from penstock.storage.sqlite.store import SqliteStore, SqliteWriter


class Watch:
    """A ledger that notes, in the writer's thread, when the last of so many units was committed.

    `commit` returns after SQLite's own commit, so the moment is exact; only whole groups are counted, so it costs nothing
    a message. A unit of a handler is one settlement.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._left = 0
        self._then: Callable[[], object] = int
        self.finished_at = 0.0

    def expect(self, units: int, then: Callable[[], object]) -> None:
        self._left = units
        self._then = then

    def commit(
        self, units: Sequence[SealedUnit], wants: Sequence[Want], *, now: int, sweep: bool, fire: bool = False
    ) -> Committed:
        committed = self._ledger.commit(units, wants, now=now, sweep=sweep, fire=fire)
        if self._left > 0:
            self._left -= len(units)
            if self._left <= 0:
                self.finished_at = time.perf_counter()
                self._then()
        return committed

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._ledger.find_once(once)


class WatchedWriter:
    """The writer with its ledger watched, and its connection there to be looked at."""

    def __init__(self, writer: SqliteWriter) -> None:
        self.session = writer._session
        self.ledger = Watch(writer.ledger)
        self.workers = writer.workers
        self.operations = writer.operations
        self.timers = writer.timers
        self.objects = writer.objects
        self.items = writer.items
        self.upkeep = writer.upkeep
        self.close = writer.close


class WatchedStore(SqliteStore):
    opened: WatchedWriter

    def open_writer(self, *, now: int) -> Writer:
        writer = super().open_writer(now=now)
        assert isinstance(writer, SqliteWriter)
        self.opened = WatchedWriter(writer)
        return self.opened


class WatchedApp(ps.App):
    watched: WatchedStore

    def __init__(self, path: Path) -> None:
        # The store is what is measured; what the history of every message costs is in bench/history.py and bench/queues.py.
        config = Config(history=False)
        super().__init__("bench", database=path, migrations=path.parent / "migrations", config=config)
        self._failed: MessageFailed | None = None
        self.events.subscribe(self._give_up, to=MessageFailed)

    def _give_up(self, failed: MessageFailed) -> None:
        """A handler that fails would make a benchmark quick and worthless."""
        self._failed = self._failed or failed
        self.stop()

    def store(self, **options: Any) -> WatchedStore:
        assert self.config.synchronous == "full", "the figures are meant for full durability"
        self.watched = WatchedStore(self.database, synchronous=self.config.synchronous, **options)
        return self.watched

    async def run_until_committed(self, units: int) -> float:
        """Seconds from before `run`, which registers its queues and then claims, until so many units are committed."""
        loop = asyncio.get_running_loop()
        watch = self.watched.opened.ledger
        watch.expect(units, lambda: loop.call_soon_threadsafe(self.stop))
        began = time.perf_counter()
        await self.run()
        assert self._failed is None, f"a handler failed: {self._failed}"
        return watch.finished_at - began
