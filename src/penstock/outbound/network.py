"""Connections to checked addresses only: the address that was looked at is the one connected to, under the name's TLS."""

from __future__ import annotations

import logging
import socket
import ssl
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Iterable, Sequence

import h11
import httpcore2
import httpx2

from penstock.outbound.addresses import Rules, endpoint, port_of
from penstock.outbound.pool import Endpoint, Pool
from penstock.outbound.stream import NetworkStream, connected

ADDRESSES_MAX = 4  # tried one after the other
CONNECT_SECONDS = 10.0  # for all of them together

SENDING = "penstock_sending"  # the extension of a request with what is called before its first byte is sent

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_log = logging.getLogger("penstock.outbound")


async def system_resolver(host: str, port: int) -> Sequence[str]:
    found = await get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Network(httpx2.AsyncBaseTransport):
    """Pools of connections, by name. `unverified` lists the hosts whose certificate is not checked, each with its port."""

    def __init__(
        self,
        rules: Rules,
        resolve: Resolver = system_resolver,
        *,
        tls: ssl.SSLContext | None = None,
        unverified: Iterable[str] = (),
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._unverified = frozenset(endpoint(entry) for entry in unverified)
        self._pool = Pool(self._dial, tls or httpcore2.default_ssl_context())
        self._lax = Pool(self._dial, _lax_context()) if self._unverified else self._pool
        for host, port in sorted(self._unverified):
            _log.warning(
                "The certificate of %s:%d is not verified: an attacker on the network can read the traffic.", host, port
            )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._send(request, request.url, request.headers.raw)

    async def aclose(self) -> None:
        self._pool.close()
        self._lax.close()

    async def _send(
        self, request: httpx2.Request, to: httpx2.URL, headers: list[tuple[bytes, bytes]]
    ) -> httpx2.Response:
        """Send a request to the host of `to`, with the path that it asks for."""
        where = Endpoint(to.scheme, to.raw_host.decode("ascii"), port_of(to))
        try:
            asked = h11.Request(method=request.method, target=request.url.raw_path, headers=headers)
        except h11.LocalProtocolError as error:
            raise httpcore2.LocalProtocolError(str(error)) from error
        pool = self._lax if where[1:] in self._unverified else self._pool
        return await pool.send(where, asked, await request.aread(), request.extensions.get(SENDING))

    async def _dial(self, host: str, port: int) -> NetworkStream:
        """Look a name up, check what comes back, and connect to that: a second look-up never happens."""
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


def _lax_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
