"""An app: one database, its queues and handlers, and the ways to run it."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast, overload

from penstock.alerts.telling import Alerts, AnySink
from penstock.blobs.folder import BlobFolder, Expiry
from penstock.config import Config
from penstock.contracts.store import Store
from penstock.control.controller import FLUSH_SECONDS, IDLE_BACKOFF, Definition
from penstock.control.controllers import AnyController, Controllers
from penstock.control.permits import Permits, Remembered
from penstock.cron.crons import AnyTask, Crons
from penstock.cron.task import Probe
from penstock.data.database import Database
from penstock.data.migrations import found_in
from penstock.gateway.budgets import Budgets
from penstock.gateway.models import Model
from penstock.gateway.paid import Gateway
from penstock.gateway.standins import StandIn
from penstock.lifecycle import Lifecycle
from penstock.metrics.standard import Datasets
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
from penstock.objects.namespace import Alarmed, AnyObject, Namespace, ObjectClass, Told, namespace_of, settings_of
from penstock.queues.addressees import check_addressees
from penstock.queues.dying import dead_letter_queue
from penstock.queues.letters import DeadLetters
from penstock.queues.queue import Queue
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
    from penstock.gateway.client import Client
    from penstock.gateway.mounts import Asgi
    from penstock.gateway.pages import PageCache

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class App(Routed):
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
        self._life = Lifecycle(self)
        self._clock = self._life.clock
        self.host, self.desk = self._life.host, self._life.desk
        self.dead = DeadLetters(self.opened, self.queues)
        self.metrics = Datasets(self._clock, self.opened)
        self.gateways: list[Gateway] = []
        self.standins: list[StandIn] = []
        self._expiring: list[BlobFolder] = []
        self.crons = Crons(self.limits, self.opened, self._internal_queue, self.config.ceiling)
        self._objects: dict[str, ObjectClass] = {}
        self._paces: dict[str, Permits] = {}
        self._saved_paces: Namespace[Remembered] | None = None
        self.workflows = Workflows(self, self.limits, self._internal_queue)
        self.trial = Trial(self.object, self.db.now)
        asked = self.config.readiness.require_trial
        self.requires_trial = require_trial if asked is None else asked
        self.routes = Routes(self._clock)
        self.controllers = Controllers(self.opened, self.host, self.object)
        self.alerts = Alerts(self._internal_queue, self.object)
        self.sinks = self.alerts.sinks
        elsewhere = os.environ.get("PENSTOCK_DATABASE") or self.config.database or file or f"{name}.db"
        self.database = checked_address(elsewhere if database is None else database)
        beside = Path(sys._getframe(1).f_globals.get("__file__", ".")).parent
        self.migrations = Path(migrations) if migrations is not None else beside / "migrations"

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

    def _watch(self, queue: Queue) -> None:
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
        wall: float | None = None,
    ) -> Callable[[AnyTask], AnyTask]:
        """Run a task by the clock: `@app.cron("*/5 * * * *", reason="charts move slowly")`.

        `reason` says why it runs this often. `when` is a cheap query: the task runs if it returns true. `ceiling` is what
        it may use in a month. `catch_up` says what becomes of fires that passed while nothing ran, `overlap` of one that
        finds the last still running."""
        rule = Rule(expression=expression, zone=zone, jitter_seconds=jitter, catch_up=catch_up, overlap=overlap)
        return self.crons.add(rule, reason=reason, name=name, when=when, ceiling=ceiling, wall=wall)

    @overload
    def workflow(self, function: Code[P, R]) -> Workflow[P, R]: ...
    @overload
    def workflow(self, **options: Unpack[WorkflowOptions]) -> Callable[[Code[P, R]], Workflow[P, R]]: ...
    def workflow(self, function: Any = None, **options: Any) -> Any:
        """Register durable work in several steps.

        At most `parallel` runs are executed at once in a process, those of a lower `priority` number first. A step that
        fails is retried up to `retries` times and may take half of `wall` seconds. Ended runs are kept for `keep_days`.

        Example:
            @app.workflow
            async def research(run: ps.Run, cluster: int) -> None:
                await run.sleep(days=1)"""
        return self.workflows.add(function, **options)

    def on_alert(self, sink: AnySink) -> AnySink:
        """Register a receiver of alerts: dead letters, and every condition. A receiver that raises is retried.

        Example:
            @app.on_alert
            async def page(alert: ps.Alert) -> None:
                print(alert.subject)"""
        return self.alerts.on_alert(sink)

    async def alert(self, condition: str, title: str, text: str, *, key: str | None = None) -> bool:
        """Send an alert for a condition, at most once a day while it stays the same; return whether it was sent.

        A condition changes with its title or text, or only with `key`. A handler that fails afterwards has sent it too.

        Example:
        await app.alert("prices", "Prices are stale", "None changed for a week.")
        """
        return await self.alerts.alert(condition, title, text, key=key)

    async def recovered(self, condition: str, title: str | None = None, text: str = "") -> bool:
        """Report the end of a condition, once, if its alert was sent; return whether it was.

        Example:
        await app.recovered("prices")
        """
        return await self.alerts.recovered(condition, title, text)

    @checked
    def object(self, cls: type[AnyObject], *, tag: str | None = None, hint: str | None = None) -> Namespace[AnyObject]:
        """Objects of a class, by name: `counters = app.object(Counter)`, then `await counters["main"].add(1)`. A `tag` (v1,
        v2 ...) says in which order classes were introduced. `hint` is the place of those created without one."""
        if cls.__name__ in self._objects:
            raise BadApp(f"App {self.name!r} has two classes of objects called {cls.__name__!r}.")
        queue = self._internal_queue(settings_of(cls, self.limits), [Told, Alarmed])
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
        defined = partial(defined, timeout_seconds=timeout, idle_backoff=idle_backoff, flush_seconds=flush_after)
        return self.controllers.add(name, defined)

    @checked
    def pace(
        self, name: str, *, rate: Range = (0.001, 1_000.0), parallel: Count = 32, max_wait: FromZero = 30.0
    ) -> Permits:
        """A pace that handlers share: `store = app.pace("shop.example")`, then `async with store.permit():` around each
        call. A call that would wait longer than `max_wait` seconds gets `Throttled`, which releases its message uncharged."""
        if name not in self._paces:
            self._saved_paces = self._saved_paces or self.object(Remembered)
            saved = self._saved_paces[name]
            self._paces[name] = Permits(name, self.opened, saved, rate=rate, parallel=parallel, max_wait=max_wait)
        return self._paces[name]

    def _internal_queue(self, settings: QueueSettings, accepts: list[type]) -> Queue:
        self.queues[settings.name] = Queue(self, settings, accepts)
        return self.queues[settings.name]

    def blobs(self, path: str | Path, *, expiries: Sequence[Expiry] = (), durable: bool = True) -> BlobFolder:
        """Open a folder of blobs: bytes under keys, each saved whole or not at all. Those older than `expiries` allow are
        deleted. Without `durable` a blob is saved without waiting for the disk.

        Example:
            pages = app.blobs("pages", expiries=[ps.Expiry("html/", days=30)])"""
        read = partial(self._life.count, "blob_reads")
        folder = BlobFolder(path, clock=self._clock, expiries=expiries, durable=durable, on_read=read)
        if expiries:
            self._expiring.append(folder)
        return folder

    def http(self, **options: Any) -> Client:
        """Return an HTTP client that calls no private address and limits what it reads; the options are `ps.Client`'s.

        Example:
            web = app.http(user_agent="Market/1 (+https://market.example)")"""
        from penstock.gateway.client import Client  # its libraries take long to load

        return Client(clock=self._clock, **options)

    def stand_in(self, client: Client, *hosts: str, make: Callable[[Callable[[], float]], Asgi], module: str) -> None:
        """Name a fake server for these hosts, used only with `--standins`: `make` returns it as an ASGI app that takes a
        clock, and `python -m module --port 0` starts it as a program."""
        self.standins.append(StandIn(client, hosts, make, module))

    def page_cache(self, blobs: BlobFolder, client: Client, **options: Any) -> PageCache:
        """Return a cache of pages in a folder of blobs: a page is fetched only if no fresh and good copy is kept.

        Example:
            pages = app.page_cache(app.blobs("pages"), app.http())"""
        from penstock.gateway.pages import PageCache

        return PageCache(blobs, client, self._clock, **options)

    @checked
    def gateway(self, *, budgets: Budgets | None = None, service: str | None = None) -> Gateway:
        """Return the gateway to paid services, with budgets in dollars. Calls are filed under `service`.

        Example:
            paid = app.gateway(budgets=ps.Budgets(run=0.50, day=2.0, month=20.0))"""
        made = Gateway(self.opened, service or self.name, budgets or Budgets())
        self.gateways.append(made)
        return made

    def model(self, name: str, *, gateway: Gateway, http: Client | None = None) -> Model:
        """Return a language model, as `[models.<name>]` in penstock.toml describes it. Without a key it is offline.

        Example:
            analyst = app.model("analyst", gateway=app.gateway())"""
        return Model(name, self.config.models.get(name), gateway, http, self.http)

    def unit(self, key: str | None = None) -> OpenUnit:
        """Opens a unit of work that commits at its end and raises there: `async with app.unit():`. Inside a handler it
        saves midway.

        With a key it commits once per message: on a repeat the block runs again, `unit.repeated` is true, and what it
        collects is dropped."""
        return OpenUnit(self.opened, key)

    async def once(self, key: str, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Calls `function` unless its result is saved under this key; then returns that without calling it."""
        return cast(T, await run_once(await self.opened(), key, function, *arguments))

    async def run(self, *, grace_seconds: float | None = None, until_idle: bool = False) -> None:
        """Runs every queue that has handlers, until `stop` or cancellation, then hands back what it holds. With
        `until_idle` it stops by itself once nothing is left that is due."""
        grace = self.config.grace_seconds if grace_seconds is None else grace_seconds
        await self._life.run(self._objects, self._expiring, grace, until_idle)

    def stop(self) -> None:
        """Ask a running app to stop, or one that is about to run not to. A second call cuts the grace period short."""
        self._life.stop()

    def store(self, **options: Any) -> Store:
        """The store that this app's database is kept in."""
        return store_at(self.database, synchronous=self.config.synchronous, **options)

    async def open(self, surroundings: Surroundings | None = None, *, migrate: bool = True) -> Engine:
        """Opens the database and applies what is pending of the migrations. Most programs need not call it."""
        return await self._life.open(surroundings, migrate=migrate)

    async def opened(self) -> Engine:
        return await self._life.opened()

    async def close(self) -> None:
        """Close the database. `async with app:` does it at the end of its block."""
        await self._life.close()

    async def __aenter__(self) -> App:
        await self.opened()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def migrations_found(self, dialect: str) -> list[Migration]:
        return found_in(self.migrations, dialect)
