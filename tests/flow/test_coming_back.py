"""An id that comes back is delivered once, for as long as it can come back; and what a message did once stays done."""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime
from functools import partial
from typing import Any

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadConfig
from penstock.model.limits import DAY
from penstock.queues.external import Outgoing
from penstock.queues.queue import Queue
from penstock.testing import NotIdempotent, TestApp, attempt, deliver_twice, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app

ID = "0190b8f0-1234-7abc-8def-0123456789ab"


def effect_app() -> tuple[ps.App, Queue[Any]]:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle)
    return app, listings


# -- one id, many times -----------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-07", "A2-10", "G4-01", "G4-30")
@pytest.mark.parametrize("key", ["id", "unique"])
@virtual
async def test_one_id_sent_fifty_times_in_parallel_runs_once(key: str) -> None:
    app, listings = effect_app()
    async with TestApp(app) as shop:
        sends = partial(shop.send, listings, Listing(name="a"), **{key: ID})  # type: ignore[arg-type]
        ids = await asyncio.gather(*(sends() for _ in range(50)))
        await shop.drain()

        assert len(set(ids)) == 1
        assert shop.delivered(listings) == [attempt(1)]
        assert await effects(app) == ["a"]
        assert (await shop.counts(listings)).sent == 1


@pytest.mark.spec("A2-07")
@virtual
async def test_one_id_in_one_unit_in_a_batch_of_drafts_and_from_a_handler_is_sent_once() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        photos.send(Photo(name=listing.name), id=ID)

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    async with TestApp(app) as shop:
        async with shop.unit():
            photos.send(Photo(name="a"), id=ID)
            photos.send(Photo(name="b"), id=ID.upper())
            photos.send_batch([Outgoing(payload=Photo(name="c"), id=ID)] * 3)
        await shop.send(listings, Listing(name="d"))
        await shop.drain()

        assert await app.db.column("select body from penstock_messages") == [b'{"name":"a"}']
        counts = await shop.counts(photos)
        assert (counts.sent, counts.ready) == (1, 1)


@pytest.mark.spec("G4-03")
@virtual
async def test_one_id_on_two_queues_or_under_two_keys_is_two_messages() -> None:
    app, listings = effect_app()
    photos: ps.Queue[Any] = app.queue("photos")
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"), id=ID)
        await shop.send(photos, Photo(name="a"), id=ID)
        await shop.send(photos, Photo(name="a"), unique="a")
        await shop.send(photos, Photo(name="a"), unique="b")

        assert (await shop.counts(listings)).sent == 1
        assert (await shop.counts(photos)).sent == 3


@pytest.mark.spec("A2-10", "A2-11", "G4-02")
@pytest.mark.parametrize("point", ["commit.before", "commit.after", "commit.known", "unit.sealed"])
@virtual
async def test_a_death_around_the_commit_leaves_one_effect_downstream(point: str) -> None:
    ids: list[str] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        ids.append(photos.send(Photo(name=listing.name)))

    async def photo(photo: Photo) -> None:
        app.db.write(EFFECT, what=photo.name)

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        await shop.crash(at=point, nth=1 if point == "unit.sealed" else 2)
        await shop.send(listings, Listing(name="a"), id=ID)
        await shop.advance(minutes=1)

        assert shop.workers_started == 2
        assert len(set(ids)) == 1
        assert await effects(app) == ["a"]


# -- for how long -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-12", "G4-03", "A15-21")
@virtual
async def test_an_id_that_comes_back_on_day_8_is_skipped_and_its_record_goes_after_day_15() -> None:
    app, listings = effect_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="first"), id=ID)
        for day in (8, 14.9):
            await shop.advance(days=day - (shop.now - START).total_seconds() / DAY)
            await shop.send(listings, Listing(name=f"day {day}"), id=ID)
            await shop.drain()
        assert await effects(app) == ["first"]
        assert await app.db.value("select count(*) from penstock_seen") == 1

        await shop.advance(days=2)
        assert await app.db.value("select count(*) from penstock_seen") == 0
        await shop.send(listings, Listing(name="day 17"), id=ID)
        await shop.drain()
        assert await effects(app) == ["day 17", "first"]


@pytest.mark.spec("A2-12")
@virtual
async def test_the_record_of_a_message_that_still_waits_is_kept_however_old_it_is() -> None:
    app, listings = effect_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="later"), id=ID, delay=30 * DAY)
        await shop.advance(days=20)
        assert await app.db.value("select count(*) from penstock_seen") == 1
        await shop.send(listings, Listing(name="again"), id=ID)
        await shop.advance(days=11)

        assert await effects(app) == ["later"]


@pytest.mark.spec("A2-12", "G4-07")
@virtual
async def test_what_a_waiting_message_did_once_is_remembered_until_it_is_done() -> None:
    charged: list[str] = []

    async def charge() -> None:
        charged.append("card")

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> object:
        await app.once("charge", charge)
        return ps.Later(20 * DAY) if shop.now < START.replace(day=15) else None

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(days=21)

        assert len(shop.delivered(listings)) == 2
        assert charged == ["card"]


