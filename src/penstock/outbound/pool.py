"""Connections that are kept for the next request to the same place. One carries one request at a time, over HTTP/1.1."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

import h11
import httpcore2
import httpx2

from penstock.outbound.stream import NetworkStream

CONNECTIONS_MAX = 100
IDLE_CONNECTIONS_MAX = 20
IDLE_SECONDS = 15.0
HEAD_BYTES_MAX = 100 * 1024  # of an answer, before its body


class Endpoint(NamedTuple):
    """Where a connection leads to."""

    scheme: str
    host: str
    port: int


class KeptConnection:
    """One connection, and the parser of what comes over it."""

    def __init__(self, endpoint: Endpoint, stream: NetworkStream) -> None:
        self.endpoint = endpoint
        self.idle_until = 0.0
        self._stream = stream
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)

    async def ask(self, request: h11.Request, content: bytes) -> h11.Response:
        """Send a request, and return the head of its answer."""
        try:
            parts = [self._parser.send(request), self._parser.send(h11.Data(content)) if content else b""]
            parts.append(self._parser.send(h11.EndOfMessage()))
        except h11.LocalProtocolError as error:
            raise httpcore2.LocalProtocolError(str(error)) from error
        with suppress(httpcore2.WriteError):  # a server may answer before it has read everything, and hang up
            await self._stream.write(b"".join(part for part in parts if part))
        while isinstance(event := await self.event(), h11.InformationalResponse):
            pass
        assert isinstance(event, h11.Response)
        return event

    async def event(self) -> object:
        """Return the next part of the answer."""
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                raise httpcore2.RemoteProtocolError(str(error)) from error
            if event is not h11.NEED_DATA:
                return event
            data = await self._stream.read()
            if not data and self._parser.their_state is h11.SEND_RESPONSE:
                raise httpcore2.RemoteProtocolError("The server closed the connection without an answer")
            self._parser.receive_data(data)

    def is_reusable(self) -> bool:
        """Return whether the answer was read to its end, and nothing came behind it that would be taken for the next one."""
        parser = self._parser
        if not (parser.our_state is parser.their_state is h11.DONE) or parser.trailing_data[0]:
            return False
        parser.start_next_cycle()
        return not self._stream.is_readable()

    def is_alive(self, now: float) -> bool:
        return now < self.idle_until and not self._stream.is_readable()

    def close(self) -> None:
        self._stream.abort()


class Pool:
    """The connections of one client. `dial` opens one to a host and a port whose address it checks."""

    def __init__(self, dial: Callable[[str, int], Awaitable[NetworkStream]], tls: ssl.SSLContext) -> None:
        tls.minimum_version = max(tls.minimum_version, ssl.TLSVersion.TLSv1_2)
        tls.set_alpn_protocols(["http/1.1"])
        self._dial = dial
        self._tls = tls
        self._idle: deque[KeptConnection] = deque()  # the one that was used last is at the end
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def send(
        self, endpoint: Endpoint, request: h11.Request, content: bytes, on_sent: Callable[[], object] | None
    ) -> httpx2.Response:
        """Send a request; return its answer, whose stream has to be closed."""
        await self._enter()
        connection: KeptConnection | None = None
        try:
            connection = self._found(endpoint) or await self._opened(endpoint)
            if on_sent is not None:
                on_sent()
            head = await connection.ask(request, content)
        except BaseException:
            self._leave(connection)
            raise
        return httpx2.Response(
            head.status_code, headers=head.headers.raw_items(), stream=_Body(connection, self._leave)
        )

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _enter(self) -> None:
        """Wait until there may be one connection more."""
        if self._busy >= CONNECTIONS_MAX:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._next()
                raise
        else:
            self._busy += 1

    def _next(self) -> None:
        """Pass the place of a request on to the one that waits longest."""
        while self._waiting:
            if not (turn := self._waiting.popleft()).done():
                turn.set_result(None)
                return
        self._busy -= 1

    def _found(self, endpoint: Endpoint) -> KeptConnection | None:
        now = asyncio.get_running_loop().time()
        while self._idle and not self._idle[0].is_alive(now):
            self._idle.popleft().close()
        for connection in reversed(self._idle):
            if connection.endpoint == endpoint:
                self._idle.remove(connection)
                if connection.is_alive(now):
                    return connection
                connection.close()
                return self._found(endpoint)
        if self._idle and self._busy + len(self._idle) > CONNECTIONS_MAX:
            self._idle.popleft().close()
        return None

    async def _opened(self, endpoint: Endpoint) -> KeptConnection:
        stream = await self._dial(endpoint.host, endpoint.port)
        if endpoint.scheme == "https":
            await stream.start_tls(self._tls, endpoint.host)
        return KeptConnection(endpoint, stream)

    def _leave(self, connection: KeptConnection | None) -> None:
        if connection is not None and connection.is_reusable():
            connection.idle_until = asyncio.get_running_loop().time() + IDLE_SECONDS
            self._idle.append(connection)
            if len(self._idle) > IDLE_CONNECTIONS_MAX:
                self._idle.popleft().close()
        elif connection is not None:
            connection.close()
        self._next()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer. Its end, or `aclose`, gives the connection back."""

    def __init__(self, connection: KeptConnection, leave: Callable[[KeptConnection], None]) -> None:
        self._connection: KeptConnection | None = connection
        self._leave = leave

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection is not None and isinstance(event := await self._connection.event(), h11.Data):
            yield event.data  # h11 has cut it out of its buffer

    async def aclose(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._leave(connection)
