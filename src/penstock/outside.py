"""An app's ways to what is not in its database: files, pages, services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.blobs.folder import BlobFolder, Expiry
from penstock.gateway.budgets import Budgets
from penstock.gateway.models import Model
from penstock.gateway.paid import Gateway
from penstock.gateway.standins import StandIn
from penstock.metrics.standard import Datasets
from penstock.model.arguments import checked
from penstock.model.usage import Measure
from penstock.runtime.clock import ClockOf
from penstock.runtime.unit import current_unit

if TYPE_CHECKING:
    from penstock.config import Config
    from penstock.gateway.client import Client
    from penstock.gateway.mounts import Asgi
    from penstock.gateway.pages import PageCache
    from penstock.runtime.engine import Engine

BLOBS_LOOKS = 30  # in the time that the shortest-lived blobs are kept: what is too old stays a thirtieth longer at most
BLOBS_EVERY_SECONDS = (3_600.0, 86_400.0)


class Outside:
    """The part of an app that goes outside. Its clock is the app's."""

    name: str
    config: Config
    _engine: Engine | None

    def __init__(self, clock: ClockOf, opened: Callable[[], Awaitable[Engine]]) -> None:
        self._clock = clock
        self._opened = opened
        self._expiring: list[BlobFolder] = []
        self.metrics = Datasets(clock, opened)
        self.gateways: list[Gateway] = []
        self.standins: list[StandIn] = []

    def blobs(self, path: str | Path, *, expiries: Sequence[Expiry] = (), durable: bool = True) -> BlobFolder:
        """A folder of blobs: bytes under keys, each saved whole or not at all. What `expiries` call too old goes.
        What can be fetched again need not be `durable`: it is saved without waiting for the disk."""
        read = partial(self.metered, "blob_reads")
        folder = BlobFolder(path, clock=self._clock, expiries=expiries, durable=durable, on_read=read)
        if expiries:
            self._expiring.append(folder)
        return folder

    def metered(self, what: str, task: str = "") -> None:
        """Counts one of what is no statement towards the month, under the task that is at work. While no database is open
        nothing is counted."""
        if self._engine is not None and self._engine.is_open:
            named = task or getattr(current_unit.get(), "task", "")
            self._engine.meter.add(named, Measure(f"penstock:{what}", 1, 0, 0, 0, 0, 0.0))

    def http(self, **options: Any) -> Client:
        """The way out: a client that calls no private address, reads no endless answer, and raises what controllers and
        queues understand. See docs/guide/http-client.md for its options."""
        from penstock.gateway.client import Client  # only where somebody goes out: its libraries take a while to load

        return Client(clock=self._clock, **options)

    def stand_in(self, client: Client, *hosts: str, make: Callable[[Callable[[], float]], Asgi], module: str) -> None:
        """Names a local server that can stand in for these hosts: `make` gives it as an ASGI app that goes by a clock,
        `python -m module --port 0` as a program. It counts only where somebody says `--standins`."""
        self.standins.append(StandIn(client, hosts, make, module))

    def page_cache(self, blobs: BlobFolder, client: Client, **options: Any) -> PageCache:
        """Pages read through a folder of blobs: fetched only where none is kept that is young enough and good."""
        from penstock.gateway.pages import PageCache

        return PageCache(blobs, client, self._clock, **options)

    @checked
    def gateway(self, *, budgets: Budgets | None = None, service: str | None = None) -> Gateway:
        """The way to what costs money: `app.gateway(budgets=ps.Budgets(run=0.50, day=2.0, month=20.0))`, in dollars. Calls
        are filed and added up under `service`, by default the app's name."""
        made = Gateway(self._opened, service or self.name, budgets or Budgets())
        self.gateways.append(made)
        return made

    def model(self, name: str, *, gateway: Gateway, http: Client | None = None) -> Model:
        """A language model, as `[models.<name>]` in penstock.toml describes it. Without a key it is offline."""
        return Model(name, self.config.models.get(name), gateway, http, self.http)

    async def expire_blobs(self) -> None:
        """Removes what is too old, for as long as the app runs. Each look goes through all of them, so there are few."""
        while self._expiring:
            for folder in self._expiring:
                await folder.expire()
            shortest = min(expiry.seconds for folder in self._expiring for expiry in folder.expiries)
            least, most = BLOBS_EVERY_SECONDS
            await asyncio.sleep(min(most, max(least, shortest / BLOBS_LOOKS)))
