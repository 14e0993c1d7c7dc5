"""A real server on a port of this machine, in a thread of its own, for clients that speak only HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

import penstock as ps
from penstock.web import KnownToken, hashed
from penstock.web.connection import AddressLimit, limited
from penstock.web.site import make_site
from tests.extent import patient

TOKEN = "secret"
START_SECONDS_MAX = 30.0


@contextmanager
def served(app: ps.App, limit: AddressLimit = AddressLimit()) -> Iterator[str]:  # noqa: B008
    """The address of the server, which is gone again at the end of the block."""
    listening = socket.create_server(("127.0.0.1", 0))
    site = make_site(app, tokens=[KnownToken("test", hashed(TOKEN))])
    server = uvicorn.Server(
        uvicorn.Config(site, http=limited(limit), log_config=None, access_log=False, lifespan="off", ws="none")
    )
    opened = threading.Event()
    failure: list[BaseException] = []

    async def serve() -> None:
        async with app:
            opened.set()
            await server.serve(sockets=[listening])

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failure.append(error)
            opened.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert opened.wait(patient(START_SECONDS_MAX))
    try:
        # Whoever connects now waits in the backlog until the server accepts.
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join(patient(START_SECONDS_MAX))
        listening.close()
    assert not failure, failure
