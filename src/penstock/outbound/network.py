"""Connections to checked addresses only: the address that was looked at is the one connected to, under the name's TLS."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore2
import httpx2

from penstock.outbound.addresses import Rules, endpoint, port_of

CONNECTIONS_MAX = 100
IDLE_CONNECTIONS_MAX = 20
IDLE_SECONDS = 15.0
ADDRESSES_MAX = 4  # tried one after the other
CONNECT_SECONDS = 10.0  # for all of them together

SENDING = "penstock_sending"  # the extension of a request with what is called before its first byte is sent

Headers = list[tuple[bytes, bytes]]
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_log = logging.getLogger("penstock.outbound")
AHEAD_BYTES_MAX = 512 * 1024  # of an answer that is not read yet


class NetworkStream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
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

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes, however many came at once; none at the end. The caller has a time limit of its own."""
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

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._transport.is_closing():
            raise httpcore2.WriteError("the connection is closed") from self._lost
        self._transport.write(buffer)
        if self._room is not None:
            await self._room

    async def aclose(self) -> None:
        self._transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Closes the connection when the handshake is given up: otherwise it would stay open for ever."""
        loop = asyncio.get_running_loop()
        plain = self._transport
        try:
            secure = await loop.start_tls(plain, self, ssl_context, server_hostname=server_hostname)
        except BaseException as error:
            plain.abort()
            if isinstance(error, OSError):  # those of TLS are
                raise httpcore2.ConnectError(str(error)) from error
            raise
        assert secure is not None
        self._transport = secure
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return bool(self._pieces) or self._ended or self._transport.is_closing()
        return self._transport.get_extra_info(info)


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


async def system_resolver(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Network(httpx2.AsyncBaseTransport):
    """A pool of connections, by name. `unverified` lists the hosts whose certificate is not checked, each with its port."""

    def __init__(
        self,
        rules: Rules,
        resolve: Resolver = system_resolver,
        *,
        tls: ssl.SSLContext | None = None,
        unverified: Iterable[str] = (),
    ) -> None:
        self._unverified = frozenset(endpoint(entry) for entry in unverified)
        dial = _Dial(rules, resolve)
        self._pool = _pool(dial, tls or httpcore2.default_ssl_context())
        self._lax = _pool(dial, _lax_context())
        for host, port in sorted(self._unverified):
            _log.warning(
                "The certificate of %s:%d is not verified: an attacker on the network can read the traffic.", host, port
            )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host, port = request.url.raw_host, port_of(request.url)
        pool = self._lax if (host.decode("ascii"), port) in self._unverified else self._pool
        url = httpcore2.URL(
            scheme=request.url.raw_scheme, host=host, port=request.url.port, target=request.url.raw_path
        )
        return await sent(pool, request, url, request.headers.raw)

    async def aclose(self) -> None:
        await self._pool.aclose()
        await self._lax.aclose()


async def sent(
    pool: httpcore2.AsyncConnectionPool, request: httpx2.Request, url: httpcore2.URL, headers: Headers
) -> httpx2.Response:
    assert isinstance(request.stream, httpx2.AsyncByteStream)
    on_sent = request.extensions.get(SENDING)

    async def trace(event: str, _: object) -> None:
        if event.endswith("send_request_headers.started"):
            on_sent()  # type: ignore[misc]

    traced = {} if on_sent is None else {"trace": trace}
    asked = httpcore2.Request(request.method, url, headers=headers, content=request.stream, extensions=traced)
    answer = await pool.handle_async_request(asked)
    return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        # Bytes behind the end of the body would be taken for the answer to the next request.
        if _left_over(self._answer):
            await self._answer.extensions["network_stream"].aclose()
        await self._answer.aclose()


def _left_over(answer: httpcore2.Response) -> bool:
    """Whether the server sent more than it announced. Only the parser knows; tests notice when it moves."""
    connection = getattr(getattr(answer.stream, "_stream", None), "_connection", None)
    parser = getattr(connection, "_h11_state", None)
    return parser is not None and bool(parser.trailing_data[0])


class _Dial(httpcore2.AsyncNetworkBackend):
    """Looks a name up, checks what comes back, and connects to that: a second look-up never happens."""

    def __init__(self, rules: Rules, resolve: Resolver) -> None:
        self._rules = rules
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            answers = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} has no address") from error
        usable = self._rules.usable(host, port, answers)[:ADDRESSES_MAX]
        failed: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in usable:
            try:
                return await connected(address, port, seconds=CONNECT_SECONDS / len(usable))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed


def _pool(dial: _Dial, context: ssl.SSLContext) -> httpcore2.AsyncConnectionPool:
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    return httpcore2.AsyncConnectionPool(
        ssl_context=context,
        max_connections=CONNECTIONS_MAX,
        max_keepalive_connections=IDLE_CONNECTIONS_MAX,
        keepalive_expiry=IDLE_SECONDS,
        network_backend=dial,
    )


def _lax_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
