"""Nothing depends on the order of deliveries or on their number: the test app shuffles and doubles them on purpose."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.runtime.events import LeaseWasLost
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app

NAMES = [f"{number:02}" for number in range(30)]


@pytest.mark.spec("A1-10", "F-12")
@virtual
async def test_what_is_claimed_together_begins_in_the_order_of_the_seed() -> None:
    async def begun(**options: int | bool) -> list[str]:
        order: list[str] = []

        async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
            order.append(listing.name)

        app, listings = shop_app(handle, parallel=50)
        async with TestApp(app, **options) as shop:  # type: ignore[arg-type]
            async with shop.unit():
                listings.send_batch([Listing(name=name) for name in NAMES])
            await shop.drain()
        assert sorted(order) == NAMES
        return order

    assert await begun() == NAMES
    first, again, other = [await begun(shuffled=True, seed=seed) for seed in (1, 1, 2)]
    assert first == again
    assert len({tuple(order) for order in (NAMES, first, other)}) == 3


@pytest.mark.spec("A1-10", "A2-10")
@pytest.mark.parametrize("seconds", [0, 1])
@virtual
async def test_a_message_delivered_once_too_often_has_its_effects_once(seconds: float) -> None:
    ran: list[str] = []
    lost: list[LeaseWasLost] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        ran.append(listing.name)
        await asyncio.sleep(seconds)
        async with app.unit():
            app.db.write(EFFECT, what=f"midway {listing.name}")
        app.db.write(EFFECT, what=listing.name)
        photos.send(Photo(name=listing.name))

    app, listings = shop_app(handle)
    app.events.subscribe(lost.append, to=LeaseWasLost)
    photos: ps.Queue[Any] = app.queue("photos")
    async with TestApp(app, duplicated=True, shuffled=True) as shop:
        for name in NAMES:
            await shop.send(listings, Listing(name=name))
        await shop.drain()

        assert sorted(ran) == sorted(NAMES * 2)
        assert len(lost) == len(NAMES)
        assert shop.delivered(listings) == [attempt(1)] * len(NAMES)
        assert await effects(app) == sorted([*NAMES, *(f"midway {name}" for name in NAMES)])
        assert (await shop.counts(photos)).sent == (await shop.counts(listings)).acked == len(NAMES)


@pytest.mark.spec("A1-10")
@pytest.mark.parametrize("blocks", [True, False])
@virtual
async def test_a_batch_with_a_double_in_it_is_saved_once(blocks: bool) -> None:
    async def handle(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            if blocks:
                async with message:
                    app.db.write(EFFECT, what=message.body.name)
            else:
                app.db.write(EFFECT, what=message.body.name)

    app, _ = shop_app()
    listings = app.queue("many", Listing, batch=7, batch_wait=1)
    listings.batch_handler(handle)
    async with TestApp(app, duplicated=True, shuffled=True) as shop:
        for name in NAMES:
            await shop.send(listings, Listing(name=name))
        await shop.advance(minutes=5)

        assert await effects(app) == NAMES
        assert (await shop.counts(listings)).acked == len(NAMES)


@pytest.mark.spec("A1-10", "A2-15")
@virtual
async def test_failures_splits_and_deaths_come_to_the_same_end_when_all_is_shuffled_and_doubled(seed: int) -> None:
    async def end(*, unruly: bool) -> tuple[list[str], list[str]]:
        app, listings = shop_app()

        @listings.handler
        async def price(listing: Listing, message: ps.Message[Listing]) -> None:
            if int(listing.name) % 3 == 0 and message.attempt == 1:
                raise OSError
            app.db.write(EFFECT, what=f"price {listing.name}")

        @listings.handler
        async def draw(listing: Listing, _message: ps.Message[Listing]) -> None:
            if int(listing.name) % 5 == 0:
                raise ps.Permanent("no ink")
            app.db.write(EFFECT, what=f"draw {listing.name}")

        async with TestApp(app, seed=seed, shuffled=unruly, duplicated=unruly) as shop:
            for name in NAMES:
                await shop.send(listings, Listing(name=name))
            await shop.advance(hours=1)
            return await effects(app), sorted(letter.body.decode() for letter in await app.dead.list())

    assert await end(unruly=True) == await end(unruly=False)
