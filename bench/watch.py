"""An app as users have it, but for a watch between its committer and its ledger that sees each commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import penstock as ps
from bench.place import Place
from penstock.config import Config
from penstock.contracts.effects import OnceKey, SealedUnit
from penstock.contracts.ledger import ClaimRequest, Committed, Ledger
from penstock.contracts.runs import EndRun
from penstock.contracts.store import Store, Writer
from penstock.runtime.events import MessageFailed


class Watch:
    """A ledger that notes, in the writer's thread, when the last of so many units was committed.

    `commit` returns after the database's own commit, so the moment is exact; only whole groups are counted, so it costs
    nothing a message. A unit of a handler is one settlement.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._left = 0
        self._then: Callable[[], object] = int
        self.finished_at = 0.0
        self.when_ended: Callable[[list[bytes]], object] | None = None  # called with the keys of runs that have ended

    def expect(self, units: int, then: Callable[[], object]) -> None:
        self._left = units
        self._then = then

    def commit(
        self, units: Sequence[SealedUnit], wants: Sequence[ClaimRequest], *, now: int, sweep: bool, fire: bool = False
    ) -> Committed:
        committed = self._ledger.commit(units, wants, now=now, sweep=sweep, fire=fire)
        if self._left > 0:
            self._left -= len(units)
            if self._left <= 0:
                self.finished_at = time.perf_counter()
                self._then()
        if self.when_ended is not None and (ended := [*_ended(units)]):
            self.when_ended(ended)
        return committed

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._ledger.find_once(once)


def _ended(units: Sequence[SealedUnit]) -> Iterator[bytes]:
    for unit in units:
        for effect in unit.effects:
            if isinstance(effect, EndRun):
                yield effect.key


class WatchedWriter:
    """The writer with its ledger watched. `store_writer` is the writer itself, there to be looked at."""

    def __init__(self, writer: Writer) -> None:
        self.store_writer: Any = writer
        self.ledger = Watch(writer.ledger)
        self.workers = writer.workers
        self.operations = writer.operations
        self.timers = writer.timers
        self.objects = writer.objects
        self.items = writer.items
        self.runs = writer.runs
        self.upkeep = writer.upkeep
        self.calls = writer.calls
        self.audited = writer.audited
        self.without_waiting = writer.without_waiting
        self.close = writer.close


class WatchedApp(ps.App):
    writer: WatchedWriter

    def __init__(self, place: Place, *, history: bool = False) -> None:
        # The store is what is measured; what the history of every message costs is in bench/history.py and bench/queues.py.
        config = Config(history=history)
        super().__init__("bench", database=place.database, migrations=place.folder / "migrations", config=config)
        self._failed: MessageFailed | None = None
        self.events.subscribe(self._give_up, to=MessageFailed)

    def _give_up(self, failed: MessageFailed) -> None:
        """A handler that fails would make a benchmark quick and worthless."""
        self._failed = self._failed or failed
        self.stop()

    def _store(self, **options: Any) -> Store:
        assert self.config.synchronous == "full", "the figures are meant for full durability"
        store = super()._store(**options)
        open_writer = store.open_writer

        def open_watched(*, now: int) -> Writer:
            self.writer = WatchedWriter(open_writer(now=now))
            return self.writer

        store.open_writer = open_watched  # type: ignore[method-assign]
        return store

    async def run_until_committed(self, units: int) -> float:
        """Seconds from before `run`, which registers its queues and then claims, until so many units are committed."""
        loop = asyncio.get_running_loop()
        watch = self.writer.ledger
        watch.expect(units, lambda: loop.call_soon_threadsafe(self.stop))
        began = time.perf_counter()
        await self.run()
        assert self._failed is None, f"a handler failed: {self._failed}"
        return watch.finished_at - began
