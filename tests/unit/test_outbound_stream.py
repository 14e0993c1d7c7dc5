"""A connection of the HTTP client on real sockets: it reads ahead in bounds, and notices what happens while it rests."""

from __future__ import annotations

import asyncio
import functools
import socket
import struct
from collections.abc import Awaitable, Callable

import httpcore2
import pytest

from penstock.outbound.addresses import Rules
from penstock.outbound.client import Client
from penstock.outbound.stream import AHEAD_BYTES_MAX, NetworkStream, connected
from tests.sockets import server

ONE_RECEIPT_BYTES = 256 * 1024  # that asyncio reads at once
LARGE = bytes(range(256)) * 40_000
RESET = struct.pack("ii", 1, 0)  # what is closed is broken off
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def real(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """In real time, since the sockets are."""

    @functools.wraps(work)
    def run(**given: object) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(30):
                await work(**given)

        asyncio.run(bounded())

    return run


async def whole(stream: NetworkStream) -> bytes:
    pieces = []
    while piece := await stream.read():
        pieces.append(piece)
    return b"".join(pieces)


@real
async def test_a_server_that_sends_faster_than_its_client_reads_is_held_back() -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(LARGE)
        await writer.drain()

    async with server(talk) as port:
        stream = await connected("127.0.0.1", port, seconds=5)
        await asyncio.sleep(0.2)
        assert stream._ahead <= AHEAD_BYTES_MAX + ONE_RECEIPT_BYTES

        assert await whole(stream) == LARGE
        assert stream._ahead == 0
        stream.abort()


@real
async def test_what_is_sent_to_a_server_that_reads_late_arrives_whole() -> None:
    arrived = bytearray()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.05)
        arrived.extend(await reader.readexactly(len(LARGE)))
        writer.write(ANSWER)

    async with server(talk) as port, Client(rules=Rules(allow=[f"127.0.0.1:{port}"])) as web:
        answer = await web.post(f"http://127.0.0.1:{port}/", content=LARGE)
        assert (answer.body, bytes(arrived)) == (b"ok", LARGE)


@pytest.mark.fault("F41")
@pytest.mark.parametrize("meanwhile", ["hangs up", "sends what nobody asked for"])
@real
async def test_a_connection_at_which_something_happened_while_it_rested_is_not_used_again(meanwhile: str) -> None:
    connections: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(ANSWER)

    async with server(talk) as port, Client(rules=Rules(allow=[f"127.0.0.1:{port}"])) as web:
        url = f"http://127.0.0.1:{port}/"
        for _ in range(2):
            assert (await web.get(url)).body == b"ok"
        assert len(connections) == 1

        if meanwhile == "hangs up":
            connections[0].close()
        else:
            connections[0].write(ANSWER.replace(b"ok", b"no"))
        await asyncio.sleep(0.05)
        assert (await web.get(url)).body == b"ok"
        assert len(connections) == 2


@real
async def test_who_waits_for_bytes_hears_that_the_connection_broke() -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()

    async with server(talk) as port:
        stream = await connected("127.0.0.1", port, seconds=5)
        with pytest.raises(httpcore2.ReadError):
            await stream.read()
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"more")


@real
async def test_where_no_process_listens_the_pool_hears_it() -> None:
    async def talk(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None: ...

    async with server(talk) as port:
        pass
    with pytest.raises(httpcore2.ConnectError):
        await connected("127.0.0.1", port, seconds=5)
