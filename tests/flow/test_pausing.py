"""What an operator does with queues: pauses, resumes and purges them, sees what is in them, and lives through outages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock as ps
from penstock.contracts.faults import NoFaults
from penstock.queues.queue import Queue
from penstock.runtime.unit import open_unit
from penstock.testing import TestApp, attempt, virtual
from penstock.testing.surroundings import VirtualHost
from penstock.views import queues
from tests.flow.shop import Listing, Photo, shop_app


async def send_many(shop: TestApp, queue: Queue[Listing], count: int, *, delay: float = 0.0) -> None:
    async with shop.unit():
        for number in range(count):
            queue.send(Listing(name=str(number)), delay=delay)


async def quick(_listing: Listing, _message: ps.Message[Listing]) -> None: ...


async def slow(_listing: Listing, _message: ps.Message[Listing]) -> None:
    await asyncio.sleep(60)


@pytest.mark.spec("A1-29")
@virtual
async def test_a_paused_queue_delivers_nothing_and_goes_on_when_it_is_resumed() -> None:
    app, listings = shop_app(quick)
    photos = app.queue("photos", Listing)
    photos.handler(Listing)(quick)
    async with TestApp(app) as shop:
        desk = await app.desk()
        await desk.pause("listings")
        await send_many(shop, listings, 5)
        await send_many(shop, listings, 5, delay=30)
        await send_many(shop, photos, 5)
        await shop.advance(hours=1)
        assert shop.delivered(listings) == []
        assert len(shop.delivered(photos)) == 5
        assert (await shop.counts(listings)).ready == 10
        await shop.restart()
        await shop.advance(hours=1)
        assert shop.delivered(listings) == []

        await (await app.desk()).resume("listings")
        await shop.advance()
        assert shop.delivered(listings) == [attempt(1)] * 10


@pytest.mark.spec("A1-29")
@virtual
async def test_what_runs_when_its_queue_is_paused_ends_and_what_it_asked_for_waits() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        await asyncio.sleep(60)
        if message.attempt == 1:
            raise OSError

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        desk = await app.desk()
        await send_many(shop, listings, 3)
        await shop.advance(seconds=1)
        await desk.pause("listings")
        await shop.advance(hours=1)
        assert shop.delivered(listings) == [attempt(1)] * 3
        assert (await shop.counts(listings)).ready == 3
        await desk.resume("listings")
        await shop.advance(minutes=2)
        assert (await shop.counts(listings)).acked == 3


@virtual
async def test_a_pause_holds_for_pulling_clients_too() -> None:
    app, listings = shop_app()
    async with TestApp(app) as shop:
        desk = await app.desk()
        await send_many(shop, listings, 3)
        await desk.pause("listings")
        assert await desk.pull("listings", limit=10, lease_seconds=30) == []
        await desk.resume("listings")
        assert len(await desk.pull("listings", limit=10, lease_seconds=30)) == 3


@pytest.mark.spec("A1-29")
@virtual
async def test_purging_removes_what_waits_counts_it_and_leaves_what_runs() -> None:
    app, listings = shop_app(slow, parallel=2)
    photos = app.queue("photos", Listing)
    async with TestApp(app) as shop:
        desk = await app.desk()
        await send_many(shop, listings, 3_002)
        await send_many(shop, listings, 10, delay=600)
        await send_many(shop, photos, 4)
        await shop.advance(seconds=1)

        assert await desk.purge("listings") == 3_010
        counts = await shop.counts(listings)
        assert (counts.sent, counts.purged, counts.leased, counts.ready, counts.delayed) == (3_012, 3_010, 2, 0, 0)
        assert (await shop.counts(photos)).ready == 4
        assert await desk.purge("listings") == 0
        await shop.drain()
        assert (await shop.counts(listings)).acked == 2
        assert (await desk.backlog("listings")).count == 0


@pytest.mark.spec("A1-29")
@virtual
async def test_the_state_of_a_seeded_queue_is_shown_with_the_right_counts() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> object:
        if listing.name == "0":
            return ps.Discard("sold")
        await asyncio.sleep(600)
        return None

    app, listings = shop_app(handle, parallel=3)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 10)
        await shop.advance(seconds=40)
        await send_many(shop, listings, 4, delay=90)
        await (await app.desk()).pause("listings")

        now = round(shop.now.timestamp() * 1_000_000)
        (seen,) = [queue for queue in await queues.rows(app.db, now=now) if queue["name"] == "listings"]
        assert [seen[name] for name in ("sent", "acked", "ready", "leased", "delayed", "dead")] == [14, 0, 6, 3, 4, 1]
        assert (seen["purged"], seen["expired"], seen["paused"]) == (0, 0, True)
        assert seen["oldest_age_seconds"] == pytest.approx(40)
        backlog = await (await app.desk()).backlog("listings")
        assert (backlog.count, backlog.bytes) == (13, 13 * len(b'{"name":"0"}'))
        assert backlog.oldest_at == now - 40_000_000


@pytest.mark.parametrize("verb", ["pause", "resume", "purge", "backlog"])
@virtual
async def test_a_queue_that_does_not_exist_is_refused_with_those_that_do(verb: str) -> None:
    app, _ = shop_app(quick)
    async with TestApp(app):
        with pytest.raises(ps.NoSuchQueue, match="listings"):
            await getattr(await app.desk(), verb)("lisings")


@virtual
async def test_what_a_client_pulled_and_forgot_returns_by_itself() -> None:
    app, listings = shop_app()
    async with TestApp(app) as shop:
        desk = await app.desk()
        await send_many(shop, listings, 1)
        await shop.advance(minutes=20)  # a worker that has just begun cuts nobody's lease short
        (first,) = await desk.pull("listings", limit=10, lease_seconds=40)
        await shop.advance(seconds=39)
        assert (await shop.counts(listings)).leased == 1
        await shop.advance(seconds=2)

        assert ((await shop.counts(listings)).leased, (await shop.counts(listings)).ready) == (0, 1)
        (again,) = await desk.pull("listings", limit=10, lease_seconds=40)
        assert (again.id, again.attempts) == (first.id, 2)


# -- outages --------------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-24", "A1-27")
@virtual
async def test_while_one_consumer_is_down_its_queue_fills_and_the_others_go_on(tmp_path: Path) -> None:
    """Three processes on one file: one sends, one handles photos all the time, one handles listings and comes later."""
    host = VirtualHost()
    running: list[asyncio.Task[None]] = []
    done: list[str] = []

    def program() -> tuple[ps.App, Queue[Listing], Queue[Photo]]:
        app = ps.App("shop", database=tmp_path / "shop.db")
        return app, app.queue("listings", Listing), app.queue("photos", Photo)

    async def start(name: str, app: ps.App) -> None:
        process = host.process(name)
        process.owns(await process.start(app._open(host.surroundings(process, NoFaults(), tick_seconds=1.0))))
        running.append(process.start(app.run()))

    try:
        photographer, _, photos = program()

        @photos.handler(Photo)
        async def photo(photo: Photo) -> None:
            done.append(photo.name)

        await start("photographer", photographer)
        app, listings, photos = program()
        sender = host.process("sender")
        engine = await sender.start(app._open(host.surroundings(sender, NoFaults())))
        sender.owns(engine)

        async def sending() -> None:
            async with open_unit(engine, None):
                for number in range(50):
                    listings.send(Listing(name=f"listing {number}"))
                    photos.send(Photo(name=f"photo {number}"))

        await sender.start(sending())
        await asyncio.sleep(60)
        assert len(done) == 50
        assert all(name.startswith("photo") for name in done)

        clerk, listings, _ = program()

        @listings.handler(Listing)
        async def listing(listing: Listing) -> None:
            done.append(listing.name)

        await start("clerk", clerk)
        await asyncio.sleep(60)
        assert sorted(done[50:]) == sorted(f"listing {number}" for number in range(50))
    finally:
        host.dispose()
