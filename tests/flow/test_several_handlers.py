"""Several handlers of one type: each gets a row of its own, with its own retries, its own death and its own ids."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadApp
from penstock.queues.queue import Queue
from penstock.runtime.events import MessageSettled
from penstock.testing import CRASH_POINTS, TestApp, virtual
from tests.extent import sampled
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app
from tests.flow.test_envelopes import beside

Ran = list[tuple[str, int]]


def two_handlers(ran: Ran, *, second_fails: int = 0) -> tuple[ps.App, Queue[Listing]]:
    """`price` always succeeds; `draw` fails so many times before it does."""
    app, listings = shop_app()

    @listings.handler(Listing)
    async def price(listing: Listing, message: ps.Message[Listing]) -> None:
        ran.append(("price", message.attempt))
        app.db.write(EFFECT, what=f"price of {listing.name}")

    @listings.handler(Listing)
    async def draw(listing: Listing, message: ps.Message[Listing]) -> None:
        ran.append(("draw", message.attempt))
        app.db.write(EFFECT, what=f"drawing of {listing.name}")
        if message.attempt <= second_fails:
            raise OSError("no ink")

    return app, listings


@pytest.mark.spec("A2-15", "G4-03")
@virtual
async def test_the_failure_of_one_handler_repeats_that_one_alone() -> None:
    ran: Ran = []
    app, listings = two_handlers(ran, second_fails=1)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)

        assert sorted(ran) == [("draw", 1), ("draw", 2), ("price", 1)]
        assert await effects(app) == ["drawing of a", "price of a"]
        counts = await shop.counts(listings)
        assert (counts.sent, counts.acked) == (2, 2)


@pytest.mark.spec("A2-15")
@virtual
async def test_the_death_of_one_handlers_row_names_it_and_a_replay_runs_that_one_alone() -> None:
    ran: Ran = []
    app, listings = two_handlers(ran, second_fails=4)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(hours=1)
        assert ran.count(("price", 1)) == 1
        [letter] = await app.dead.list()
        assert (letter.handler, letter.attempts, letter.reason) == ("draw", 4, "exhausted")
        assert await effects(app) == ["price of a"]
        ran.clear()

        assert await app.dead.replay(letter.id) == 1
        await shop.advance(hours=1)

        assert ran == [("draw", 1), ("draw", 2), ("draw", 3), ("draw", 4)]


@virtual
async def test_rows_of_both_handlers_that_died_are_replayed_apart_and_each_has_a_canary_of_its_own() -> None:
    good: list[bool] = []
    ran: list[str] = []
    app, listings = shop_app()

    @listings.handler(Listing, name="one")
    async def one(_listing: Listing) -> None:
        ran.append("one")
        if not good:
            raise ps.Permanent("not yet")

    @listings.handler(Listing, name="two")
    async def two(_listing: Listing) -> None:
        ran.append("two")
        if not good:
            raise ps.Permanent("not yet")

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        letters = await app.dead.list()
        assert sorted(letter.handler for letter in letters) == ["one", "two"]
        assert len({letter.event_id for letter in letters}) == 1

        assert await app.dead.replay(letters[0].id) == 1
        await shop.drain()  # it dies again, and its sibling has not been sent yet
        good.append(True)
        ran.clear()
        assert await app.dead.replay(letters[1].id, canary=True) == 1
        await shop.drain()

        assert ran == [letters[1].handler]
        [left] = await app.dead.list()
        assert left.handler == letters[0].handler


@pytest.mark.spec("A2-15", "A2-09")
@sampled("point", CRASH_POINTS, every=3)
@pytest.mark.parametrize("nth", [1, 2, 3])
@virtual
async def test_a_worker_that_dies_around_the_split_loses_no_handler_and_repeats_none(point: str, nth: int) -> None:
    app, listings = two_handlers([])
    async with TestApp(app) as shop:
        await shop.crash(at=point, nth=nth)
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)

        assert await effects(app) == ["drawing of a", "price of a"]
        counts = await shop.counts(listings)
        assert (counts.sent, counts.acked) == (2, 2)


@virtual
async def test_a_repeated_id_reaches_each_handler_once() -> None:
    ran: Ran = []
    app, listings = two_handlers(ran)
    id = "0190b8f0-1234-7abc-8def-0123456789ab"
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"), id=id)
        await shop.send(listings, Listing(name="a"), id=id)
        await shop.drain()
        await shop.send(listings, Listing(name="a"), id=id)
        await shop.drain()

        assert sorted(ran) == [("draw", 1), ("price", 1)]


@pytest.mark.spec("A2-11")
@virtual
async def test_what_two_handlers_send_has_ids_of_its_own_also_when_one_runs_again() -> None:
    sent: dict[str, set[str]] = {"one": set(), "two": set()}
    app, listings = shop_app()
    photos: ps.Queue[Any] = app.queue("photos")

    for name in sent:

        @listings.handler(Listing, name=name)
        async def send(_listing: Listing, message: ps.Message[Listing]) -> None:
            sent[message.delivery.handler].add(photos.send(Photo(name="a")))
            if message.delivery.handler == "two" and message.attempt == 1:
                raise OSError

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)

        assert [len(ids) for ids in sent.values()] == [1, 1]
        assert sent["one"] != sent["two"]
        assert (await shop.counts(photos)).sent == 2


@virtual
async def test_a_handler_that_is_added_while_a_message_waits_gets_it_too() -> None:
    ran: list[str] = []

    async def first(_listing: Listing) -> None:
        ran.append("first")
        if len(ran) == 1:
            raise OSError

    async def second(_listing: Listing) -> None:
        ran.append("second")

    app, listings = shop_app()
    listings.handler(Listing)(first)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=10)
        listings.handler(Listing)(second)
        await shop.restart()
        await shop.advance(minutes=1)

        assert sorted(ran) == ["first", "first", "second"]


@pytest.mark.spec("A2-16")
@virtual
async def test_a_row_for_a_handler_that_is_gone_is_a_dead_letter_that_names_it() -> None:
    app, listings = two_handlers([], second_fails=4)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=10)
        listings.handlers["listing"] = listings.handlers["listing"][:1]
        await shop.restart()
        await shop.advance(hours=1)

        [dead] = await shop.dead(listings)
        assert dead.reason == "unknown_type"
        assert "'draw'" in str(dead.error_message)


@pytest.mark.spec("A2-16")
@virtual
async def test_two_workers_without_that_handler_do_not_pass_its_row_on_for_ever() -> None:
    app, listings = two_handlers([], second_fails=4)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=10)
        listings.handlers["listing"] = listings.handlers["listing"][:1]
        other, _ = two_handlers([])
        other.queues["listings"].handlers["listing"] = other.queues["listings"].handlers["listing"][:1]
        await beside(shop, other)
        await shop.restart()
        await shop.advance(hours=1)

        assert [dead.reason for dead in await shop.dead(listings)] == ["unknown_type"]


@virtual
async def test_settlements_of_split_rows_are_reported_for_each_of_them() -> None:
    app, listings = two_handlers([])
    told: list[str] = []
    app.events.subscribe(lambda event: told.append(type(event.settlement).__name__), to=MessageSettled)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()

        assert told == ["Split", "Done", "Done"]


def test_two_handlers_of_one_name_or_beside_a_batch_are_refused() -> None:
    app, listings = two_handlers([])

    async def price(_listing: Listing) -> None: ...

    async def many(_batch: ps.Batch[Listing]) -> None: ...

    with pytest.raises(BadApp, match="called 'price'"):
        listings.handler(Listing)(price)
    with pytest.raises(BadApp, match="two consumers"):
        listings.batch_handler(many)
    listings.handler(Listing, name="price again")(price)
    assert app.queues["listings"] is listings
