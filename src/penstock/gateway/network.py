"""Connections to checked addresses only: the address that was looked at is the one connected to, under the name's TLS."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

import httpcore2
import httpx2

from penstock.gateway.addresses import Rules, endpoint, port_of
from penstock.gateway.stream import connected

CONNECTIONS_MAX = 100
IDLE_CONNECTIONS_MAX = 20
IDLE_SECONDS = 15.0
ADDRESSES_MAX = 4  # tried one after the other
CONNECT_SECONDS = 10.0  # for all of them together

Headers = list[tuple[bytes, bytes]]
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_log = logging.getLogger("penstock.gateway")


async def system_resolver(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Network(httpx2.AsyncBaseTransport):
    """A pool of connections, by name. `unverified` lists the hosts whose certificate nobody checks, each with its port."""

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
                "The certificate of %s:%d is not checked: whoever is on the way can read and change it.", host, port
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
    asked = httpcore2.Request(request.method, url, headers=headers, content=request.stream)
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
