"""A server with a worker, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

import penstock as ps
from penstock.web import KnownToken, hashed
from penstock.web.connection import AddressLimit, limited
from penstock.web.site import make_site
from penstock.web.ui.access import Access
from tests.extent import patient
from tests.ui.visiting import TOKENS

T = TypeVar("T")
START_SECONDS_MAX = 60.0


@dataclass(slots=True)
class Served:
    url: str
    app: ps.App
    loop: asyncio.AbstractEventLoop
    live: Any
    access: Access

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something with the app in the server's loop."""

        async def wait() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result(patient(START_SECONDS_MAX))


@contextmanager
def serving(app: ps.App, *, works: bool = True, port: int = 0, prefix: str = "") -> Iterator[Served]:
    """The server of the app's dashboard, below a prefix if one is given, and a worker unless told otherwise."""
    listening = socket.create_server(("127.0.0.1", port))
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in reversed(TOKENS.items())]
    access = Access(tokens, app.config.dashboard.hosts)
    site = make_site(app, tokens=tokens, access=access)
    mounted = Starlette(routes=[Mount(prefix, site)]) if prefix else site
    server = uvicorn.Server(
        uvicorn.Config(
            mounted, http=limited(AddressLimit()), log_config=None, access_log=False, lifespan="off", ws="none"
        )
    )
    opened, loops, failure = threading.Event(), [asyncio.new_event_loop()], list[BaseException]()

    async def serve() -> None:
        async with app:
            opened.set()
            running = asyncio.ensure_future(app.run()) if works else None
            await server.serve(sockets=[listening])
            if running is not None:
                app.stop()
                await running

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loops[0]) as runner:
                runner.run(serve())
        except BaseException as error:
            failure.append(error)
            opened.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert opened.wait(patient(START_SECONDS_MAX))
    try:
        url = "http://{}:{}".format(*listening.getsockname()) + prefix
        yield Served(url, app, loops[0], site.state.dashboard, access)
    finally:
        site.state.dashboard.close()
        server.should_exit = True
        thread.join(patient(START_SECONDS_MAX))
        listening.close()
    assert not failure, failure
