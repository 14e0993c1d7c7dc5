"""What a queue refuses: bodies and batches that are too large, delays that are too long, and more than it holds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadApp, BadMessage, TooLarge, UnitTooLarge
from penstock.queues.queue import Queue
from penstock.runtime.events import MessageFailed, MessageWasLarge
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app

PROFILES = ("local", "cloudflare")
BODY_BYTES_MAX = {"local": 1_000_000, "cloudflare": 128_000}
MESSAGES_MAX = {"local": 10_000, "cloudflare": 100}
SEND_BYTES_MAX = {"local": 4_000_000, "cloudflare": 256_000}
OVERHEAD = 100


def platform(profile: str = "cloudflare", limits: str = "", **queue: Any) -> tuple[ps.App, Queue[Any]]:
    app = ps.App("shop", config=parse(f'profile = "{profile}"\n[limits]\n{limits}', "penstock.toml"))
    return app, app.queue("listings", **queue)


async def waiting(shop: TestApp, queue: Queue[Listing]) -> int:
    counts = await shop.counts(queue)
    return counts.ready + counts.delayed


@pytest.mark.spec("A1-05", "F-13", "A15-02")
@pytest.mark.fault("F36")
@pytest.mark.parametrize("profile", PROFILES)
@virtual
async def test_a_body_at_the_limit_is_sent_and_one_byte_more_is_refused_with_both_numbers(profile: str) -> None:
    app, listings = platform(profile)
    most = BODY_BYTES_MAX[profile]
    async with TestApp(app) as shop:
        await shop.send(listings, "x" * (most - OVERHEAD))
        with pytest.raises(TooLarge) as refused:
            await shop.send(listings, "x" * (most - OVERHEAD + 1))
        assert (refused.value.bytes, refused.value.bytes_max) == (most + 1, most)  # type: ignore[attr-defined]
        with pytest.raises(TooLarge):
            await shop.send(listings, "ö" * (most // 2))
        await shop.send(listings, "")
        assert await waiting(shop, listings) == 2


@pytest.mark.spec("A1-05", "F-13")
@virtual
async def test_a_body_of_eleven_kilobytes_is_sent_with_one_warning() -> None:
    app, listings = platform()
    warned: list[MessageWasLarge] = []
    app.events.subscribe(warned.append, to=MessageWasLarge)
    async with TestApp(app) as shop:
        await shop.send(listings, "x" * 10_000)
        assert warned == []
        for _ in range(3):
            await shop.send(listings, "x" * 11_000)
        assert [(each.queue, each.type, each.bytes) for each in warned] == [("listings", "text", 11_000)]
        assert await waiting(shop, listings) == 4


@pytest.mark.spec("A1-03", "A15-03")
@pytest.mark.fault("F36")
@pytest.mark.parametrize("profile", PROFILES)
@virtual
async def test_a_batch_at_the_limits_is_sent_and_one_more_message_or_byte_is_refused_whole(profile: str) -> None:
    app, listings = platform(profile)
    many, size = MESSAGES_MAX[profile], SEND_BYTES_MAX[profile]
    async with TestApp(app) as shop:
        async with shop.unit():
            with pytest.raises(TooLarge, match="messages"):
                listings.send_batch(["x"] * (many + 1))
        assert await waiting(shop, listings) == 0
        async with shop.unit():
            ids = listings.send_batch(["x"] * many)
        assert len(set(ids)) == await waiting(shop, listings) == many

        share = size // 8
        async with shop.unit():
            with pytest.raises(TooLarge, match="bytes"):
                listings.send_batch(["x" * (share - OVERHEAD)] * 7 + ["x" * (share - OVERHEAD + 1)])
        assert await waiting(shop, listings) == many
        async with shop.unit():
            listings.send_batch(["x" * (share - OVERHEAD)] * 8)
        assert await waiting(shop, listings) == many + 8


@pytest.mark.spec("A1-03")
@pytest.mark.parametrize(
    "bad",
    [
        object(),
        ps.Outgoing(payload="x", delay=-1),
        ps.Outgoing(payload="x", priority=7),
        ps.Outgoing(payload="x", id="7"),
    ],
)
@virtual
async def test_one_bad_message_of_a_batch_leaves_none_of_it_in_the_unit(bad: object) -> None:
    app, listings = platform()
    async with TestApp(app) as shop:
        async with shop.unit():
            listings.send("before")
            with pytest.raises(ps.PenstockError):
                listings.send_batch(["a", "b", bad])
            with pytest.raises(ps.PenstockError):
                listings.send_all(["a"] * 150 + [bad])
        assert await waiting(shop, listings) == 1


@pytest.mark.spec("A1-03")
@virtual
async def test_a_batch_that_the_unit_has_no_room_for_is_left_out_whole() -> None:
    app, listings = platform("local")
    async with TestApp(app) as shop:
        async with shop.unit():
            listings.send("x" * 900_000)
            with pytest.raises(UnitTooLarge):
                listings.send_batch(["x" * 900_000] * 4)
        assert await waiting(shop, listings) == 1


@pytest.mark.spec("A1-02", "A15-10")
@pytest.mark.parametrize("profile, most", [("cloudflare", 86_400), ("local", 366 * 86_400)])
@virtual
async def test_the_longest_delay_is_accepted_and_a_second_more_is_refused(profile: str, most: int) -> None:
    app, listings = platform(profile)
    async with TestApp(app) as shop:
        for delay in (most + 1, -1, float("nan"), float("inf")):
            with pytest.raises(BadMessage):
                await shop.send(listings, "x", delay=delay)
        await shop.send(listings, "x", delay=most)
        assert (await shop.counts(listings)).delayed == 1
        if profile == "cloudflare":
            await shop.advance(seconds=most - 1)
            assert (await shop.counts(listings)).delayed == 1
            await shop.advance(seconds=1)
            assert (await shop.counts(listings)).ready == 1


@pytest.mark.spec("A1-25")
@virtual
async def test_a_payload_that_the_queue_does_not_accept_is_refused_before_it_is_sent() -> None:
    app, listings = platform(payload_type=Listing)
    async with TestApp(app) as shop:
        for wrong in (Photo(name="a"), "text", {"name": "a"}, b"{}"):
            with pytest.raises(BadMessage, match="listing"):
                await shop.send(listings, wrong)
        async with shop.unit():
            with pytest.raises(BadMessage):
                listings.send_batch([Listing(name="a"), Photo(name="b")])
        assert (await shop.counts(listings)).sent == 0
        with pytest.raises(BadApp, match="photo"):
            listings.handler(Photo)


# -- queues that are full -------------------------------------------------------------------------------------


@pytest.mark.spec("A1-17", "A15-06")
@pytest.mark.parametrize(
    "limits, queue, most",
    [
        ("", {"messages_max": 10}, 10),
        ("backlog_bytes_max = 100", {}, 10),
        ("queue_messages_per_second_max = 10", {}, 10),
    ],
)
@virtual
async def test_the_send_over_a_bound_is_refused_and_what_was_sent_before_is_intact(
    limits: str, queue: dict[str, int], most: int
) -> None:
    app, listings = platform("cloudflare", limits, **queue)
    async with TestApp(app) as shop:
        for number in range(most):
            async with app.unit():
                listings.send(f"number {number:03}"[:10].ljust(10, "."))
        with pytest.raises(ps.QueueFull) as refused:
            async with app.unit():
                app.db.write(EFFECT, what="never")
                listings.send("one more..")
        assert (refused.value.queue, refused.value.retry_after) == ("listings", 1.0)
        assert await waiting(shop, listings) == most
        assert await effects(app) == []
        with pytest.raises(TooLarge):
            async with app.unit():
                listings.send_all(["x" * 10] * (most + 1))


@pytest.mark.spec("A1-17")
@virtual
async def test_a_queue_takes_more_as_soon_as_its_consumer_or_the_next_second_made_room() -> None:
    async def handle(text: str) -> None: ...

    app, listings = platform("local", messages_max=3)
    listings.handler(str)(handle)
    async with TestApp(app) as shop:
        async with app.unit():
            listings.send_batch(["a", "b", "c"])
        await shop.drain()
        async with app.unit():
            listings.send_batch(["d", "e", "f"])
        await shop.drain()
        assert (await shop.counts(listings)).acked == 6

    app, listings = platform("local", "queue_messages_per_second_max = 3")
    async with TestApp(app) as shop:
        async with app.unit():
            listings.send_batch(["a", "b", "c"])
        with pytest.raises(ps.QueueFull):
            async with app.unit():
                listings.send("d")
        await shop.advance(seconds=1)
        async with app.unit():
            listings.send_batch(["d", "e", "f"])
        assert await waiting(shop, listings) == 6


@pytest.mark.spec("A1-17")
@pytest.mark.fault("F26")
@virtual
async def test_a_handler_that_feeds_a_full_queue_waits_and_loses_no_attempt() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        photos.send(Photo(name=listing.name))
        app.db.write(EFFECT, what=listing.name)

    async def slowly(_photo: Photo) -> None:
        await asyncio.sleep(30)

    app, listings = shop_app(handle)
    photos = app.queue("photos", Photo, messages_max=2, parallel=1)
    photos.handler(Photo)(slowly)
    failed: list[MessageFailed] = []
    app.events.subscribe(failed.append, to=MessageFailed)
    most = 0
    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(10):
                listings.send(Listing(name=str(number)))
        for _ in range(80):
            await shop.advance(seconds=5)
            counts = await shop.counts(photos)
            most = max(most, counts.ready + counts.leased)

        assert most == 2
        assert {each.number for each in shop.delivered(listings)} == {1}
        assert all(each.will_retry for each in failed)
        assert await effects(app) == sorted(map(str, range(10)))
        assert (await shop.counts(photos)).acked == 10
        assert await shop.dead(listings) == []


@virtual
async def test_a_handler_that_sends_more_than_a_queue_can_ever_hold_does_not_go_on_for_ever() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        photos.send_batch([Photo(name="x")] * 3)

    app, listings = shop_app(handle)
    photos = app.queue("photos", Photo, messages_max=2)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(hours=1)

        assert shop.delivered(listings) == [attempt(1)]
        assert [dead.error_class for dead in await shop.dead(listings)] == ["TooLarge"]


@pytest.mark.spec("A1-17", "A15-01")
def test_no_more_queues_than_an_account_may_have() -> None:
    app, _ = platform("cloudflare", "queues_max = 2")
    app.queue("second")
    with pytest.raises(BadApp, match="2 queues"):
        app.queue("third")
