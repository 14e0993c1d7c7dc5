"""A unit of work is saved whole with its settlement or not at all, and takes nothing in once it is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.contracts.effects import Transaction
from penstock.model.errors import NotYetCommitted, UnitTooLarge
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app


@virtual
async def test_a_write_or_a_send_without_a_unit_is_refused() -> None:
    app, listings = shop_app()
    async with TestApp(app):
        with pytest.raises(ps.NoUnit):
            listings.send(Listing(name="a"))
        with pytest.raises(ps.NoUnit):
            app.db.write(EFFECT, what="a")


@pytest.mark.spec("A2-09")
@virtual
async def test_writes_sends_and_settlement_are_saved_together() -> None:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what=listing.name)
        photos.send(Photo(name=listing.name))
        if message.attempt == 1:
            raise OSError("after everything was written and sent")

    async def photo(photo: Photo) -> None:
        app.db.write(EFFECT, what=f"photo of {photo.name}")

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=29)
        assert await effects(app) == []
        assert (await shop.counts(photos)).sent == 0

        await shop.advance(seconds=1)
        assert await effects(app) == ["a", "photo of a"]
        assert (await shop.counts(photos)).sent == 1


@virtual
async def test_a_background_task_that_outlives_its_handler_can_save_nothing() -> None:
    refused: list[type[Exception]] = []
    left_over: list[asyncio.Task[None]] = []

    async def late() -> None:
        await asyncio.sleep(5)
        for call in (lambda: app.db.write(EFFECT, what="late"), lambda: listings.send(Listing(name="late"))):
            try:
                call()
            except ps.UnitClosed as error:
                refused.append(type(error))
        try:
            async with app.unit():
                pass
        except ps.UnitClosed as error:
            refused.append(type(error))

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what="in time")
        left_over.append(asyncio.create_task(late()))

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)

        assert refused == [ps.UnitClosed] * 3
        assert await effects(app) == ["in time"]
        assert shop.delivered(listings) == [attempt(1)]


@virtual
async def test_a_lost_update_fails_the_handler_at_its_line_and_the_message_is_tried_again() -> None:
    versions = [7, 1]

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what="sold")
        app.db.write(
            "update stock set pieces = pieces - 1, version = version + 1 where item = 'a' and version = :version",
            version=versions.pop(0),
            expect=1,
        )

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        async with shop.unit():
            app.db.write("insert into stock (item, pieces) values ('a', 5)")
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=29)
        assert await effects(app) == []
        [failed] = await app.db.rows("select error_class, error_message from penstock_messages")
        assert failed.error_class == "LostUpdate"
        assert f"called at {__file__}:" in failed.error_message

        await shop.advance(seconds=1)
        assert await effects(app) == ["sold"]
        assert await app.db.value("select pieces from stock") == 4
        assert shop.delivered(listings) == [attempt(1), attempt(2)]


@virtual
async def test_atomically_sees_what_its_unit_wrote_and_its_result_is_known_after_the_commit() -> None:
    app, _ = shop_app()
    async with TestApp(app) as shop:

        def counted(tx: Transaction) -> int:
            tx.write(EFFECT, what="from inside")
            return int(tx.value("select count(*) from effects"))

        async with shop.unit():
            written = app.db.write("insert into effects (what) values ('a'), ('b')")
            found = app.db.atomically(counted)
            with pytest.raises(NotYetCommitted):
                _ = found.result
            with pytest.raises(NotYetCommitted):
                _ = written.changes
            assert await effects(app) == []

        assert (found.result, written.changes) == (3, 2)
        assert await effects(app) == ["a", "b", "from inside"]


@virtual
async def test_what_is_saved_midway_survives_a_later_failure_of_its_handler() -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        async with app.unit():
            app.db.write(EFFECT, what="midway")
        app.db.write(EFFECT, what="end")
        if message.attempt == 1:
            raise OSError

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=1)
        assert await effects(app) == ["midway"]

        await shop.advance(minutes=1)
        assert await effects(app) == ["end", "midway", "midway"]


@virtual
async def test_a_keyed_unit_commits_once_for_each_message_and_says_when_it_is_repeated() -> None:
    repeated: list[tuple[str, bool]] = []

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        async with app.unit(key="paid") as unit:
            app.db.write(EFFECT, what=f"paid for {listing.name}")
        repeated.append((listing.name, unit.repeated))
        if message.attempt < 3:
            raise OSError

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)
        await shop.send(listings, Listing(name="b"))
        await shop.advance(minutes=5)

        assert repeated == [(name, again) for name in "ab" for again in (False, True, True)]
        assert await effects(app) == ["paid for a", "paid for b"]


@virtual
async def test_once_does_not_call_again_what_it_has_the_result_of() -> None:
    called: list[str] = []
    results: list[object] = []

    async def charge(name: str) -> dict[str, object]:
        called.append(name)
        await asyncio.sleep(1)
        return {"receipt": len(called), "name": name}

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        results.append(await app.once("charge", charge, listing.name))
        if message.attempt < 3:
            raise OSError

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)

        assert called == ["a"]
        assert results == [{"receipt": 1, "name": "a"}] * 3


@pytest.mark.spec("A2-11")
@virtual
async def test_a_handler_that_runs_again_sends_with_the_same_ids() -> None:
    sent: list[list[str]] = []

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        sent.append([photos.send(Photo(name=str(number))) for number in range(3)])
        if message.attempt < 3:
            raise OSError

    app, listings = shop_app(handle)
    photos = app.queue("photos", Photo)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)

        assert sent[0] == sent[1] == sent[2]
        assert len(set(sent[0])) == 3
        assert (await shop.counts(photos)).sent == 3


@virtual
async def test_a_cancellation_during_a_commit_waits_and_the_unit_is_saved_once() -> None:
    ended: list[str] = []

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        if message.attempt > 1:
            return
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(4)
        try:
            async with app.unit():
                app.db.write(EFFECT, what="midway")
        except asyncio.CancelledError:
            ended.append(f"cancelled after {asyncio.get_running_loop().time() - began:g} s")
            raise
        ended.append("went on")

    app, listings = shop_app(handle, timeout=5)
    # The commit is asked for after 4 s and takes 2 s; the wall limit cancels the handler at 5 s.
    async with TestApp(app, latency=1.0) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)

        assert ended == ["cancelled after 6 s"]
        assert await effects(app) == ["midway"]
        assert shop.delivered(listings) == [attempt(1), attempt(2)]


@virtual
async def test_a_bad_unit_does_not_harm_the_others_of_its_group() -> None:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        await asyncio.sleep(1)
        app.db.write(EFFECT, what=listing.name)
        if listing.name == "bad" and message.attempt == 1:
            app.db.write("insert into no_such_table (what) values ('bad')")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        names = [*"abcdefgh", "bad"]
        async with shop.unit():
            for name in names:
                listings.send(Listing(name=name))
        await shop.advance(seconds=10)
        assert await effects(app) == list("abcdefgh")

        await shop.advance(minutes=1)
        assert await effects(app) == sorted(names)
        assert len(shop.delivered(listings)) == len(names) + 1
        assert next(each for each in shop.delivered(listings) if each == attempt(2)).payload == Listing(name="bad")


@virtual
async def test_a_unit_holds_a_thousand_calls_and_four_megabytes() -> None:
    app, listings = shop_app()
    async with TestApp(app) as shop:
        with pytest.raises(UnitTooLarge, match="1,000 calls"):
            async with shop.unit():
                for _ in range(1_001):
                    app.db.write(EFFECT, what="a")
        with pytest.raises(UnitTooLarge, match="4,000,000 bytes"):
            async with shop.unit():
                for _ in range(5):
                    listings.send(Listing(name="a" * 900_000))
        assert await effects(app) == []
        assert (await shop.counts(listings)).sent == 0

        async with shop.unit():
            for _ in range(999):
                app.db.write(EFFECT, what="a")
            app.db.write_many(EFFECT, [{"what": "b"} for _ in range(5_000)])
        assert await app.db.value("select count(*) from effects") == 5_999
