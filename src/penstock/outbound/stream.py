"""A TCP connection as bytes, with or without TLS, that reads ahead of its user."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

import httpcore2

AHEAD_BYTES_MAX = 512 * 1024  # of an answer that is not read yet


class NetworkStream(asyncio.Protocol):
    """It reads ahead, so that a server that hangs up, or sends what was not asked for, is noticed while it rests."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._ahead = 0
        self._ended = False
        self._lost: Exception | None = None
        self._arrival: asyncio.Future[None] | None = None  # a reader waits for bytes
        self._room: asyncio.Future[None] | None = None  # the other side reads too slowly

    # -- told by asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._ahead += len(data)
        if self._ahead > AHEAD_BYTES_MAX:
            self._transport.pause_reading()
        _wake(self._arrival)

    def eof_received(self) -> None:
        self._ended = True
        _wake(self._arrival)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._lost = True, exc
        _wake(self._arrival)
        _wake(self._room)

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None

    # -- asked by the pool --------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """Return the next bytes, however many came at once; none at the end. The caller has a time limit of its own."""
        while not self._pieces:
            if self._lost is not None:
                raise httpcore2.ReadError(str(self._lost)) from self._lost
            if self._ended:
                return b""
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        piece = self._pieces.popleft()
        if self._ahead > AHEAD_BYTES_MAX >= self._ahead - len(piece):
            self._transport.resume_reading()
        self._ahead -= len(piece)
        return piece

    async def write(self, buffer: bytes) -> None:
        if self._transport.is_closing():
            raise httpcore2.WriteError("the connection is closed") from self._lost
        self._transport.write(buffer)
        if self._room is not None:
            await self._room

    def abort(self) -> None:
        self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Closes the connection when the handshake is given up: otherwise it would stay open for ever."""
        loop = asyncio.get_running_loop()
        plain = self._transport
        try:
            secure = await loop.start_tls(plain, self, context, server_hostname=host)
        except BaseException as error:
            plain.abort()
            if isinstance(error, OSError):  # those of TLS are
                raise httpcore2.ConnectError(str(error)) from error
            raise
        assert secure is not None
        self._transport = secure

    def is_readable(self) -> bool:
        """Return whether something came that is not read yet, or the other side has closed the connection."""
        return bool(self._pieces) or self._ended or self._transport.is_closing()


async def connected(address: str, port: int, *, seconds: float) -> NetworkStream:
    try:
        async with asyncio.timeout(seconds):
            _, stream = await asyncio.get_running_loop().create_connection(NetworkStream, address, port)
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout(f"{address} did not answer within {seconds:g} s") from error
    except OSError as error:
        raise httpcore2.ConnectError(str(error)) from error
    return stream


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
