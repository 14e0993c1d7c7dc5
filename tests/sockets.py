"""A server on loopback for tests of clients: what it does with a connection is up to the test."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Its port. Whoever still talks at the end is cut off."""
    talking: set[asyncio.Task[Any]] = set()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            talking.add(task)
        try:
            await talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has seen enough
        finally:
            writer.close()

    listening = await asyncio.start_server(met, "127.0.0.1", 0, ssl=tls)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)


def free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port
