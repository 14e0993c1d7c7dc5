"""An app's ways outside: other services, files, and the people it reports to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from penstock.alerts.telling import Alerts, AnySink
from penstock.blobs.folder import BlobFolder, Expiry
from penstock.config import Config
from penstock.connect.collector import CRON, GRACE_SECONDS, TASK, Collector
from penstock.connect.connector import Connector
from penstock.connect.source import Source
from penstock.cron.crons import Crons
from penstock.cron.task import Tick
from penstock.model.arguments import PositiveSpan, checked
from penstock.model.errors import BadApp
from penstock.model.firing import FiringRule
from penstock.model.times import Span, in_seconds
from penstock.outbound.budgets import Budgets
from penstock.outbound.models import Model
from penstock.outbound.paid import Gateway
from penstock.outbound.standins import StandIn
from penstock.runtime.clock import ClockOf
from penstock.runtime.events import Events

if TYPE_CHECKING:
    from penstock.lifecycle import Lifecycle
    from penstock.outbound.client import Client, ClientOptions
    from penstock.outbound.mounts import Asgi
    from penstock.outbound.pages import PageCache


class Outside:
    """The part of an app that reaches other services, files and people."""

    name: str
    config: Config
    alerts: Alerts
    events: Events
    crons: Crons
    sources: Collector
    gateways: list[Gateway]
    standins: list[StandIn]
    _clock: ClockOf
    _expiring: list[BlobFolder]
    _blob_folders: list[BlobFolder]
    _life: Lifecycle

    def blobs(self, path: str | Path, *, expiries: Sequence[Expiry] = (), durable: bool = True) -> BlobFolder:
        """Open a folder of blobs: bytes under keys, each saved whole or not at all. Those older than `expiries` allow are
        deleted. Without `durable` a blob is saved without waiting for the disk.

        Example:
            pages = app.blobs("pages", expiries=[ps.Expiry("html/", days=30)])"""
        read, write = (partial(self._life.count, what) for what in ("blob_reads", "blob_writes"))
        folder = BlobFolder(path, clock=self._clock, expiries=expiries, durable=durable, on_read=read, on_write=write)
        self._blob_folders.append(folder)
        if expiries:
            self._expiring.append(folder)
        return folder

    def http(self, **options: Unpack[ClientOptions]) -> Client:
        """Return an HTTP client that calls no private address and limits what it reads; the options are `ps.Client`'s.

        Example:
            web = app.http(user_agent="Market/1 (+https://market.example)")"""
        from penstock.outbound.client import Client  # its libraries take long to load

        client = Client(clock=self._clock, **options)
        client.events = self.events
        return client

    def stand_in(self, client: Client, *hosts: str, make: Callable[[Callable[[], float]], Asgi], module: str) -> None:
        """Name a fake server for these hosts, used only with `--standins`: `make` returns it as an ASGI app that takes a
        clock, and `python -m module --port 0` starts it as a program."""
        self.standins.append(StandIn(client, hosts, make, module))

    def page_cache(
        self, blobs: BlobFolder, client: Client, *, max_age: Span = 86_400.0, debug: str = "debug/"
    ) -> PageCache:
        """Return a cache of pages in a folder of blobs: a page is fetched only if no good copy is kept that is
        younger than `max_age`. What was no good page is kept under `debug`.

        Example:
            pages = app.page_cache(app.blobs("pages"), app.http())"""
        from penstock.outbound.pages import PageCache

        return PageCache(blobs, client, self._clock, max_age=in_seconds(max_age), debug=debug)

    def connector(self, given: Connector | str | Path | Mapping[str, Any], *, http: Client | None = None) -> Source:
        """Register a source: a `Connector`, a TOML file, or a dict with the same words. The cron task `collect` runs it
        at its cadence, with `http` or a client that all connectors share.

        Example:
            offers = app.connector("connectors/offers.toml")"""
        if isinstance(given, Connector):
            connector = given
        else:
            from penstock.connect.declared import DeclaredConnector

            connector = DeclaredConnector(given)
        if not self.sources.sources:
            self.collector()
            self.alerts.remember()
        return self.sources.register(connector, http)

    @checked
    def collector(
        self, cron: str | None = None, *, parallel: int | None = None, budget: PositiveSpan | None = None
    ) -> Collector:
        """Set how sources run: `cron` is when the task `collect` looks for those that are due, every 30 minutes by default;
        at most `parallel` run at once, 4 by default; none starts later than `budget` seconds into a run, 25 by default."""
        collector = self.sources
        collector.parallel = parallel or collector.parallel
        collector.budget = in_seconds(budget) if budget is not None else collector.budget
        if TASK in self.crons.tasks:
            if cron is not None:
                raise BadApp(
                    "The collector has its schedule already. Call `app.collector(...)` before `app.connector`."
                )
            return collector
        timeout = collector.budget + 2 * GRACE_SECONDS
        rule = FiringRule(expression=cron or CRON)
        declare = self.crons.add(
            rule,
            reason="sources are read at their own cadence",
            name=TASK,
            when=collector.is_any_due,
            ceiling=None,
            timeout=timeout,
        )

        async def collect(tick: Tick) -> None:
            await collector.run(tick)

        declare(collect)
        return collector

    @checked
    def gateway(self, *, budgets: Budgets | None = None, service: str | None = None) -> Gateway:
        """Return the gateway to paid services, with budgets in dollars. Calls are filed under `service`.

        Example:
            paid = app.gateway(budgets=ps.Budgets(run=0.50, day=2.0, month=20.0))"""
        made = Gateway(self._life.opened, service or self.name, budgets or Budgets())
        self.gateways.append(made)
        return made

    def model(self, name: str, *, gateway: Gateway, http: Client | None = None) -> Model:
        """Return a language model, as `[models.<name>]` in penstock.toml describes it. Without a key it is offline.

        Example:
            analyst = app.model("analyst", gateway=app.gateway())"""
        return Model(name, self.config.models.get(name), gateway, http, self.http)

    def on_alert(self, sink: AnySink) -> AnySink:
        """Register a receiver of alerts: dead letters, and every condition. A receiver that raises is retried.

        Example:
            @app.on_alert
            async def page(alert: ps.Alert) -> None:
                print(alert.subject)"""
        return self.alerts.on_alert(sink)

    def _alert_by_channels(self) -> None:
        """Send alerts to the channels of penstock.toml that ask for them."""
        for config in self.config.channels.values():
            if config.alerts:
                from penstock.channels.make import make_channel

                self.on_alert(make_channel(config, self.http(), trust_apprise=self.config.trust_apprise))

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
