"""An app: one database, its queues and handlers, and the ways to run it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from penstock.alerts.telling import Alerts
from penstock.config import Config
from penstock.contracts.store import Store
from penstock.control.controller import FLUSH_SECONDS, IDLE_BACKOFF, Definition
from penstock.control.controllers import AnyController, Controllers
from penstock.control.permits import Permits, Remembered
from penstock.cron.crons import AnyTask, Crons
from penstock.cron.task import Probe
from penstock.data.database import Database
from penstock.data.migrations import apply, found_in
from penstock.model import presets
from penstock.model.arguments import Count, FromZero, Positive, Range, checked
from penstock.model.ceiling import Ceiling
from penstock.model.envelope import type_name
from penstock.model.errors import BadApp
from penstock.model.firing import Rule
from penstock.model.limits import Limits
from penstock.model.migration import Migration
from penstock.model.queue import QueueSettings, from_limits
from penstock.model.schedule import CatchUp, Overlap
from penstock.objects.host import Host
from penstock.objects.namespace import Alarmed, AnyObject, Namespace, ObjectClass, Told, introduce, parked, settings_of
from penstock.outside import Outside
from penstock.queues.addressees import check_addressees
from penstock.queues.consumer import Consumer
from penstock.queues.desk import Desk
from penstock.queues.dying import dead_letter_queue
from penstock.queues.letters import DeadLetters
from penstock.queues.queue import Queue
from penstock.readiness.trial import Trial
from penstock.routes import Routed, Routes
from penstock.runtime.clock import ClockOf
from penstock.runtime.crashpoints import faults_from_environment
from penstock.runtime.engine import Engine
from penstock.runtime.events import Events, QueuesRedeclared
from penstock.runtime.surroundings import Surroundings
from penstock.runtime.unit import OpenUnit, run_once
from penstock.runtime.worker import Worker
from penstock.stores import checked_address, checked_name, store_at
from penstock.workflows.workflows import Workflows

T = TypeVar("T")


class App(Outside, Routed):
    """`App("market")` keeps everything in market.db in the current folder, or in `file`, or where PENSTOCK_DATABASE or
    penstock.toml says. With `database` nobody else has a say. With `require_trial` it is not let loose before a trial has
    passed, unless penstock.toml says otherwise."""

    def __init__(
        self,
        name: str,
        *,
        database: str | Path | None = None,
        file: str | Path | None = None,
        migrations: str | Path | None = None,
        config: Config | None = None,
        require_trial: bool = False,
    ) -> None:
        self.name = checked_name(name)
        self.config = config or Config.load()
        self.limits: Limits = self.config.limits
        self.events = Events()
        self.db = Database(self)
        self.queues: dict[str, Queue] = {}
        self.dead = DeadLetters(self.opened, self.queues)
        super().__init__(ClockOf(lambda: None if self._engine is None else self._engine.clock), self.opened)
        self.crons = Crons(self.limits, self.opened, self._internal_queue, self.config.ceiling)
        self._objects: dict[str, ObjectClass] = {}
        self._host: Host | None = None
        self._desk: Desk | None = None
        self._paces: dict[str, Permits] = {}
        self._saved_paces: Namespace[Remembered] | None = None
        self.workflows = Workflows(self, self.limits, self._internal_queue)
        self.workflow = self.workflows.add
        self.trial = Trial(self.object, self.db.now)
        asked = self.config.readiness.require_trial
        self.requires_trial = require_trial if asked is None else asked
        self.routes = Routes(self._clock)
        self.controllers = Controllers(self.opened, self.host, self.object)
        self.alerts = Alerts(self._internal_queue, self.object)
        self.sinks = self.alerts.sinks
        self.on_alert, self.alert, self.recovered = self.alerts.on_alert, self.alerts.alert, self.alerts.recovered
        usual = file or f"{name}.db"
        elsewhere = os.environ.get("PENSTOCK_DATABASE") or self.config.database or usual
        self.database = checked_address(elsewhere if database is None else database)
        beside = Path(sys._getframe(1).f_globals.get("__file__", ".")).parent
        self.migrations = Path(migrations) if migrations is not None else beside / "migrations"
        self.worker: Worker | None = None
        self._stop_asked = False
        self._engine: Engine | None = None
        self._opening: asyncio.Lock | None = None

    # -- putting it together ----------------------------------------------------------------------------

    @checked
    def queue(
        self,
        name: str,
        *,
        accepts: Iterable[type] | None = None,
        preset: str | None = None,
        batch: int | None = None,
        wait: float | None = None,
        parallel: int | None = None,
        rate: float | None = None,
        retries: int | None = None,
        jitter: bool = False,
        wall: float | None = None,
        cpu: float | None = None,
        crashes_max: int = 3,
        messages_max: int | None = None,
        retention: float | None = None,
    ) -> Queue:
        """A durable queue. `accepts` lists the payload types it takes. A batch is delivered when it has `batch` messages or
        its oldest has waited `wait` seconds. `parallel` handlers run at once (by default as many as the backlog asks for),
        starting at most `rate` messages a second. A message is delivered at most 1 + `retries` times; `wall` seconds after
        its start, or once it has held the processor for `cpu` seconds, a handler is cancelled. With `jitter` what failed
        waits a random part of its back-off. With `messages_max` a send to a full queue is refused; with `retention` a
        message that waits for so many seconds expires. `preset` names common settings, such as "bulk-import"."""
        if name in self.queues:
            raise BadApp(f"App {self.name!r} has two queues called {name!r}.", name=name)
        if len(self.queues) >= self.limits.queues_max:
            raise BadApp(f"App {self.name!r} has {len(self.queues):,} queues, as many as it may. Share some of them.")
        accepted = None if accepts is None else list(accepts)
        check_addressees(self.queues, name, accepted or ())
        usual = presets.preset(preset) if preset is not None else None
        settings = QueueSettings(
            name,
            parallel=parallel if parallel is not None or usual is None else usual.parallel,
            batch=batch if batch is not None else usual.batch if usual is not None else self.limits.batch,
            wait_seconds=wait if wait is not None else usual.wait_seconds if usual else self.limits.wait_seconds,
            rate=rate if rate is not None or usual is None else usual.rate,
            wall_seconds=self.limits.queue_invocation.wall_seconds if wall is None else wall,
            crashes_max=crashes_max,
            messages_max=messages_max,
            accepts=None if accepted is None else tuple(type_name(each) for each in accepted),
            **from_limits(
                self.limits,
                name,
                batch=batch,
                wait=wait,
                parallel=parallel,
                retries=retries,
                jitter=jitter,
                cpu=cpu,
                retention=retention,
            ),
        )
        self.queues[name] = Queue(self, settings, accepted)
        return self.queues[name]

    def watch(self, queue: Queue) -> None:
        """Somebody handles this queue's dead letters: they are told of in a queue of its own."""
        if f"{queue.name}-dlq" not in self.queues:
            self.queues[f"{queue.name}-dlq"] = dead_letter_queue(self, queue, self.dead)

    @checked
    def cron(
        self,
        expression: str,
        *,
        reason: str = "",
        name: str | None = None,
        when: Probe | None = None,
        ceiling: Ceiling | None = None,
        zone: str = "UTC",
        jitter: int = 0,
        catch_up: CatchUp = "once",
        overlap: Overlap = "skip",
        wall: float | None = None,
    ) -> Callable[[AnyTask], AnyTask]:
        """Run a task by the clock: `@app.cron("*/5 * * * *", reason="charts move slowly")`.

        `reason` says why it runs this often. `when` is a cheap query: the task runs if it returns true. `ceiling` is what
        it may use in a month. `catch_up` says what becomes of fires that passed while nothing ran, `overlap` of one that
        finds the last still running."""
        rule = Rule(expression=expression, zone=zone, jitter_seconds=jitter, catch_up=catch_up, overlap=overlap)
        return self.crons.add(rule, reason=reason, name=name, when=when, ceiling=ceiling, wall=wall)

    @checked
    def object(self, cls: type[AnyObject], *, tag: str | None = None, hint: str | None = None) -> Namespace[AnyObject]:
        """Objects of a class, by name: `counters = app.object(Counter)`, then `await counters["main"].add(1)`. A `tag` (v1,
        v2 ...) says in which order classes were introduced. `hint` is the place of those created without one."""
        if cls.__name__ in self._objects:
            raise BadApp(f"App {self.name!r} has two classes of objects called {cls.__name__!r}.")
        queue = self._internal_queue(settings_of(cls, self.limits), [Told, Alarmed])
        namespace = Namespace(cls, self.host, queue, hint)
        queue.on(Told, name="told")(namespace.told)
        queue.on(Alarmed, name="alarm")(namespace.alarmed)
        queue.on_dead(partial(parked, self))
        self._objects[cls.__name__] = ObjectClass(cls, tag)
        return namespace

    @checked
    def controller(
        self,
        name: str,
        *,
        mode: str = "pilot",
        parallel: Count = 32,
        rate: Range = (0.001, 1_000.0),
        timeout: Positive = 60.0,
        idle_backoff: Range = IDLE_BACKOFF,
        flush_after: FromZero = FLUSH_SECONDS,
        version: str = "1",
        alias: str | None = None,
        hint: str | None = None,
    ) -> Callable[[AnyController], AnyController]:
        """A loop that finds its own pace: `@app.controller("prices")` above a class derived from `Controller`.

        At most `parallel` items are under way, at a `rate` between these two a second; an item that takes longer than
        `timeout` seconds counts as unavailable. `mode` is "pilot", which finds a service's limit, or "zones". When `pick`
        returns nothing, it is called again after the first `idle_backoff`, then after twice as long each time up to the
        second. Finished items wait up to `flush_after` seconds for `after`, which gets them together.
        `alias` is a further path of its routes over HTTP, such as "/v1/prices"; `hint` is the place saved with it."""
        if alias is not None:
            self.routes.alias(alias, name)
        defined = partial(Definition, mode=mode, version=version, parallel=parallel, rate=rate, hint=hint)
        waits: dict[str, Any] = {"idle_backoff": idle_backoff, "flush_seconds": flush_after}
        return self.controllers.add(name, partial(defined, timeout_seconds=timeout, **waits))

    @checked
    def pace(
        self, name: str, *, rate: Range = (0.001, 1_000.0), parallel: Count = 32, max_wait: FromZero = 30.0
    ) -> Permits:
        """A pace that handlers share: `store = app.pace("shop.example")`, then `async with store.permit():` around each
        call. A call that would wait longer than `max_wait` seconds gets `Throttled`, which releases its message uncharged."""
        if name not in self._paces:
            if self._saved_paces is None:
                self._saved_paces = self.object(Remembered)
            saved = self._saved_paces[name]
            self._paces[name] = Permits(name, self.opened, saved, rate=rate, parallel=parallel, max_wait=max_wait)
        return self._paces[name]

    def _internal_queue(self, settings: QueueSettings, accepts: list[type]) -> Queue:
        self.queues[settings.name] = Queue(self, settings, accepts)
        return self.queues[settings.name]

    async def host(self) -> Host:
        """Where objects live in this process."""
        engine = await self.opened()
        if self._host is None or self._host.engine is not engine:
            self._host = Host(engine)
        return self._host

    async def desk(self) -> Desk:
        """Queues by their names, for whoever is not one of their handlers."""
        engine = await self.opened()
        if self._desk is None or self._desk.engine is not engine:
            self._desk = Desk(self, engine, self.queues)
        return self._desk

    # -- units of work ----------------------------------------------------------------------------------

    def unit(self, key: str | None = None) -> OpenUnit:
        """Opens a unit of work that commits at its end and raises there: `async with app.unit():`. Inside a handler it
        saves midway.

        With a key it commits once per message: on a repeat the block runs again, `unit.repeated` is true, and what it
        collects is dropped."""
        return OpenUnit(self.opened, key)

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
        if self._objects:
            (await self.host()).serve(worker)
        alerts = self.alerts.listen(engine)
        await self.crons.forget_others(engine)
        served = [queue for queue in self.queues.values() if queue.is_served]
        consumers = [Consumer(worker, engine, queue, patient=not until_idle) for queue in served]
        if self._stop_asked:
            worker.stop()
        known = [row for queue in served for row in queue.known()]
        kept = [queue.settings.retention_seconds for queue in self.queues.values()]
        shortest = min((seconds for seconds in kept if seconds is not None), default=None)
        standard = self.metrics.standard(engine, self.store(metered=False), self.name, self.controllers)
        beside = [self.controllers.watch(), self.expire_blobs(), standard.run(), alerts.run()]
        work = worker.run(consumers, known, expires_after=shortest, until_idle=until_idle, beside=beside)
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
        return store_at(self.database, synchronous=self.config.synchronous, **options)

    async def open(self, surroundings: Surroundings | None = None, *, migrate: bool = True) -> Engine:
        """Opens the database and applies what is pending of the migrations. Most programs need not call it."""
        surroundings = surroundings or Surroundings(faults=faults_from_environment(os.environ))
        if self.requires_trial:
            self.trial.record()
        lease_longest = max((queue.settings.lease_seconds for queue in self.queues.values()), default=930.0)
        store = self.store(faults=surroundings.faults)
        recorded: dict[str, Any] = {"service": self.name, "history": float(self.config.history)}
        engine = Engine(self, store, self.events, self.limits, surroundings, lease_longest=lease_longest, **recorded)
        await engine.open()
        try:
            settings = [queue.settings for queue in self.queues.values()]
            changed = await engine.in_writer(partial(engine.writer.workers.register_queues, settings))
            if changed:
                self.events.emit(QueuesRedeclared(self.name, changed))
            await self.crons.declare(engine)
            await introduce(engine, self._objects.values())
            if migrate:
                await self._migrate(engine)
        except BaseException:
            await engine.close()
            raise
        self._engine = engine
        self.routes.forget()
        self.metrics.begin(engine)
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
        """Lets go of the database. `async with app:` does it at the end of its block."""
        if self._host is not None:
            self._host.close()
            self._host = None
        if self._engine is not None:
            await self.metrics.end()
            await self._engine.close()
            self._engine = None
            self._opening = None

    async def __aenter__(self) -> App:
        await self.opened()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def migrations_found(self, dialect: str) -> list[Migration]:
        return found_in(self.migrations, dialect)

    async def _migrate(self, engine: Engine) -> list[str]:
        return await apply(engine, self.migrations_found(engine.store.dialect), counts_kept=self.db.counts_kept)
