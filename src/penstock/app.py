"""An app: one database, its queues and handlers, and the ways to run it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from penstock.blobs.folder import BlobFolder
from penstock.config import Config
from penstock.contracts.store import Store
from penstock.data.database import Database
from penstock.data.migrations import apply, found_in
from penstock.model.errors import BadApp, BadConfig
from penstock.model.limits import Limits
from penstock.model.migration import Migration
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.queues.consumer import Consumer
from penstock.queues.queue import Queue
from penstock.runtime.crashpoints import faults_from_environment
from penstock.runtime.engine import Engine
from penstock.runtime.events import Events
from penstock.runtime.once import run_once
from penstock.runtime.surroundings import Surroundings
from penstock.runtime.unit import AwaitedUnit, open_unit
from penstock.runtime.worker import Worker
from penstock.storage.sqlite.store import SqliteStore

T = TypeVar("T")


class App:
    """`App("market")` keeps everything in market.db in the current folder, or where PENSTOCK_DATABASE says."""

    def __init__(
        self,
        name: str,
        *,
        database: str | Path | None = None,
        migrations: str | Path | None = None,
        config: Config | None = None,
    ) -> None:
        self.name = name
        self.config = config or Config.load()
        self.limits: Limits = self.config.limits
        self.events = Events()
        self.db = Database(self)
        self.queues: dict[str, Queue] = {}
        self.database = str(database or os.environ.get("PENSTOCK_DATABASE") or self.config.database or f"{name}.db")
        beside = Path(sys._getframe(1).f_globals.get("__file__", ".")).parent
        self.migrations = Path(migrations) if migrations is not None else beside / "migrations"
        self.worker: Worker | None = None
        self._stop_asked = False
        self._engine: Engine | None = None
        self._opening: asyncio.Lock | None = None

    # -- putting it together ----------------------------------------------------------------------------

    def queue(
        self,
        name: str,
        *,
        accepts: Iterable[type] | None = None,
        parallel: int = 16,
        retries: int | None = None,
        wall: float | None = None,
        crashes_max: int = 3,
    ) -> Queue:
        """A durable queue. `accepts` lists the payload types it takes; `parallel` handlers run at once; a message is
        delivered at most 1 + `retries` times; `wall` seconds after its start a handler is cancelled."""
        if name in self.queues:
            raise BadApp(f"App {self.name!r} has two queues called {name!r}.", name=name)
        limits = self.limits
        settings = QueueSettings(
            name,
            parallel=parallel,
            retry=Retry(
                limits.retries if retries is None else retries, limits.retry_first_seconds, limits.retry_longest_seconds
            ),
            wall_seconds=limits.queue_invocation.wall_seconds if wall is None else wall,
            crashes_max=crashes_max,
        )
        self.queues[name] = Queue(self, settings, accepts)
        return self.queues[name]

    def blobs(self, path: str | Path) -> BlobFolder:
        """A folder of blobs: bytes under keys, each saved whole or not at all."""
        return BlobFolder(path)

    @property
    def body_bytes_max(self) -> int:
        return self.limits.body_bytes_max

    # -- units of work ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def unit(self, key: str | None = None) -> AsyncIterator[AwaitedUnit]:
        """Opens a unit of work that commits at its end and raises there. Inside a handler it saves midway.

        With a key it commits once per message: on a repeat the block runs again, `unit.repeated` is true, and what it
        collects is dropped."""
        async with open_unit(await self.opened(), key) as unit:
            yield unit

    async def once(self, key: str, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Calls `function` unless its result is saved under this key; then returns that without calling it."""
        result: T = await run_once(await self.opened(), key, function, *arguments)
        return result

    # -- running ----------------------------------------------------------------------------------------

    async def run(self, *, grace_seconds: float | None = None, until_idle: bool = False) -> None:
        """Runs every queue that has handlers, until `stop` or cancellation, then hands back what it holds. With
        `until_idle` it stops by itself once nothing is left that is due."""
        engine = await self.opened()
        grace = self.config.grace_seconds if grace_seconds is None else grace_seconds
        worker = self.worker = Worker(engine, grace_seconds=grace)
        served = [queue for queue in self.queues.values() if queue.handlers]
        consumers = [Consumer(worker, engine, queue) for queue in served]
        if self._stop_asked:
            worker.stop()
        settings = [queue.settings for queue in self.queues.values()]
        running = asyncio.ensure_future(worker.run(consumers, settings, until_idle=until_idle))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await running
            raise
        finally:
            self.worker = None
            self._stop_asked = False
            await self.close()

    def stop(self) -> None:
        """Asks a running app to stop, or one that is about to run not to. A second call cuts the grace short."""
        self._stop_asked = True
        if self.worker is not None:
            self.worker.stop()

    # -- the database -----------------------------------------------------------------------------------

    def store(self, **options: Any) -> Store:
        """The store that this app's database is kept in."""
        if self.database.startswith(("postgresql://", "postgres://")):
            raise BadConfig(
                "PostgreSQL is not supported yet; name a file instead.", field="database", value=self.database
            )
        return SqliteStore(self.database, synchronous=self.config.synchronous, **options)

    async def open(self, surroundings: Surroundings | None = None, *, migrate: bool = True) -> Engine:
        """Opens the database and applies what is pending of the migrations. Most programs need not call it."""
        surroundings = surroundings or Surroundings(faults=faults_from_environment(os.environ))
        lease_longest = max((queue.settings.lease_seconds for queue in self.queues.values()), default=930.0)
        store = self.store(faults=surroundings.faults)
        engine = Engine(self, store, self.events, self.limits, surroundings, lease_longest=lease_longest)
        await engine.open()
        try:
            if migrate:
                await self._migrate(engine)
        except BaseException:
            await engine.close()
            raise
        self._engine = engine
        return engine

    async def opened(self) -> Engine:
        if self._engine is not None and self._engine.is_open:
            return self._engine
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._engine is None or not self._engine.is_open:
                await self.open()
        assert self._engine is not None
        return self._engine

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()
            self._engine = None
            self._opening = None

    async def __aenter__(self) -> App:
        await self.opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def migrations_found(self, dialect: str) -> list[Migration]:
        return found_in(self.migrations, dialect)

    async def _migrate(self, engine: Engine) -> list[str]:
        return await apply(engine, self.migrations_found(engine.store.dialect), counts_kept=self.db.counts_kept)
