"""How many connections the HTTP client holds, and which of them it uses again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

import penstock as ps
from penstock.outbound import pool
from penstock.outbound.answers import Response
from tests.sockets import server

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Shop:
    """A server that counts its connections, and answers once it may."""

    def __init__(self) -> None:
        self.opened = 0
        self.open = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.open += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await self.may_answer.wait()
                writer.write(ANSWER)
        finally:
            self.open -= 1

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Callable[[], asyncio.Task[Response]]]:
        async with server(self.talk) as port, ps.Client(rules=ps.Rules(allow=[f"127.0.0.1:{port}"])) as web:
            yield lambda: asyncio.create_task(web.get(f"http://127.0.0.1:{port}/"))


async def soon(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def test_requests_beyond_the_bound_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "CONNECTIONS_MAX", 3)

    async def work() -> None:
        shop = Shop()
        shop.may_answer.clear()
        async with shop.client() as get:
            calls = [get() for _ in range(8)]
            await soon(lambda: shop.open == 3)
            calls[4].cancel()  # while it waits
            calls[0].cancel()  # while it runs: its place goes to another
            await soon(lambda: shop.opened == 4)

            shop.may_answer.set()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            cancelled = [isinstance(each, asyncio.CancelledError) for each in answers]
            assert cancelled == [True, False, False, False, True, False, False, False]
            assert shop.opened == 4, "a connection whose answer was read is used for the next"

    asyncio.run(work())


def test_idle_connections_beyond_their_bound_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_CONNECTIONS_MAX", 2)

    async def work() -> None:
        shop = Shop()
        shop.may_answer.clear()
        async with shop.client() as get:
            calls = [get() for _ in range(5)]
            await soon(lambda: shop.open == 5)
            shop.may_answer.set()
            await asyncio.gather(*calls)
            await soon(lambda: shop.open == 2)

    asyncio.run(work())


def test_a_connection_that_was_idle_for_too_long_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)

    async def work() -> None:
        shop = Shop()
        async with shop.client() as get:
            for _ in range(3):
                assert (await get()).body == b"ok"
            assert shop.opened == 3
            await soon(lambda: shop.open == 1)

    asyncio.run(work())
