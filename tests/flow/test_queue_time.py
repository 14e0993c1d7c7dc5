"""How long a handler may hold the processor: what it waits for costs it nothing, what it computes does."""

from __future__ import annotations

import asyncio
from time import thread_time

import pytest

import penstock as ps
from penstock.model.errors import BadApp
from penstock.model.limits import CLOUDFLARE
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, effects, shop_app

pytestmark = pytest.mark.spec("A1-18")


def compute(seconds: float) -> None:
    """Holds the processor for so long; virtual time stands still meanwhile."""
    until = thread_time() + seconds
    while thread_time() < until:
        pass


@virtual
async def test_a_handler_past_its_processor_time_is_cancelled_and_charged() -> None:
    steps: list[int] = []

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what=f"attempt {message.attempt}")
        for _ in range(10 if message.attempt == 1 else 1):
            compute(0.04)
            steps.append(message.attempt)
            await asyncio.sleep(1)

    app, listings = shop_app(handle, cpu_timeout=0.1)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=29)
        assert steps == [1, 1, 1]  # 0.04 and 0.08 s are within the limit, 0.12 s is not
        await shop.advance(seconds=60)

        assert shop.delivered(listings) == [attempt(1), attempt(2)]
        assert await effects(app) == ["attempt 2"]


@virtual
async def test_the_first_step_counts_and_the_next_message_in_the_same_slot_starts_anew() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        compute(0.06 if listing.name == "greedy" else 0.03)
        await asyncio.sleep(0)
        ended.append(listing.name)

    ended: list[str] = []
    app, listings = shop_app(handle, cpu_timeout=0.05, parallel=1, retries=0)
    async with TestApp(app) as shop:
        for name in ("a", "greedy", "b", "c"):
            await shop.send(listings, Listing(name=name))
        await shop.drain()

        assert ended == ["a", "b", "c"]
        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.error_class) == ("exhausted", "CpuTimeout")
        assert dead.error_message is not None
        assert "0.05 s" in dead.error_message
        assert "`cpu_timeout=`" in dead.error_message


@virtual
async def test_waiting_costs_no_processor_time_and_what_ended_has_ended() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if listing.name == "patient":
            await asyncio.sleep(600)
        else:
            compute(0.1)  # and is done: there is nothing left to cancel

    app, listings = shop_app(handle, cpu_timeout=0.05)
    async with TestApp(app) as shop:
        for name in ("patient", "quick"):
            await shop.send(listings, Listing(name=name))
        await shop.advance(minutes=11)

        assert (await shop.counts(listings)).acked == 2


@virtual
async def test_a_batch_past_its_processor_time_is_retried_but_for_what_was_settled() -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            async with message:
                app.db.write(EFFECT, what=f"{message.body.name}, attempt {message.attempt}")
            compute(0.06 if message.attempt == 1 else 0.0)
            await asyncio.sleep(1)

    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=4, batch_wait=1, cpu_timeout=0.1)
    listings.batch_handler(take)
    async with TestApp(app) as shop:
        for name in "abcd":
            await shop.send(listings, Listing(name=name))
        await shop.advance(minutes=2)

        assert await effects(app) == ["a, attempt 1", "b, attempt 1", "c, attempt 2", "d, attempt 2"]
        assert (await shop.counts(listings)).acked == 4


@virtual
async def test_a_handler_that_will_not_stop_is_left_to_its_wall_limit() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        for _ in range(5):
            compute(0.03)
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                told.append(message.attempt)

    told: list[int] = []
    app, listings = shop_app(handle, cpu_timeout=0.05)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.send(listings, Listing(name="b"), delay=60)
        await shop.advance(minutes=2)

        assert told == [1, 1]  # once each; it ended in spite of that
        assert (await shop.counts(listings)).acked == 2


@pytest.mark.spec("A15-07")
def test_the_profile_says_how_much_and_a_queue_may_say_otherwise() -> None:
    platform = ps.App("shop")
    platform.limits = CLOUDFLARE
    assert ps.App("shop").queue("listings").settings.cpu_timeout_seconds is None
    assert platform.queue("listings").settings.cpu_timeout_seconds == 30
    assert platform.queue("reports", cpu_timeout=300).settings.cpu_timeout_seconds == 300
    with pytest.raises(BadApp, match=r"'pages': cpu_timeout is 301; it can be 300\.0 at most"):
        platform.queue("pages", cpu_timeout=301)
    with pytest.raises(BadApp, match=r"'pages': cpu_timeout is 0; it must be more than 0"):
        platform.queue("pages", cpu_timeout=0)
