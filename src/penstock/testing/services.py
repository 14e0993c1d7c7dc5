"""An app under test whose services run apart: each has its own database and machine, and all share one virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from penstock.app import App
from penstock.model.errors import BadApp
from penstock.model.limits import near
from penstock.model.times import in_seconds
from penstock.queues.queue import Queue
from penstock.services.peers import KEY, service_key
from penstock.services.service import members
from penstock.testing.harness import TestApp, drain, pass_until

SEEDS_APART = 1_000_003  # between the seeds of two services: their ids must differ


class TestServices:
    """Runs every service of an app with one worker: `async with TestServices(app) as town:`, then `town["gatherfeed"]` is
    the `TestApp` of one. Calls and messages between services go through the routes of the other, without a network. Where
    the services share a database there is one `TestApp`, whatever name is asked for. `shuffled` and `duplicated` are those
    of `TestApp`."""

    __test__ = False
    new_database: ClassVar[Callable[[str], str] | None] = None  # where the services of a test keep theirs, by name

    def __init__(
        self,
        app: App,
        *,
        seed: int = 0,
        start: datetime | None = None,
        shuffled: bool = False,
        duplicated: bool = False,
        folder: Path | None = None,
    ) -> None:
        self.app = app
        made = TestServices.new_database
        self.shops: Mapping[str, TestApp] = {
            name: TestApp(
                each,
                seed=seed + number * SEEDS_APART,
                start=start,
                shuffled=shuffled,
                duplicated=duplicated,
                folder=folder,
                database=None if made is None else made(name),
            )
            for number, (name, each) in enumerate(members(app).items())
        }
        self._lost: set[str] = set()
        self._stack = AsyncExitStack()

    def __getitem__(self, name: str) -> TestApp:
        if name in self.shops:
            return self.shops[name]
        if not self.app.is_apart and (name in self.app.services or name == self.app.name):
            return self.shops[self.app.name]
        raise BadApp(f"There is no service {name!r}. {near(name, self.shops)}")

    def of(self, queue: Queue[Any]) -> TestApp:
        """Return the TestApp whose database has this queue."""
        return next(shop for shop in self.shops.values() if shop.app.queues.get(queue.name) is queue)

    async def __aenter__(self) -> TestServices:
        for name, shop in self.shops.items():
            if shop.app.group is not None:
                shop.app.group.declare(shop.app)
            await self._stack.enter_async_context(shop)
            shop.app.answering = _Door(self, name, shop)
        return self

    async def __aexit__(self, *error: Any) -> None:
        for shop in self.shops.values():
            shop.app.answering = None
        await self._stack.__aexit__(*error)

    def cut_off(self, name: str) -> None:
        """No service reaches this one until `reach` is called. It runs on."""
        self._lost.add(name)

    def reach(self, name: str) -> None:
        """Let the other services reach this one again."""
        self._lost.discard(name)

    def is_reached(self, name: str) -> bool:
        """Return whether the other services reach this one."""
        return name not in self._lost

    async def advance(
        self, seconds: float | timedelta = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Let everything due up to then happen in all services, in order."""
        await self._until(self._first._after(in_seconds(seconds) + 60 * minutes + 3_600 * hours + 86_400 * days))

    async def drain(self) -> None:
        """Run until no queue of any service has a message that is ready or under way."""
        await drain(self.shops.values(), self._until)

    async def _until(self, when: float) -> None:
        await pass_until(self.shops.values(), when)

    @property
    def _first(self) -> TestApp:
        return next(iter(self.shops.values()))


class _Door:
    """The routes of a service, for the other services: they are answered in its worker's process, if that lives."""

    def __init__(self, town: TestServices, name: str, shop: TestApp) -> None:
        self._town = town
        self._name = name
        self._shop = shop
        from penstock.web import KnownToken, hashed
        from penstock.web.site import make_site  # its libraries take long to load

        self._site = make_site(shop.app, tokens=[KnownToken(KEY, hashed(service_key()), ())])

    async def __call__(self, *given: Any) -> None:
        process = self._shop._worker
        if process.dead or process.engine is None or not self._town.is_reached(self._name):
            raise ConnectionRefusedError(f"{self._name} does not run")
        died = asyncio.get_running_loop().create_future()
        process.when_killed.append(lambda: None if died.done() else died.set_result(None))
        answering = process.start(self._site(*given))
        # Not awaited itself: a task of a process that was killed never ends, not even when it is cancelled.
        await asyncio.wait({answering, died}, return_when=asyncio.FIRST_COMPLETED)
        if process.dead:
            raise ConnectionResetError(f"{self._name} was killed")
        await answering
