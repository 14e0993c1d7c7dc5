"""Depth fails no message: paging, polling and long pipelines are legal. A chain that comes round without waiting is not."""

from __future__ import annotations

import asyncio
import io

import pytest
from rich.console import Console

import penstock as ps
from penstock.cli.output import draw
from penstock.cli.trace import drawn
from penstock.runtime.events import ChainGrewLong
from penstock.testing import TestApp, virtual
from penstock.views import trace as tracing
from tests.flow.shop import Listing, Photo, shop_app


@pytest.mark.spec("A2-20", "F-28")
@pytest.mark.parametrize("pages", [20, 1_000])
@virtual
async def test_page_after_page_of_a_source_is_no_loop(pages: int) -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if int(listing.name) < pages:
            listings.send(Listing(name=str(int(listing.name) + 1)))

    app, listings = shop_app(handle)
    warned: list[ChainGrewLong] = []
    app.events.subscribe(warned.append, to=ChainGrewLong)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="0"))
        await shop.drain()

        assert len(shop.delivered(listings)) == pages + 1
        assert await shop.dead(listings) == []
        assert [each.depth for each in warned] == ([1_000] if pages == 1_000 else [])


@pytest.mark.spec("A2-20")
@virtual
async def test_polling_with_a_delay_is_no_loop() -> None:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        if len(shop.delivered(listings)) < 500:
            listings.send(listing, delay=0.01)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="poll"))
        await shop.advance(seconds=59)

        assert len(shop.delivered(listings)) == 500
        assert await shop.dead(listings) == []


@pytest.mark.spec("A2-20", "G4-26")
@virtual
async def test_a_message_that_comes_round_a_hundred_times_becomes_a_dead_letter_loop() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        listings.send(listing)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()

        assert len(shop.delivered(listings)) == 100
        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.error_class, dead.attempts) == ("loop", "LoopBroken", 1)
        assert "`loop_max` under [limits] in penstock.toml" in (dead.error_message or "")


@pytest.mark.spec("A2-20")
@virtual
async def test_messages_that_lead_to_each_other_are_found_even_behind_other_messages() -> None:
    async def ping(listing: Listing, _message: ps.Message[Listing]) -> None:
        number = int(listing.name)
        if number < 30:
            listings.send(Listing(name=str(number + 1)))
        else:
            listings.send(Photo(name="pong"))

    async def pong(_photo: Photo, _message: ps.Message[Photo]) -> None:
        listings.send(Listing(name="30"))

    app, listings = shop_app(ping)
    listings.handler(Photo)(pong)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="0"))
        await shop.drain()

        [dead] = await shop.dead(listings)
        assert dead.reason == "loop"
        assert (
            230 <= len(shop.delivered(listings)) <= 264
        )  # 30 pages, 100 rounds of two, and up to 32 until it is looked for


@pytest.mark.spec("A2-20")
@virtual
async def test_a_round_that_takes_longer_than_the_window_allows_is_no_loop() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(1)
        if len(shop.delivered(listings)) < 300:
            listings.send(listing)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="slow"))
        await shop.advance(minutes=10)

        assert len(shop.delivered(listings)) == 300
        assert await shop.dead(listings) == []


@pytest.mark.spec("A2-20")
@virtual
async def test_a_new_correlation_id_starts_a_new_chain_and_the_same_one_goes_on() -> None:
    seen: list[int] = []

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        seen.append(message.delivery.depth)
        if listing.name == "new" and len(seen) < 300:
            listings.send(listing, correlation=f"after {message.id}")
        elif listing.name == "same":
            listings.send(listing, correlation=message.correlation_id)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="new"))
        await shop.drain()
        assert seen == [0] * 300
        assert await shop.dead(listings) == []

        await shop.send(listings, Listing(name="same"))
        await shop.drain()
        assert [letter.reason for letter in await shop.dead(listings)] == ["loop"]


@pytest.mark.spec("A2-20")
@virtual
async def test_a_replay_starts_a_new_chain() -> None:
    loops = True

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        depths.append(message.delivery.depth)
        if loops or len(depths) < 150:
            listings.send(listing)

    depths: list[int] = []
    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        assert depths == list(range(100))

        loops = False
        await app.dead.replay(ps.DeadLetterFilter(queue="listings"))
        await shop.drain()
        assert depths == [*range(100), *range(50)]
        assert (await shop.counts(listings)).dead == 0


@pytest.mark.spec("A2-20")
@virtual
async def test_a_loop_over_its_own_dead_letters_ends_too() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise ps.Permanent("always")

    app, listings = shop_app(handle)

    @listings.dead_letter_handler
    async def try_again(_letter: ps.DeadLetter) -> None:
        listings.send(Listing(name="again"))

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(days=1)

        assert len(shop.delivered(listings)) <= 110
        # The send of the hundredth round failed the notice that led to it.
        assert (await shop.counts(app.queues["listings-dlq"])).dead == 1


@virtual
async def test_a_long_chain_is_drawn_with_its_depth() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if int(listing.name) < 300:
            listings.send(Listing(name=str(int(listing.name) + 1)))

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        first = await shop.send(listings, Listing(name="0"))
        await shop.drain()
        engine = await app._opened()
        await engine.history.flush()
        now = engine.clock.now()

        found = await tracing.trace(app.db, engine.history, tracing.parsed(first), now=now)
        assert found is not None
        text = io.StringIO()
        draw(Console(file=text, width=160), drawn(found, now))
        assert "depth 300" in text.getvalue()
