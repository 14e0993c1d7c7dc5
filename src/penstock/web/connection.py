"""A connection: its requests are complete in time and unambiguous, and one address does not hold all connections."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

CONNECTIONS_MAX = 1_000  # at once; more get 503
ADDRESS_SHARE = 4  # one address holds at most 1/4 of them
HEAD_BYTES_MAX = 64 * 1024  # of the request line and headers
REQUEST_SECONDS = 5.0  # from the first byte of a request, or from the connection itself, to the last byte
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n"
INCOMPLETE = (h11.IDLE, h11.SEND_BODY)  # of the client: its head, or its body, is under way


@dataclass(frozen=True, slots=True)
class AddressLimit:
    """How many connections one client address holds. A proxy's connections come from many clients and are not counted."""

    most: int = CONNECTIONS_MAX // ADDRESS_SHARE
    proxies: Collection[str] = ()
    counts_loopback: bool = False

    def allows(self, address: str, others: Collection[str]) -> bool:
        """Return whether one more connection from this address is accepted beside those of the others."""
        own = client_network(address)
        if own in map(client_network, self.proxies) or (own.is_loopback and not self.counts_loopback):
            return True
        return sum(client_network(other) == own for other in others) < self.most


def client_network(address: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return what one client has of its own: an IPv4 address, or the 64 bits of an IPv6 one that it was assigned."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None) or found
    whole = mapped.version == 4 or mapped.is_loopback
    return ipaddress.ip_network((mapped, mapped.max_prefixlen if whole else 64), strict=False)


class _Unambiguous(h11.Connection):
    """Refuses a request that gives its length twice (RFC 9112, 6.1): a proxy in front may believe the other one."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = [name for name, _ in event.headers]
            if b"content-length" in names and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        return event


class Connection(H11Protocol):
    """Between two requests the server's own limit for idle connections counts."""

    limit = AddressLimit()
    _late: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _Unambiguous(h11.SERVER, HEAD_BYTES_MAX)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Or an answer on a kept-alive connection waits for the client's delayed acknowledgement, 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        known = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        others = [each.client[0] for each in known if each.client is not None]
        if self.client is not None and not self.limit.allows(self.client[0], others):
            transport.write(TOO_MANY)
            transport.close()
            return
        self._late = self.loop.call_later(REQUEST_SECONDS, self._hang_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state not in INCOMPLETE:
            self._in_time()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up(self) -> None:
        self._late = None
        answering: RequestResponseCycle | None = self.cycle
        if answering is None or not answering.response_started or answering.response_complete:
            self.transport.write(TOO_LATE)
        self.transport.close()


def limited(limit: AddressLimit) -> type[Connection]:
    """Return the class of connections of one server."""
    return type("LimitedConnection", (Connection,), {"limit": limit})
