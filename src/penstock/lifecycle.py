"""The life of an app in one process: its database is opened, a worker runs, and everything is closed again."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from penstock.blobs.folder import BlobFolder, expire_regularly
from penstock.data.migrations import apply
from penstock.model.usage import Measure
from penstock.objects.host import Host
from penstock.objects.namespace import ObjectClass, introduce
from penstock.queues.admin import QueueAdmin
from penstock.queues.consumer import Consumer
from penstock.runtime.clock import ClockOf
from penstock.runtime.crashpoints import faults_from_environment
from penstock.runtime.engine import Engine
from penstock.runtime.events import QueuesRedeclared
from penstock.runtime.surroundings import Surroundings
from penstock.runtime.unit import current_unit
from penstock.runtime.worker import Worker

if TYPE_CHECKING:
    from penstock.app import App


class Lifecycle:
    """What exists only while an app is open or runs."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.clock = ClockOf(lambda: None if self.engine is None else self.engine.clock)
        self.worker: Worker | None = None
        self.stop_asked = False
        self.engine: Engine | None = None
        self._opening: asyncio.Lock | None = None
        self._host: Host | None = None
        self._desk: QueueAdmin | None = None

    async def open(self, surroundings: Surroundings | None, *, migrate: bool) -> Engine:
        app = self._app
        surroundings = surroundings or Surroundings(faults=faults_from_environment(os.environ))
        if app.requires_trial:
            app.trial.record()
        lease_longest = max((queue.settings.lease_seconds for queue in app.queues.values()), default=930.0)
        store = app._store(faults=surroundings.faults)
        recorded: dict[str, Any] = {"service": app.name, "history": float(app.config.history)}
        engine = Engine(app, store, app.events, app.limits, surroundings, lease_longest=lease_longest, **recorded)
        await engine.open()
        try:
            settings = [queue.settings for queue in app.queues.values()]
            changed = await engine.in_writer(engine.writer.workers.register_queues, settings)
            if changed:
                app.events.emit(QueuesRedeclared(app.name, changed))
            await app.crons.declare(engine)
            await introduce(engine, app._objects.values())
            if migrate:
                await apply(engine, app._migrations_found(engine.store.dialect), counts_kept=app.db.counts_kept)
        except BaseException:
            await engine.close()
            raise
        self.engine = engine
        app.routes.forget()
        app.metrics.begin(engine)
        return engine

    async def opened(self) -> Engine:
        if self.engine is not None and self.engine.is_open:
            return self.engine
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self.engine is None or not self.engine.is_open:
                await self._app._open()
        assert self.engine is not None
        return self.engine

    async def host(self) -> Host:
        engine = await self._app._opened()
        if self._host is None or self._host.engine is not engine:
            self._host = Host(engine)
        return self._host

    async def desk(self) -> QueueAdmin:
        engine = await self._app._opened()
        if self._desk is None or self._desk.engine is not engine:
            self._desk = QueueAdmin(self._app, engine, self._app.queues)
        return self._desk

    async def run(self, objects: dict[str, ObjectClass], blobs: list[BlobFolder], grace: float, idle: bool) -> None:
        app, engine = self._app, await self._app._opened()
        worker = self.worker = Worker(engine, grace_seconds=grace)
        if objects:
            (await self.host()).serve(worker)
        alerts = app.alerts.listen(engine)
        await app.crons.forget_others(engine)
        served = [queue for queue in app.queues.values() if queue.is_served]
        consumers = [Consumer(worker, engine, queue, patient=not idle) for queue in served]
        if self.stop_asked:
            worker.stop()
        known = [row for queue in served for row in queue._handler_rows()]
        kept = [queue.settings.retention_seconds for queue in app.queues.values()]
        shortest = min((seconds for seconds in kept if seconds is not None), default=None)
        standard = app.metrics.standard(engine, app._store(metered=False), app.name, app.controllers)
        beside = [app.controllers.watch(), expire_regularly(blobs), standard.run(), alerts.run()]
        work = worker.run(consumers, known, expires_after=shortest, until_idle=idle, beside=beside)
        running = asyncio.ensure_future(work)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await running
            raise
        finally:
            await alerts.end()
            await standard.end()
            self.worker = None
            self.stop_asked = False
            await self.close()

    def stop(self) -> None:
        self.stop_asked = True
        if self.worker is not None:
            self.worker.stop()

    async def close(self) -> None:
        if self._host is not None:
            self._host.close()
            self._host = None
        if self.engine is not None:
            await self._app.metrics.end()
            await self.engine.close()
            self.engine = None
            self._opening = None

    def count(self, what: str, task: str = "") -> None:
        """Count one operation that is no SQL statement towards the month, for the current task. A closed app counts
        nothing."""
        if self.engine is not None and self.engine.is_open:
            named = task or getattr(current_unit.get(), "task", "")
            self.engine.meter.add(named, Measure(f"penstock:{what}", 1, 0, 0, 0, 0, 0.0))
