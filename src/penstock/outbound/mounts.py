"""An ASGI app in the place of a host: its answer streams as over a wire, so that every bound holds in a test as well."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx2

from penstock.outbound.addresses import Rules, port_of
from penstock.outbound.network import SENDING, Network

Event = MutableMapping[str, Any]
Asgi = Callable[[Event, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]

PIECES_AHEAD_MAX = 8  # that an app may send before they are read


class Mounted(httpx2.AsyncBaseTransport):
    """Answers requests from an app, which runs as a task of its own for as long as the answer is read."""

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions.get(SENDING, bool)()
        answer = _Answer(await request.aread())
        answer.task = asyncio.create_task(answer.run(self._app, _scope(request)), context=contextvars.Context())
        try:
            start = await answer.sent.get()
            if start is None or isinstance(start, BaseException):
                raise start or RuntimeError("The mounted app ended without an answer.")
        except BaseException:
            await answer.aclose()
            raise
        return httpx2.Response(start["status"], headers=start.get("headers", []), stream=answer)


class Forwarded(Network):
    """Sends what is for a host to a server on this machine that stands in for it."""

    def __init__(self, url: str) -> None:
        here = httpx2.URL(url)
        super().__init__(Rules(allow=[f"{here.host}:{port_of(here)}"]))
        self._here = here

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        here = self._here
        headers = [(name, here.netloc if name.lower() == b"host" else value) for name, value in request.headers.raw]
        return await self._send(request, here, headers)


class _Answer(httpx2.AsyncByteStream):
    task: asyncio.Task[None]

    def __init__(self, body: bytes) -> None:
        self.sent: asyncio.Queue[Event | Exception | None] = asyncio.Queue(PIECES_AHEAD_MAX)
        self._body: bytes | None = body
        self._gone = asyncio.Event()

    async def run(self, app: Asgi, scope: Event) -> None:
        try:
            await app(scope, self._receive, self.sent.put)
        except Exception as error:
            await self.sent.put(error)
        else:
            await self.sent.put(None)

    async def _receive(self) -> Event:
        if self._body is None:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (event := await self.sent.get()) is not None:
            if isinstance(event, Exception):
                raise event
            if body := event.get("body"):
                yield body
            if not event.get("more_body"):
                return

    async def aclose(self) -> None:
        self._gone.set()
        if self.task.cancel():  # it is not done yet
            await asyncio.wait([self.task])


def _scope(request: httpx2.Request) -> Event:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "server": (url.host, port_of(url)),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
