"""The test app itself: nothing moves unless a test lets time pass, and what it tells is true."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

import penstock as ps
from penstock.model.errors import BadApp
from penstock.queues.queue import Queue
from penstock.testing import NotConserved, NotDrained, TestApp, WorkerFailed, attempt, virtual
from tests.flow.shop import EFFECT, Listing, effects, shop_app
from tests.flow.tampering import tamper


async def test_nothing_is_delivered_before_time_is_let_go_on(shop: TestApp, listings: Queue[Listing]) -> None:
    await shop.send(listings, Listing(name="a"))
    await shop.send(listings, Listing(name="b"))
    assert shop.delivered(listings) == []
    assert (await shop.counts(listings)).ready == 2

    await shop.drain()
    assert shop.delivered(listings) == [attempt(1), attempt(1)]
    assert (await shop.counts(listings)).acked == 2


async def test_what_was_delivered_can_be_looked_at(shop: TestApp, listings: Queue[Listing]) -> None:
    began = shop.now
    id = await shop.send(listings, Listing(name="a"), delay=5)
    await shop.advance(seconds=5)

    [only] = shop.delivered(listings)
    assert (only.number, only.payload, only.id) == (1, Listing(name="a"), id)
    assert only.at is not None
    assert (only.at - began).total_seconds() == 5


@virtual
async def test_time_starts_where_a_test_wants_it_and_passes_to_the_microsecond() -> None:
    app, _ = shop_app()
    start = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)
    async with TestApp(app, start=start) as shop:
        assert shop.now == start
        for _ in range(10):
            await shop.advance(seconds=0.1)
        assert shop.now == datetime(2031, 5, 4, 3, 2, 2, tzinfo=UTC)
        await shop.advance(days=1, hours=1, minutes=1, seconds=1)
        assert shop.now == datetime(2031, 5, 5, 4, 3, 3, tzinfo=UTC)


@virtual
async def test_draining_takes_only_the_time_that_handlers_take() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        await asyncio.sleep(7)
        if message.attempt == 1:
            raise OSError

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        began = shop.now
        await shop.send(listings, Listing(name="a"))
        await shop.drain()

        assert (shop.now - began).total_seconds() == pytest.approx(7, abs=0.001)
        assert (await shop.counts(listings)).delayed == 1


@virtual
async def test_an_app_gets_its_own_handlers_and_database_back() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle)
    before = (app.database, app.config, dict(listings.handlers))
    async with TestApp(app) as shop:
        assert app.database != before[0]
        shop.answering(listings)
    assert (app.database, app.config, listings.handlers) == before


@virtual
async def test_a_queue_that_nothing_can_answer_on_is_named() -> None:
    app, listings = shop_app()
    shop = TestApp(app)
    shop.answering(listings)
    with pytest.raises(BadApp, match="listings"):
        await shop.__aenter__()


@virtual
async def test_a_lost_message_is_reported_with_the_numbers() -> None:
    app, listings = shop_app()
    with pytest.raises(NotConserved, match=r"sent 2 is not acked 0 .* 1 are missing"):
        async with TestApp(app) as shop:
            await shop.send(listings, Listing(name="a"))
            await shop.send(listings, Listing(name="b"))
            tamper(app.database, "delete from penstock_messages where seq = 1")


@virtual
async def test_a_worker_that_falls_over_fails_the_test() -> None:
    app, listings = shop_app()

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        worker = app._life.worker
        assert worker is not None
        worker.spawn(fall_over())

    async def fall_over() -> None:
        raise ZeroDivisionError("somewhere inside")

    listings.handler(Listing)(handle)
    with pytest.raises(WorkerFailed, match="ZeroDivisionError: somewhere inside"):
        async with TestApp(app) as shop:
            await shop.send(listings, Listing(name="a"))
            await shop.advance(seconds=1)


@virtual
async def test_a_killed_worker_runs_no_line_more() -> None:
    lines: list[str] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        lines.append(f"begin {listing.name}")
        try:
            await asyncio.sleep(5)
            lines.append(f"end {listing.name}")
            app.db.write(EFFECT, what=listing.name)
        finally:
            lines.append(f"finally {listing.name}")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=2)
        await shop.kill()
        await shop.advance(seconds=60)

        assert lines == ["begin a", "begin a", "end a", "finally a"]
        assert await effects(app) == ["a"]


@pytest.mark.slow("postgres")
@virtual
async def test_what_never_ends_is_not_drained() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        while True:
            try:
                await asyncio.sleep(86_400)
            except asyncio.CancelledError:
                if stop:
                    raise

    stop: list[bool] = []
    app, listings = shop_app(handle, timeout=10_000_000)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        with pytest.raises(NotDrained, match="listings"):
            await shop.drain()
        stop.append(True)


@virtual
async def test_a_test_that_fails_names_the_failures_of_the_app_once() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise ValueError("no price")

    app, listings = shop_app(handle)
    with pytest.raises(AssertionError) as failed:
        async with TestApp(app) as shop:
            await shop.send(listings, Listing(name="a"))
            await shop.advance(minutes=1)
            raise AssertionError
    [note] = failed.value.__notes__
    assert note.startswith("failures in the app:\n  listings:handle: ValueError: no price at ")
    assert note.count("\n") == 1
