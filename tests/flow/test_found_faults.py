"""What was once wrong: idle workers that kept each other awake, and rounds whose messages were taken for repeats."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

import penstock as ps
from penstock.contracts.faults import NoFaults
from penstock.testing import TestApp, virtual
from penstock.testing.surroundings import VirtualHost
from tests.flow.shop import Listing, Photo, shop_app


@virtual
async def test_idle_workers_on_one_file_write_nothing(tmp_path: Path) -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    host = VirtualHost()
    running: list[asyncio.Task[None]] = []
    try:
        for name in ("first", "second"):
            app, _ = shop_app(handle)
            app.database = str(tmp_path / "shop.db")
            process = host.process(name)
            process.owns(await process.start(app._open(host.surroundings(process, NoFaults(), tick_seconds=1.0))))
            running.append(process.start(app.run()))
        await asyncio.sleep(10)
        before = commits(tmp_path / "shop.db")
        await asyncio.sleep(60)
        assert commits(tmp_path / "shop.db") == before
    finally:
        host.dispose()


def commits(database: Path) -> int:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    [(number,)] = connection.execute("select last from penstock_tokens").fetchall()
    connection.close()
    assert isinstance(number, int)
    return number


@virtual
async def test_each_round_of_a_handler_that_asks_for_time_sends_its_own_messages() -> None:
    rounds = iter(range(1, 4))

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> object:
        number = next(rounds)
        photos.send(Photo(name=f"progress {number}"))
        return None if number == 3 else ps.Later(60)

    app, listings = shop_app(handle)
    photos = app.queue("photos", Photo)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)

        bodies = await app.db.column("select body from penstock_messages where queue = 'photos' order by seq")
        assert [bytes(body) for body in bodies] == [b'{"name":"progress %d"}' % number for number in (1, 2, 3)]
