"""A connection whose requests have to be complete in time: who sends one byte by byte, or nothing at all, is hung up on."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

REQUEST_SECONDS = 30.0  # from the first byte of a request, or from the connection itself, to the last byte
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
INCOMPLETE = (h11.IDLE, h11.SEND_BODY)  # of the client: its head, or its body, is under way


class Connection(H11Protocol):
    """Between two requests the server's own limit for idle connections counts."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
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