@pytest.mark.slow("postgres")
@pytest.mark.spec("A2-12", "G4-07")
@pytest.mark.parametrize("how", ["once", "seen"])
@virtual
async def test_what_a_dead_letter_did_and_its_id_are_remembered_until_it_is_dealt_with(how: str) -> None:
    charged: list[str] = []

    async def charge() -> None:
        charged.append("card")

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        await app.once("charge", charge)
        if message.replay_of is None:
            raise ps.Permanent("after the charge")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"), id=ID)
        await shop.advance(days=20)
        if how == "once":
            assert await app.dead.replay(1) == 1
        else:
            await shop.send(listings, Listing(name="a"), id=ID)
        await shop.drain()

        assert charged == ["card"]


START = datetime.fromisoformat("2026-01-01T00:00:00+00:00")  # where virtual time begins


@pytest.mark.spec("A2-12", "A15-21")
def test_a_configuration_that_forgets_ids_before_messages_can_arrive_is_refused() -> None:
    with pytest.raises(BadConfig, match="dedup_seconds"):
        parse('profile = "cloudflare"\n[limits]\nretention_seconds = 1209600\ndedup_seconds = 604800', "penstock.toml")
    config = parse('profile = "cloudflare"\n[limits]\ndedup_seconds = 604800', "penstock.toml")
    with pytest.raises(BadConfig, match="dedup_seconds"):
        ps.App("shop", config=config).queue("slow", retention=14 * DAY)
    ps.App("shop", config=config).queue("quick", retention=4 * DAY)


@pytest.mark.spec("A2-08")
@virtual
async def test_ids_that_can_come_back_are_listed_in_processed_events_once_they_are_done() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if listing.name == "bad":
            raise ps.Permanent("no")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="good"), id=ID)
        await shop.send(listings, Listing(name="bad"), id=str(uuid.UUID(int=7)))
        assert await app.db.rows("select event_id from processed_events") == []
        await shop.advance(seconds=3)

        [row] = await app.db.rows("select event_id, consumer, type, source, processed_at from processed_events")
        assert row.event_id.replace("-", "") == ID.replace("-", "")
        assert row[1:] == ("listings", "listing", "shop", "2026-01-01T00:00:00Z")


# -- the utility for users ------------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-22", "G4-30")
@pytest.mark.parametrize("how", ["own unit", "keyed unit", "once", "batch", "block"])
@virtual
async def test_consumers_that_keep_to_the_rules_pass_a_double_delivery(how: str) -> None:
    app, _ = shop_app()
    listings = app.queue("double", Listing)

    async def write() -> None:
        app.db.write(EFFECT, what="a")

    async def handle(_listing: Listing) -> None:
        match how:
            case "own unit":
                await write()
            case "keyed unit":
                async with app.unit(key="a"):
                    await write()
            case "once":
                await app.once("a", write)

    async def handle_many(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            if how == "block":
                async with message:
                    await write()
            else:
                await write()

    if how in ("batch", "block"):
        listings.batch_handler(handle_many)
    else:
        listings.handler(Listing)(handle)
    async with TestApp(app) as shop:
        await deliver_twice(shop, listings, Listing(name="a"), effects=lambda: counted(app))
        await deliver_twice(shop, listings, Listing(name="a"), effects=lambda: counted(app))
        assert len(shop.delivered(listings)) == (2 if how == "block" else 4)


@pytest.mark.spec("A2-22", "G4-30")
@pytest.mark.parametrize("how", ["fresh unit", "outside"])
@virtual
async def test_a_consumer_whose_idempotency_was_taken_away_is_found_out(how: str) -> None:
    called: list[str] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if how == "outside":
            called.append(listing.name)  # an outside service that is handed no key
        else:
            async with app.unit():
                app.db.write(EFFECT, what=listing.name)

    async def effects_had() -> int:
        return len(called) or await counted(app)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        with pytest.raises(NotIdempotent, match=r"delivered 2 times .* had 2 effects, not 1"):
            await deliver_twice(shop, listings, Listing(name="a"), effects=effects_had)


@virtual
async def test_the_utility_says_when_it_could_prove_nothing() -> None:
    app, listings = effect_app()
    photos: ps.Queue[Any] = app.queue("photos")
    async with TestApp(app) as shop:
        with pytest.raises(ps.PenstockError, match="No handler serves"):
            await deliver_twice(shop, photos, Photo(name="a"), effects=lambda: counted(app))
        await (await app.desk()).pause("listings")
        with pytest.raises(ps.PenstockError):
            await deliver_twice(shop, listings, Listing(name="a"), effects=lambda: counted(app))


async def counted(app: ps.App) -> int:
    return int(await app.db.value("select count(*) from effects"))
