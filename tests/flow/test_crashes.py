"""A worker that dies anywhere loses nothing and repeats nothing; what it ran is suspected, what it only held is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.runtime.events import RowsReturned
from penstock.testing import CRASH_POINTS, TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Busy, Listing, Photo, effects, shop_app

# Not on the way of a message from one handler to another: the tests of timers and of the HTTP server die there.
ELSEWHERE = {
    *("commit.fired", "send.after_commit", "pull.after_commit"),
    *("step.before", "step.after", "step.saved"),
}


@pytest.mark.spec("A1-09", "A2-09", "A13-11", "F-19")
@pytest.mark.fault("F01")
@pytest.mark.parametrize("point", [point for point in CRASH_POINTS if point not in ELSEWHERE])
@virtual
async def test_a_death_at_any_point_leaves_one_effect_and_one_message_sent(point: str) -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(5)
        app.db.write(EFFECT, what=listing.name)
        photos.send(Photo(name=listing.name))

    async def photo(photo: Photo) -> None:
        app.db.write(EFFECT, what=f"photo of {photo.name}")

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        await shop.crash(at=point)
        await shop.send(listings, Listing(name="a"))
        await shop.send(listings, Listing(name="b"))
        await shop.advance(seconds=1)
        if point.startswith("return."):
            await shop.kill()
        if point == "drain.begun":
            await shop.restart()
        await shop.advance(minutes=1)

        assert shop.workers_started == (3 if point.startswith("return.") else 2), "nobody died"
        assert await effects(app) == ["a", "b", "photo of a", "photo of b"]
        for queue in (listings, photos):
            counts = await shop.counts(queue)
            assert (counts.sent, counts.acked) == (2, 2)


@pytest.mark.fault("F01")
@virtual
async def test_the_messages_of_a_dead_worker_are_delivered_again_at_once() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(60)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=10)
        await shop.kill()

        assert shop.delivered(listings) == [attempt(1), attempt(1)]
        assert shop.delivered(listings)[1].at == shop.now


@virtual
async def test_what_a_dead_worker_only_held_goes_back_untouched_and_what_ran_is_suspected() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(10)

    app, listings = shop_app(handle, parallel=2)
    returned: list[RowsReturned] = []
    app.events.subscribe(returned.append, to=RowsReturned)
    async with TestApp(app) as shop:
        async with shop.unit():
            for name in "abcde":
                listings.send(Listing(name=name))
        await shop.advance(seconds=5)
        await shop.kill()

        assert [(each.released, each.suspected) for each in returned] == [(0, 2)]
        crashes = await app.db.column("select crashes from penstock_messages order by seq")
        assert crashes == [1, 1, 0, 0, 0]


@virtual
async def test_a_death_before_any_handler_began_suspects_no_message() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.crash(at="claim.delivered")
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=1)

        assert shop.workers_started == 2
        assert shop.delivered(listings) == [attempt(1)]


@virtual
async def test_a_suspect_is_delivered_alone() -> None:
    busy = Busy()

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        seen.append((listing.name, message.delivery.crashes))
        await busy.work(listing.name, 10)

    seen: list[tuple[str, int]] = []
    app, listings = shop_app(handle, parallel=3)
    async with TestApp(app) as shop:
        async with shop.unit():
            for name in "abc":
                listings.send(Listing(name=name))
        await shop.advance(seconds=5)
        busy.now = 0  # its handlers go with their process
        await shop.kill()
        async with shop.unit():
            for name in "def":
                listings.send(Listing(name=name))
        await shop.drain()

        assert sorted(name for name, crashes in seen if crashes) == ["a", "b", "c"]
        assert set(busy.alone) >= {"a", "b", "c"}
        assert len(await shop.dead(listings)) == 0


@pytest.mark.fault("F06")
@virtual
async def test_a_message_that_kills_its_worker_three_times_is_a_dead_letter_and_its_neighbours_are_not_charged() -> (
    None
):
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(1)
        if listing.name == "poison":
            shop.die()
        await asyncio.sleep(1)
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle, parallel=4)
    async with TestApp(app) as shop:
        async with shop.unit():
            for name in ("a", "poison", "b", "c"):
                listings.send(Listing(name=name))
        await shop.advance(minutes=5)

        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.attempts, dead.crashes) == ("worker_died", 0, 3)
        assert b"poison" in dead.body
        assert await effects(app) == ["a", "b", "c"]
        assert shop.workers_started == 4
        assert [each.number for each in shop.delivered(listings)] == [1] * len(shop.delivered(listings))
