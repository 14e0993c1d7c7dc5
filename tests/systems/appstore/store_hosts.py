"""All of the store's hosts as one small ASGI app that answers by a rule and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.blobs.folder import BlobFolder
from penstock.outbound.client import Client
from penstock.outbound.mounts import Asgi
from penstock.outbound.pages import PageCache
from penstock.runtime.clock import HostClock
from penstock_systems.appstore.settings import Settings
from penstock_systems.appstore.store.client import AppStore
from tests.systems.appstore.conftest import HOSTS


@dataclass(frozen=True)
class Asked:
    """One request: the host, the path with its query, and the headers by their names in small letters."""

    host: str
    path: str
    headers: dict[str, str]


@dataclass
class Host:
    """`answer` gives the body for a path, or a status and a body. With `stands_in` another app answers. `robots` is the
    robots.txt of every host; who asks for that is not among those who `asked`."""

    answer: Callable[[str], bytes | tuple[int, bytes]] = lambda path: (404, b"")
    stands_in: Asgi | None = None
    seconds: float = 0.0
    robots: bytes | None = None
    asked: list[Asked] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        query = scope["query_string"].decode()
        path = scope["path"] + (f"?{query}" if query else "")
        if path == "/robots.txt":
            await _respond(send, *((404, b"") if self.robots is None else (200, self.robots)))
            return
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        self.asked.append(Asked(f"https://{scope['server'][0]}", path, headers))
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.stands_in is not None:
            await self.stands_in(scope, receive, send)
            return
        given = self.answer(path)
        await _respond(send, *(given if isinstance(given, tuple) else (200, given)))

    def __iter__(self) -> Iterator[str]:
        return (asked.path for asked in self.asked)


async def _respond(send: Any, status: int, body: bytes) -> None:
    kind = (b"content-type", b"text/javascript; charset=utf-8")
    await send({"type": "http.response.start", "status": status, "headers": [kind]})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Pace:
    """A pace that lets everybody in, and remembers who came."""

    items: list[str | None] = field(default_factory=list)

    def permit(self, item: str | None = None) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def permitted() -> Any:
            self.items.append(item)
            yield

        return permitted()


@asynccontextmanager
async def opened(host: Host, settings: Settings | None = None, **paces: Any) -> Any:
    """A store over this host, with a page cache in the folder that the test runs in."""
    chosen = settings or Settings()
    async with Client(user_agent=chosen.page_user_agent) as web:
        for origin in {*HOSTS, chosen.bases.itunes, chosen.bases.apps, chosen.bases.search}:
            web.mount(origin, host)
        blobs = BlobFolder(Path("pages"))
        yield AppStore(web, PageCache(blobs, web, HostClock()), chosen, **paces)
