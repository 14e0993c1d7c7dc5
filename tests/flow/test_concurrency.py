"""How much is delivered at once: batches by size and wait, and as many handlers as the backlog or somebody asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.contracts.running_handlers import SLOTS_MAX
from penstock.model.queue import PARALLEL_AUTOMATIC
from penstock.queues.queue import Queue
from penstock.testing import TestApp, virtual
from tests.flow.shop import Busy, Listing, shop_app


def busy_app(seconds: float, **settings: Any) -> tuple[ps.App, Queue[Listing], Busy]:
    busy = Busy()

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await busy.work(listing.name, seconds)

    app, listings = shop_app(handle, **settings)
    return app, listings, busy


async def send_many(shop: TestApp, queue: Queue[Listing], count: int) -> None:
    async with shop.unit():
        for number in range(count):
            queue.send(Listing(name=str(number)))


@pytest.mark.spec("A1-12")
@virtual
async def test_a_hundred_slow_messages_run_at_once_where_the_backlog_decides() -> None:
    app, listings, busy = busy_app(60)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 100)
        await shop.advance(seconds=1)
        assert busy.now == 100
        await shop.advance(minutes=1)
        assert (await shop.counts(listings)).acked == 100


@pytest.mark.spec("A1-12")
@virtual
async def test_automatic_concurrency_ends_at_250_and_begins_anew_after_the_backlog() -> None:
    app, listings, busy = busy_app(60)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 600)
        await shop.advance(seconds=59)
        assert busy.most == 250
        await shop.drain()
        assert busy.most == 250

        await send_many(shop, listings, 3)
        await shop.drain()
        await send_many(shop, listings, PARALLEL_AUTOMATIC)
        await shop.advance(seconds=1)
        assert busy.now == PARALLEL_AUTOMATIC


@pytest.mark.spec("A1-12")
@pytest.mark.parametrize("parallel", [1, 3, 40])
@virtual
async def test_a_fixed_number_is_reached_and_never_passed(parallel: int) -> None:
    app, listings, busy = busy_app(10, parallel=parallel)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 100)
        await shop.drain()

        assert busy.most == parallel
        assert (await shop.counts(listings)).acked == 100


@pytest.mark.spec("A1-12")
@virtual
async def test_one_batch_at_a_time_never_overlaps_another() -> None:
    busy = Busy()

    async def take(batch: ps.Batch[Listing]) -> None:
        sizes.append(len(batch))
        await busy.work("batch", 10)

    sizes: list[int] = []
    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=10, batch_wait=1, parallel=1)
    listings.batch_handler(take)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 95)
        await shop.drain()

        assert busy.most == 1
        assert sizes == [10] * 9 + [5]


@virtual
async def test_a_batch_may_be_larger_than_a_usual_claim() -> None:
    sizes: list[int] = []

    async def take(batch: ps.Batch[Listing]) -> None:
        sizes.append(len(batch))

    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=1_000, batch_wait=60)
    listings.batch_handler(take)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 2_100)
        await shop.advance(seconds=1)
        assert sizes == [1_000, 1_000]
        await shop.advance(seconds=60)
        assert sizes == [1_000, 1_000, 100]


@pytest.mark.parametrize("seconds", [0.01, 10, 1_000])
@virtual
async def test_a_number_that_an_operator_raises_holds_at_once_also_where_no_slot_is_free(seconds: float) -> None:
    app, listings, busy = busy_app(seconds, parallel=1, timeout=2_000)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 5_000)
        await shop.advance(seconds=5)
        assert busy.most == 1
        await (await app.desk()).tune("listings", parallel=5, rate=None)
        await shop.advance(seconds=5)

        assert busy.now == busy.most == 5


@pytest.mark.parametrize("seconds", [0.01, 10])
@virtual
async def test_a_number_that_an_operator_lowers_holds_as_soon_as_handlers_end(seconds: float) -> None:
    app, listings, busy = busy_app(seconds, parallel=20)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 9_000)
        await shop.advance(seconds=1)
        assert busy.now == 20
        desk = await app.desk()
        await desk.tune("listings", parallel=2, rate=None)
        await shop.advance(seconds=2 * seconds)
        busy.most = 0
        await shop.advance(seconds=20)
        assert busy.most == 2

        await desk.tune("listings", parallel=None, rate=None)
        await shop.advance(seconds=2 * seconds)
        assert busy.now == 20
        await desk.purge("listings")


@pytest.mark.slow
@virtual
async def test_a_lowered_number_holds_also_for_what_is_claimed_already() -> None:
    busy = Busy()

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await busy.work(listing.name, 0.004 + int(listing.name) % 13 * 0.0013)

    app, listings = shop_app(handle, parallel=20)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 20_000)
        await shop.advance(seconds=5)
        await (await app.desk()).tune("listings", parallel=2, rate=None)
        await shop.advance(seconds=0.0205)  # longer than any of those that ran takes
        assert busy.now == 2
        await (await app.desk()).purge("listings")


@virtual
async def test_batches_are_whole_as_long_as_there_is_a_backlog() -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        sizes.append(len(batch))
        await asyncio.sleep(0.004 + len(sizes) % 13 * 0.0013)

    sizes: list[int] = []
    app, listings = batch_app(take, batch=7, batch_wait=1)
    async with TestApp(app) as shop:
        await send_many(shop, listings, 7_003)
        await shop.drain()

        assert sizes == [7] * 1_000 + [3]


@virtual
async def test_a_tuned_number_outlives_the_worker_and_is_left_to_the_app_again() -> None:
    app, listings, busy = busy_app(10)
    async with TestApp(app) as shop:
        await (await app.desk()).tune("listings", parallel=2, rate=None)
        await shop.restart()
        await send_many(shop, listings, 50)
        await shop.advance(seconds=25)
        assert busy.most == 2
        await (await app.desk()).tune("listings", parallel=None, rate=None)
        await shop.advance(seconds=10)
        assert busy.most > 2


@virtual
async def test_rows_that_one_worker_runs_have_each_a_place_and_no_more_are_claimed() -> None:
    running = 0
    most = 0

    async def take(batch: ps.Batch[Listing]) -> None:
        nonlocal running, most
        running += len(batch)
        most = max(most, running)
        await asyncio.sleep(10)
        running -= len(batch)

    app = ps.App("shop")
    queues = [app.queue(f"listings-{number}", Listing, batch=1_000, parallel=20) for number in range(3)]
    for queue in queues:
        queue.batch_handler(take)
    async with TestApp(app) as shop:
        for queue in queues:
            for _ in range(3):
                await send_many(shop, queue, 1_500)
        await shop.advance(seconds=5)
        assert SLOTS_MAX - 1_000 < running <= SLOTS_MAX
        await shop.drain()

        assert most <= SLOTS_MAX
        assert sum([(await shop.counts(queue)).acked for queue in queues]) == 13_500


@pytest.mark.spec("A1-15")
@pytest.mark.parametrize("second", ["on", "on_batch"])
@pytest.mark.parametrize("first", ["on", "on_batch"])
def test_a_second_consumer_is_refused_and_both_are_named(first: str, second: str) -> None:
    async def one(_given: object) -> None: ...
    async def other(_given: object) -> None: ...

    def register(how: str, handler: Callable[[object], Coroutine[Any, Any, None]]) -> None:
        if how == "on":
            listings.handler(Listing)(handler)
        else:
            listings.batch_handler(handler)

    listings = ps.App("shop").queue("listings", Listing)
    register(first, one)
    if first == second == "on":
        register(second, other)  # two handlers of one type are one consumer that gives each its own copy
        with pytest.raises(ps.PenstockError, match="one"):
            register(second, one)
    else:
        with pytest.raises(ps.PenstockError, match=r"one.*other"):
            register(second, other)


# -- when a batch is delivered --------------------------------------------------------------------------------

TEN = "abcdefghij"
OF_TEN: Any = {"batch": 10, "batch_wait": 5}


def batch_app(
    take: Callable[[ps.Batch[Listing]], Coroutine[Any, Any, object]], **settings: int | float
) -> tuple[ps.App, Queue[Listing]]:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, **(OF_TEN | settings))
    listings.batch_handler(take)
    return app, listings


async def send(shop: TestApp, queue: Queue[Listing], names: Iterable[str]) -> None:
    async with shop.unit():
        for name in names:
            queue.send(Listing(name=name))


class Seen:
    """Notes the batches that a handler was given, and when."""

    def __init__(self) -> None:
        self.batches: list[tuple[datetime, str]] = []
        self.shop: TestApp

    async def take(self, batch: ps.Batch[Listing]) -> None:
        assert batch.queue == "listings"
        assert len(batch) == len(batch.messages) == len(list(batch))
        self.batches.append((self.shop.now, names_of(batch)))

    def since(self, start: datetime) -> list[tuple[float, str]]:
        return [((at - start).total_seconds(), names) for at, names in self.batches]


def names_of(batch: ps.Batch[Listing]) -> str:
    return "".join(sorted(message.body.name for message in batch))


@pytest.mark.spec("A1-11")
@virtual
async def test_ten_are_delivered_at_once_and_three_when_the_first_has_waited_five_seconds() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, TEN)
        await seen.shop.advance(seconds=1)
        assert seen.since(start) == [(0.0, TEN)]

        await send(seen.shop, listings, "k")
        await seen.shop.advance(seconds=2)
        await send(seen.shop, listings, "lm")
        await seen.shop.advance(seconds=2.9)
        assert len(seen.batches) == 1
        await seen.shop.advance(seconds=0.1)
        assert seen.since(start) == [(0.0, TEN), (6.0, "klm")]


@pytest.mark.spec("A1-11")
@virtual
async def test_a_batch_that_fills_up_does_not_wait_for_its_time() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, TEN[:9])
        await seen.shop.advance(seconds=2)
        assert seen.batches == []
        await send(seen.shop, listings, TEN[9])
        await seen.shop.advance(seconds=1)

        assert seen.since(start) == [(2.0, TEN)]


@pytest.mark.spec("A1-11")
@virtual
async def test_a_batch_is_also_full_when_delayed_messages_become_due() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        async with seen.shop.unit():
            for name in TEN:
                listings.send(Listing(name=name), delay=0 if name == "a" else 2, priority=ord(name) % 3)
        await seen.shop.advance(seconds=6)

        assert seen.since(start) == [(2.0, TEN)]


@pytest.mark.spec("A1-11")
@virtual
async def test_what_is_left_over_from_full_batches_waits_for_its_own_time() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, [f"{number:02}" for number in range(23)])
        await seen.shop.advance(seconds=10)

        assert [(at, len(names) // 2) for at, names in seen.since(start)] == [(0.0, 10), (0.0, 10), (5.0, 3)]


@pytest.mark.spec("A1-11")
@virtual
async def test_without_a_wait_whatever_is_there_is_delivered_at_once() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take, batch_wait=0)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, "abc")
        await seen.shop.advance()

        assert seen.since(start) == [(0.0, "abc")]


@pytest.mark.spec("A1-11")
@virtual
async def test_a_full_batch_does_not_wait_for_handlers_of_single_messages_either() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle, batch=10, batch_wait=60, parallel=1)
    async with TestApp(app) as shop:
        await send(shop, listings, TEN)
        await shop.advance(seconds=1)
        assert shop.delivered(listings)
        await shop.advance(seconds=60)
        assert len(shop.delivered(listings)) == 10
