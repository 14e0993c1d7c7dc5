"""Days pass in about a second, and the same seed gives the same days."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.extent import EVERYTHING
from tests.flow.shop import EFFECT, Listing, shop_app

HOURS = 72 if EVERYTHING else 8
MINUTES = HOURS * 60
FAILS_EVERY = 5


def test_days_with_a_message_a_minute_and_retries_take_seconds(note: Callable[[str], None]) -> None:
    began = time.perf_counter()
    delivered = delivered_in_days()
    seconds = time.perf_counter() - began

    note(f"virtual time: hours: {HOURS}, {MINUTES:,} messages, {delivered:,} deliveries in {seconds:.2f} s")
    assert delivered == MINUTES + MINUTES // FAILS_EVERY


def delivered_in_days() -> int:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        number = int(listing.name)
        if number % FAILS_EVERY == 0 and message.attempt == 1:
            raise OSError("the shop is closed")
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle)
    count = 0

    @virtual
    async def days() -> None:
        nonlocal count
        async with TestApp(app) as shop:
            began = shop.now
            async with shop.unit():
                listings.send_all([Listing(name=str(number)) for number in range(1, MINUTES + 1)], every=59.9)
            await shop.advance(hours=HOURS)
            assert shop.now - began == timedelta(hours=HOURS)
            assert await app.db.value("select count(distinct what) from effects") == MINUTES
            assert await app.db.value("select count(*) from effects") == MINUTES
            count = len(shop.delivered(listings))

    days()
    return count


def test_the_same_seed_gives_the_same_ids_and_times() -> None:
    def run(seed: int) -> list[object]:
        seen: list[object] = []

        @virtual(seed=seed)
        async def once() -> None:
            app, listings = shop_app()
            shop = TestApp(app, seed=seed)

            async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
                seen.append((message.id, message.attempt, shop.now))
                if message.attempt == 1:
                    raise OSError

            listings.handler(Listing)(handle)
            async with shop:
                for name in "abc":
                    await shop.send(listings, Listing(name=name))
                await shop.advance(minutes=2)

        once()
        return seen

    assert run(1) == run(1)
    assert run(1) != run(2)
