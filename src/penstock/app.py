"""An app: one database, its queues and handlers, and the ways to run it."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, TypeVarTuple, Union, Unpack, cast, overload

from penstock.alerts.telling import Alerts
from penstock.config import Config
from penstock.connect.collector import MIGRATIONS, Collector
from penstock.contracts.store import Store
from penstock.control.controller import FLUSH_SECONDS, IDLE_BACKOFF, Definition
from penstock.control.controllers import AnyController, Controllers
from penstock.control.permits import Permits, Remembered
from penstock.cron.crons import AnyTask, Crons
from penstock.cron.task import Probe
from penstock.data.database import Database
from penstock.data.migrations import found_in
from penstock.lifecycle import Lifecycle
from penstock.metrics.standard import Datasets
from penstock.model.arguments import Count, PositiveSpan, Range, SpanFromZero, checked
from penstock.model.ceiling import Ceiling
from penstock.model.envelope import ANY_JSON
from penstock.model.errors import BadApp
from penstock.model.firing import FiringRule
from penstock.model.limits import Limits
from penstock.model.migration import Migration
from penstock.model.queue import QueueSettings, declared
from penstock.model.retry import Retry
from penstock.model.schedule import CatchUp, Overlap
from penstock.model.times import Span, in_seconds
from penstock.objects.namespace import Alarmed, AnyObject, Namespace, ObjectClass, TellCall, namespace_of, settings_of
from penstock.outbound.paid import Gateway
from penstock.outbound.standins import StandIn
from penstock.outside import Outside
from penstock.pages.page import AppPage, Paged
from penstock.queues.dead_letter_queue import dead_letter_queue
from penstock.queues.letters import DeadLetters
from penstock.queues.queue import Queue, check_addressees
from penstock.readiness.trial import Trial
from penstock.routes import Routed, Routes
from penstock.runtime.engine import Engine
from penstock.runtime.events import Events
from penstock.runtime.surroundings import Surroundings
from penstock.runtime.unit import OpenUnit, run_once
from penstock.stores import checked_address, checked_name, store_at
from penstock.workflows.workflow import Workflow
from penstock.workflows.workflows import Code, WorkflowOptions, Workflows

if TYPE_CHECKING:
    from penstock.services.outbox import ServiceGroup
    from penstock.services.service import Service
    from penstock.topics.topic import Topic

if TYPE_CHECKING:
    from typing_extensions import TypeForm  # known to every type checker; nothing to install
    from typing_extensions import TypeVar as TypeVarWithDefault

    Payload = TypeVarWithDefault("Payload", default=dict[str, Any])
else:
    Payload, TypeForm = TypeVar("Payload"), Union  # `Union[Payload]` says nothing, so nothing is checked at run time

TOPIC_MIGRATIONS = Path(__file__).parent / "topics" / "migrations"
APART = "PENSTOCK_APART"  # with 1, the services of an app have databases of their own
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class App(Outside, Routed, Paged):
    """`App("market")` keeps everything in market.db in the current folder, or in `file`, or where PENSTOCK_DATABASE or
    penstock.toml says. `database` overrides both. With `require_trial` it is not let loose before a trial has
    passed, unless penstock.toml says otherwise. With `serve`, `penstock run` also serves its routes. With `apart` each of
    its services has a database of its own, as with `penstock run --apart`."""

    def __init__(
        self,
        name: str,
        *,
        database: str | Path | None = None,
        file: str | Path | None = None,
        migrations: str | Path | None = None,
        config: Config | None = None,
        require_trial: bool = False,
        serve: bool = False,
        apart: bool | None = None,
    ) -> None:
        self.serves = serve
        self.services: dict[str, Service] = {}
        self.folders: dict[str, Path] = {}  # of the migrations of services in this database
        self.topics: dict[str, Topic[Any]] = {}
        self.keeps_order = False  # a queue of it, or of a service beside it, has `order_by`
        self.root: App = self  # the app that it is a service of, or itself
        self.keeper: App = self  # the app whose database this one uses
        self.is_apart = os.environ.get(APART, "") == "1" if apart is None else apart
        self.group: ServiceGroup | None = None
        self.answering: Any = None  # an ASGI app that answers other services in a test
        self.name = checked_name(name)
        self.config = config or Config.load()
        self.limits: Limits = self.config.limits
        self.events = Events()
        self.db = Database(self)
        self.queues: dict[str, Queue[Any]] = {}
        self._life = Lifecycle(self)
        self._clock = self._life.clock
        self.host, self.desk = self._life.host, self._life.desk
        self.dead = DeadLetters(self._opened, self.queues)
        self.metrics = Datasets(self._clock, self._opened)
        self.gateways: list[Gateway] = []
        self.standins: list[StandIn] = []
        self._expiring, self._blob_folders = [], []
        self.crons = Crons(self.limits, self._opened, self._internal_queue, self.config.ceiling)
        self._objects: dict[str, ObjectClass] = {}
        self._paces: dict[str, Permits] = {}
        self._saved_paces: Namespace[Remembered] | None = None
        self.workflows = Workflows(self, self.limits, self._internal_queue)
        self.trial = Trial(self.object, self.db.now)
        asked = self.config.readiness.require_trial
        self.requires_trial = require_trial if asked is None else asked
        self.routes = Routes(self._clock)
        self.pages: dict[str, AppPage] = {}
        self.controllers = Controllers(self._opened, self.host, self.object)
        self.sources = Collector(self, self.http, self.pace)
        self.alerts = Alerts(self._internal_queue, self.object)
        self.sinks = self.alerts.sinks
        elsewhere = os.environ.get("PENSTOCK_DATABASE") or self.config.database or file or f"{name}.db"
        self.database = checked_address(elsewhere if database is None else database)
        beside = Path(sys._getframe(1).f_globals.get("__file__", ".")).parent
        self.migrations = Path(migrations) if migrations is not None else beside / "migrations"
        if self.is_apart and type(self) is App:
            from penstock.services.outbox import ServiceGroup

            self.group = ServiceGroup(self)
        self._alert_by_channels()

    def service(
        self,
        name: str,
        *,
        uses: Iterable[str] = (),
        tables: str = "",
        infrastructure: bool = False,
        migrations: str | Path | None = None,
        port: int | None = None,
    ) -> Service:
        """Declare a service: a part of the app with its own queues, tables and routes, and with every method of an app.

        Services send each other messages. `uses` names those that it calls for an answer through `service.bindings`; only
        `infrastructure` may be called with more than GET. The names of its tables begin with `tables`. By default all
        services share one database; `penstock run --apart` gives each a process, a database and a `port` of its own.

        Example:
            research = app.service("gatherfeed", tables="gf_", uses=["gateway"])"""
        from penstock.services.service import make_service

        options = {"uses": uses, "tables": tables, "infrastructure": infrastructure}
        return make_service(self, name, migrations=migrations, port=port, **options)

    @checked
    def queue(
        self,
        name: str,
        payload_type: TypeForm[Payload] = ANY_JSON,  # type: ignore[assignment]
        *,
        preset: str | None = None,
        batch: int | None = None,
        batch_wait: Span | None = None,
        parallel: int | None = None,
        reason: str | None = None,
        rate: float | None = None,
        retries: int | Retry | None = None,
        jitter: bool = False,
        timeout: Span | None = None,
        cpu_timeout: Span | None = None,
        crashes_max: int = 3,
        messages_max: int | None = None,
        retention: Span | None = None,
        order_by: Callable[[Any], str] | None = None,
    ) -> Queue[Payload]:
        """Declare a durable queue of messages of one type, or of a union of types. Without a type it takes dicts.

        A batch is delivered when it has `batch` messages or its oldest has waited `batch_wait`. At most `parallel` handlers
        run at once, by default as many as the backlog asks for; `penstock check` asks for the `reason` of a number. At most
        `rate` messages start in a second. A message that fails is retried up to `retries` times; with `jitter` it waits a
        random part of its back-off. A handler that runs longer than `timeout`, or holds the processor longer than
        `cpu_timeout`, is cancelled. A send is refused once `messages_max` messages wait; one that waits longer than
        `retention` expires. `preset` names common settings, such as "bulk-import". Durations are seconds or a timedelta.
        With `order_by`, which returns the key of a payload, messages of one key are handled in the order of their sends.

        Example:
            orders = app.queue("orders", Order, retries=5, timeout=60)"""
        if name in self.queues:
            raise BadApp(f"App {self.name!r} has two queues called {name!r}.", name=name)
        if len(self.queues) >= self.limits.queues_max:
            raise BadApp(f"App {self.name!r} has {len(self.queues):,} queues, the maximum. Combine some of them.")
        settings = partial(declared, self.limits, name, preset=preset, batch=batch, batch_wait_seconds=batch_wait)
        settings = partial(settings, retries=retries, jitter=jitter, crashes_max=crashes_max, messages_max=messages_max)
        settings = partial(settings, parallel=parallel, reason=reason, rate=rate, retention_seconds=retention)
        queue = Queue[Payload](self, settings(timeout_seconds=timeout, cpu_timeout_seconds=cpu_timeout), payload_type)
        check_addressees(self.queues, queue)
        if order_by is not None:
            self._keep_order(queue, order_by)
        self.queues[name] = queue
        return queue

    def _keep_order(self, queue: Queue[Any], order_by: Callable[[Any], str]) -> None:
        from penstock.topics.order import Order

        self.root.keeps_order = self.keeper.keeps_order = True
        queue.order = Order(self, queue.name, order_by)

    def topic(
        self,
        name: str,
        payload_type: TypeForm[Payload],
        *,
        retention: Span | None = None,
        order_by: Callable[[Payload], str] | None = None,
    ) -> Topic[Payload]:
        """Declare a topic: every event that is published is handled by each of its subscriptions, at its own pace.

        `order_by` returns the key of an event, for subscriptions that are `ordered`. With `retention`, published events are
        kept for so long, and a subscription can be given them again.

        Example:
            published = app.topic("published", Published, retention=7 * 86_400, order_by=lambda event: event.brand)"""
        from penstock.topics.topic import make_topic

        return make_topic(self, name, payload_type, retention=retention, order_by=order_by)

    def _watch(self, queue: Queue[Any]) -> None:
        """Deliver this queue's dead letters to a queue of their own, for its handler of dead letters."""
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
        timeout: Span | None = None,
    ) -> Callable[[AnyTask], AnyTask]:
        """Run a task by the clock: `@app.cron("*/5 * * * *", reason="charts move slowly")`.

        `reason` says why it runs this often. `when` is a cheap query: the task runs if it returns true. `ceiling` is what
        it may use in a month. `catch_up` says what becomes of fires that passed while nothing ran, `overlap` of one that
        finds the last still running."""
        rule = FiringRule(expression=expression, zone=zone, jitter_seconds=jitter, catch_up=catch_up, overlap=overlap)
        return self.crons.add(rule, reason=reason, name=name, when=when, ceiling=ceiling, timeout=timeout)

    @overload
    def workflow(self, function: Code[P, R]) -> Workflow[P, R]: ...
    @overload
    def workflow(self, **options: Unpack[WorkflowOptions]) -> Callable[[Code[P, R]], Workflow[P, R]]: ...
    def workflow(self, function: Any = None, **options: Any) -> Any:
        """Register durable work in several steps.

        At most `parallel` runs are executed at once in a process, those of a lower `priority` number first. A step that
        fails is retried up to `retries` times and may take half of `timeout`. Ended runs are kept for `keep_days`.

        Example:
            @app.workflow
            async def research(run: ps.Run, cluster: int) -> None:
                await run.sleep(days=1)"""
        if function is None:
            return partial(self.workflow, **options)
        return self.workflows.add(function, **options)

    @checked
    def object(
        self,
        cls: type[AnyObject],
        *,
        tag: str | None = None,
        hint: str | None = None,
        retries: int | Retry | None = None,
    ) -> Namespace[AnyObject]:
        """Objects of a class, by name: `counters = app.object(Counter)`, then `await counters["main"].add(1)`. A `tag` (v1,
        v2 ...) says in which order classes were introduced. `hint` is the place of those created without one.
        Alarms and `tell` are retried up to `retries` times."""
        if cls.__name__ in self._objects:
            raise BadApp(f"App {self.name!r} has two classes of objects called {cls.__name__!r}.")
        queue = self._internal_queue(settings_of(cls, self.limits, retries), TellCall | Alarmed)
        self._objects[cls.__name__] = ObjectClass(cls, tag)
        return namespace_of(self, cls, queue, hint)

    @checked
    def controller(
        self,
        name: str,
        *,
        mode: str = "pilot",
        parallel: Count = 32,
        rate: Range = (0.001, 1_000.0),
        timeout: PositiveSpan = 60.0,
        idle_backoff: tuple[PositiveSpan, PositiveSpan] = IDLE_BACKOFF,
        flush_after: SpanFromZero = FLUSH_SECONDS,
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
        defined = partial(defined, timeout_seconds=in_seconds(timeout), flush_seconds=in_seconds(flush_after))
        defined = partial(defined, idle_backoff=(in_seconds(idle_backoff[0]), in_seconds(idle_backoff[1])))
        return self.controllers.add(name, defined)

    @checked
    def pace(
        self, name: str, *, rate: Range = (0.001, 1_000.0), parallel: Count = 32, max_wait: SpanFromZero = 30.0
    ) -> Permits:
        """A pace that handlers share: `store = app.pace("shop.example")`, then `async with store.permit():` around each
        call. A call that would wait longer than `max_wait` seconds gets `Throttled`, which releases its message uncharged."""
        if name not in self._paces:
            self._saved_paces = self._saved_paces or self.object(Remembered)
            saved = self._saved_paces[name]
            self._paces[name] = Permits(
                name, self._opened, saved, rate=rate, parallel=parallel, max_wait=in_seconds(max_wait)
            )
        return self._paces[name]

    def _internal_queue(self, settings: QueueSettings, payload_type: Any) -> Queue[Any]:
        self.queues[settings.name] = Queue(self, settings, payload_type)
        return self.queues[settings.name]

    def unit(self, key: str | None = None) -> OpenUnit:
        """Opens a unit of work that commits at its end and raises there: `async with app.unit():`. Inside a handler it
        saves midway.

        With a key it commits once per message: on a repeat the block runs again, `unit.repeated` is true, and what it
        collects is dropped."""
        return OpenUnit(self._opened, key)

    async def once(self, key: str, function: Callable[[*Ts], Awaitable[T]], *arguments: *Ts) -> T:
        """Calls `function` unless its result is saved under this key; then returns that without calling it."""
        return cast(T, await run_once(await self._opened(), key, function, *arguments))

    async def run(self, *, grace_seconds: float | None = None, until_idle: bool = False) -> None:
        """Runs every queue that has handlers, until `stop` or cancellation, then releases its claims. With
        `until_idle` it stops by itself once nothing is left that is due."""
        grace = self.config.grace_seconds if grace_seconds is None else grace_seconds
        await self._life.run(self._objects, self._expiring, grace, until_idle)

    def stop(self) -> None:
        """Ask a running app to stop, or one that is about to run not to. A second call cuts the grace period short."""
        self._life.stop()

    def _store(self, **options: Any) -> Store:
        """The store that this app's database is kept in."""
        return store_at(self.database, synchronous=self.config.synchronous, **options)

    async def _open(self, surroundings: Surroundings | None = None, *, migrate: bool = True) -> Engine:
        """Opens the database and applies what is pending of the migrations. Most programs need not call it."""
        if self.group is not None:
            self.group.declare(self)
        return await self._life.open(surroundings, migrate=migrate)

    async def _opened(self) -> Engine:
        return await self._life.opened()

    async def close(self) -> None:
        """Close the database. `async with app:` does it at the end of its block."""
        await self._life.close()

    async def __aenter__(self) -> App:
        await self._opened()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def _migrations_found(self, dialect: str) -> list[Migration]:
        own = found_in(MIGRATIONS, dialect) if self.sources.sources else []
        if self.topics or self.keeper.keeps_order or self.root.keeps_order:
            own += found_in(TOPIC_MIGRATIONS, dialect)
        folders = dict.fromkeys([self.migrations, *self.folders.values()])
        return own + [migration for folder in folders for migration in found_in(folder, dialect)]
