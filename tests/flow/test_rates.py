"""A queue's rate: never more starts in any second than it says, whoever sends, retries or runs beside."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import penstock as ps
from penstock.config import Config
from penstock.contracts.faults import NoFaults
from penstock.model.errors import BadMessage
from penstock.model.message import PRIORITIES, PRIORITY_LOW
from penstock.queues.queue import Queue
from penstock.runtime.unit import open_unit
from penstock.testing import TestApp, virtual
from penstock.testing.surroundings import VirtualHost
from penstock.views import queues
from tests.flow.shop import Busy, Listing, shop_app

MICROS = 1_000_000


def micros_of(shop: TestApp, queue: Queue[Listing]) -> list[int]:
    return [round(each.at.timestamp() * MICROS) for each in shop.delivered(queue) if each.at is not None]


def most_in_a_second(starts: Sequence[int]) -> int:
    """The most starts in any second, wherever it begins."""
    starts = sorted(starts)
    return max(bisect_left(starts, start + MICROS) - index for index, start in enumerate(starts))


async def send_many(shop: TestApp, queue: Queue[Listing], count: int, *, priority: int = 1) -> None:
    async with shop.unit():
        for number in range(count):
            queue.send(Listing(name=str(number)), priority=priority)


@pytest.mark.spec("A1-22", "G4-17")
@pytest.mark.parametrize("seconds", [0, 0.05, 3])
@virtual
async def test_a_hundred_ready_messages_never_start_more_than_five_in_any_second(seconds: float) -> None:
    busy = Busy()

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await busy.work(listing.name, seconds)

    app, listings = shop_app(handle, rate=5)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 100)
        await shop.advance(seconds=21)

        starts = micros_of(shop, listings)
        assert len(starts) == 100
        assert most_in_a_second(starts) == 5
        await shop.drain()


@pytest.mark.spec("A1-22", "G4-17")
@virtual
async def test_retries_count_like_first_tries() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        if message.attempt == 1:
            message.retry(delay=2)

    app, listings = shop_app(handle, rate=5)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 40)
        await shop.advance(seconds=30)

        starts = micros_of(shop, listings)
        assert len(starts) == 80
        assert most_in_a_second(starts) == 5


@pytest.mark.spec("A1-22")
@pytest.mark.parametrize(
    "rate", [0.5, 1, 2.5, 99, *(pytest.param(rate, marks=pytest.mark.slow) for rate in (100, 250, 1_000))]
)
@virtual
async def test_any_rate_is_nearly_reached_and_never_passed(rate: float) -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle, rate=rate)
    async with TestApp(app) as shop:
        await send_many(shop, listings, int(10 * rate) + 10)
        await shop.advance(seconds=9.999)

        starts = micros_of(shop, listings)
        assert most_in_a_second(starts) <= max(1, -(-rate // 1))
        assert len(starts) >= 9.8 * rate
        await (await app.desk()).purge("listings")


@virtual
async def test_what_waited_for_a_slow_handler_does_not_start_on_top_of_the_rate() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(1.5 if listing.name == "800" else 0.001)

    app, listings = shop_app(handle, rate=400, parallel=1)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 2_000)
        await shop.advance(seconds=8)

        assert most_in_a_second(micros_of(shop, listings)) <= 400


@pytest.mark.spec("A1-22")
@virtual
async def test_two_processes_share_one_rate(tmp_path: Path) -> None:
    host = VirtualHost()
    starts: list[int] = []
    running: list[asyncio.Task[None]] = []
    by: Counter[str] = Counter()
    try:
        for name in ("first", "second"):

            async def handle(_listing: Listing, _message: ps.Message[Listing], *, who: str = name) -> None:
                starts.append(host.loop.wall_ns() // 1_000)
                by[who] += 1
                await asyncio.sleep(0.3)

            app = ps.App("shop", database=tmp_path / "shop.db")
            listings = app.queue("listings", Listing, rate=5, parallel=1)
            listings.handler(Listing)(handle)
            process = host.process(name)
            engine = await process.start(app._open(host.surroundings(process, NoFaults(), tick_seconds=1.0)))
            process.owns(engine)
            running.append(process.start(app.run()))

        async def sending() -> None:
            async with open_unit(engine, None):
                for number in range(60):
                    listings.send(Listing(name=str(number)))

        await process.start(sending())
        await asyncio.sleep(20)
    finally:
        host.dispose()

    assert len(starts) == 60
    assert most_in_a_second(starts) <= 5
    assert min(by.values()) > 5


@pytest.mark.spec("A1-22")
@virtual
async def test_a_rate_is_changed_while_it_runs_and_a_rate_of_nothing_is_no_limit() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle, rate=0.01)
    async with TestApp(app) as shop:
        desk = await app.desk()
        await send_many(shop, listings, 1_000)
        await shop.advance(seconds=10)
        assert len(shop.delivered(listings)) == 1
        await desk.tune("listings", parallel=None, rate=10)
        await shop.advance(seconds=9.95)
        assert len(shop.delivered(listings)) == 101
        assert most_in_a_second(micros_of(shop, listings)[1:]) == 10
        await desk.tune("listings", parallel=None, rate=0)
        await shop.advance()
        assert len(shop.delivered(listings)) == 1_000

        await send_many(shop, listings, 2)
        await desk.tune("listings", parallel=None, rate=None)
        await shop.advance(seconds=99)
        assert len(shop.delivered(listings)) == 1_001


@pytest.mark.parametrize("parallel, rate", [(0, None), (-1, None), (51, None), (None, -0.1), (None, 1e9)])
@virtual
async def test_a_tuning_beyond_its_bounds_is_refused_and_changes_nothing(
    parallel: int | None, rate: float | None
) -> None:
    app = ps.App("shop", config=Config(overrides={"concurrency_max": 50}))
    app.queue("listings", Listing)
    async with TestApp(app):
        desk = await app.desk()
        await desk.tune("listings", parallel=50, rate=0)
        with pytest.raises(BadMessage, match="it can be"):
            await desk.tune("listings", parallel=parallel, rate=rate)

        kept = await queues.queue_row(app.db, "listings")
        assert kept is not None
        assert (kept.parallel_tuned, kept.rate_tuned) == (50, 0.0)


@virtual
async def test_tuning_something_else_gives_no_start_before_its_time() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle, rate=5)
    async with TestApp(app) as shop:
        desk = await app.desk()
        await send_many(shop, listings, 100)
        for parallel in range(1, 40):
            await shop.advance(seconds=0.05)
            await desk.tune("listings", parallel=parallel, rate=None)

        assert most_in_a_second(micros_of(shop, listings)) == 5
        await desk.purge("listings")


# -- priorities -----------------------------------------------------------------------------------------------


@pytest.mark.slow("postgres")
@pytest.mark.parametrize(
    "settings",
    [{"parallel": 1}, pytest.param({"parallel": 1, "rate": 50}, marks=pytest.mark.slow), {"parallel": 3}],
)
@virtual
async def test_a_low_priority_gets_one_claim_in_ten_however_much_comes_before_it(settings: dict[str, int]) -> None:
    """Also where a claim and an idle look take turns, and where queues do."""

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        order.append(listing.name)
        await asyncio.sleep(0.005)

    order: list[str] = []
    app, listings = shop_app(handle, **settings)
    others = app.queue("others", Listing, parallel=1)
    others.handler(Listing)(_busy_for_a_moment)
    async with TestApp(app) as shop:
        async with shop.unit():
            for priority in PRIORITIES:
                for _ in range(200):
                    listings.send(Listing(name=str(priority)), priority=priority)
                    others.send(Listing(name="x"))
        await shop.advance(seconds=5)

        first = order[:100]
        assert first.count("0") >= 80
        assert first.count(str(PRIORITY_LOW)) == 10 or (settings["parallel"] > 1 and 5 <= first.count("2") <= 20)
        await shop.drain()


async def _busy_for_a_moment(_listing: Listing) -> None:
    await asyncio.sleep(0.05)
