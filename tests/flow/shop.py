"""The app that the flow tests run: listings of a shop, the queue they wait in, and a look at what handlers wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import penstock as ps
from penstock.queues.queue import Queue
from tests.disk import Disk

EFFECT = "insert into effects (what) values (:what)"


class Listing(ps.Event):
    name: str


class Photo(ps.Event):
    name: str


Handle = Callable[[Listing, ps.Message[Listing]], Coroutine[Any, Any, object]]


def shop_app(handle: Handle | None = None, **settings: Any) -> tuple[ps.App, Queue[Any]]:
    """An app with the queue `listings`, whose handler is `handle`."""
    app = ps.App("shop")
    listings: ps.Queue[Any] = app.queue("listings", **settings)
    if handle is not None:
        listings.handler(Listing)(handle)
    return app, listings


class OnDisk(ps.App):
    """An app whose database lies on a disk that fails on command."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.disk = Disk()

    def _store(self, **options: object) -> object:  # type: ignore[override]
        return super()._store(**options, **self.disk.options)


async def effects(app: ps.App) -> list[str]:
    return sorted(await app.db.column("select what from effects"))


class Busy:
    """Counts how many handlers run at the same time."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.alone: list[str] = []

    async def work(self, name: str, seconds: float) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(seconds)
            if self.now == 1:
                self.alone.append(name)
        finally:
            self.now -= 1
