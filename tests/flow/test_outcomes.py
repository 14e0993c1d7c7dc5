"""What a handler answers decides what becomes of its message: done, again, later or dead."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import Listing, Photo, shop_app


@pytest.fixture(params=["orderly", "shuffled", "duplicated", "both"])
def shop(request: pytest.FixtureRequest, listings: Queue[Listing], seed: int) -> TestApp:
    """What becomes of a message depends neither on its turn nor on how often it is sent and delivered."""
    app = listings._home
    assert isinstance(app, ps.App)
    shuffled, duplicated = request.param in ("shuffled", "both"), request.param in ("duplicated", "both")
    shop = TestApp(app, seed=seed, shuffled=shuffled, duplicated=duplicated)
    shop.answering(listings)
    return shop


@pytest.mark.spec("A1-13", "A1-14", "A2-17")
async def test_a_failing_message_is_retried_after_30_60_and_120_seconds_and_then_is_a_dead_letter(
    shop: TestApp, listings: Queue[Listing]
) -> None:
    await shop.send(listings, Listing(name="a"))
    shop.answers.extend(ValueError(f"broken {number}") for number in range(1, 5))

    await shop.advance(hours=1)

    tries = shop.delivered(listings)
    assert tries == [attempt(1), attempt(2), attempt(3), attempt(4)]
    times = [each.at for each in tries if each.at is not None]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps == [timedelta(seconds=30), timedelta(seconds=60), timedelta(seconds=120)]
    [dead] = await shop.dead(listings)
    assert (dead.reason, dead.attempts, dead.crashes) == ("exhausted", 4, 0)
    assert (dead.error_class, dead.error_message) == ("ValueError", "broken 4")


@pytest.mark.spec("A1-06")
@virtual
async def test_a_message_keeps_its_id_and_time_while_its_attempts_go_up() -> None:
    seen: list[tuple[str, object, int]] = []

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        seen.append((message.id, message.sent_at, message.attempt))
        if message.attempt < 3:
            raise OSError

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        began = shop.now
        id = await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=5)

        assert seen == [(id, began, 1), (id, began, 2), (id, began, 3)]


@pytest.mark.spec("F-24")
@virtual
async def test_what_a_failed_attempt_did_to_its_message_is_not_in_the_next_one() -> None:
    seen: list[dict[str, Any]] = []

    async def handle(order: dict[str, Any]) -> None:
        seen.append(dict(order))
        order["done"] = ["charged"]  # state that the handler would find again, if a message kept it
        if len(seen) < 3:
            raise OSError

    app = ps.App("shop")
    orders = app.queue("orders")
    orders.handler(handle)
    async with TestApp(app) as shop:
        async with shop.unit():
            orders.send({"id": 1})
        await shop.advance(minutes=5)

        assert seen == [{"id": 1}] * 3


async def test_a_throttled_message_waits_without_losing_an_attempt(shop: TestApp, listings: Queue[Listing]) -> None:
    await shop.send(listings, Listing(name="a"))
    shop.answers.append(ps.Throttled(retry_after=30))

    await shop.advance(seconds=30)

    assert shop.delivered(listings) == [attempt(1), attempt(1)]


@pytest.mark.parametrize("answer", [ps.Later(45), ps.Throttled(retry_after=45), ps.Unavailable(retry_after=45)])
async def test_an_answer_that_asks_for_time_gets_it_and_charges_nothing(
    shop: TestApp, listings: Queue[Listing], answer: object
) -> None:
    shop.answers.extend([answer] * 10)
    await shop.send(listings, Listing(name="a"))

    await shop.advance(seconds=44)
    assert len(shop.delivered(listings)) == 1
    await shop.advance(seconds=1)
    assert shop.delivered(listings) == [attempt(1)] * 2
    await shop.advance(hours=1)

    assert shop.delivered(listings) == [attempt(1)] * 11
    assert (await shop.counts(listings)).acked == 1


@pytest.mark.spec("A2-17")
@pytest.mark.parametrize(
    "answer, reason",
    [
        (ps.Discard("sold"), "discarded"),
        (ps.Permanent("no such shop"), "permanent"),
        (ps.Gone(), "permanent"),
        (ps.Refused(), "permanent"),
        (ps.Unparsable(), "permanent"),
    ],
)
async def test_what_can_never_succeed_is_a_dead_letter_at_once(
    shop: TestApp, listings: Queue[Listing], answer: object, reason: str
) -> None:
    shop.answers.append(answer)
    await shop.send(listings, Listing(name="a"))

    await shop.advance(hours=1)

    assert shop.delivered(listings) == [attempt(1)]
    assert [(dead.reason, dead.attempts) for dead in await shop.dead(listings)] == [(reason, 1)]


async def test_a_message_with_a_delay_of_a_minute_is_not_there_at_59_seconds_and_delivered_at_60(
    shop: TestApp, listings: Queue[Listing]
) -> None:
    await shop.send(listings, Listing(name="a"), delay=60)

    await shop.advance(seconds=59)
    assert shop.delivered(listings) == []
    assert (await shop.counts(listings)).delayed == 1
    await shop.advance(seconds=1)

    assert shop.delivered(listings) == [attempt(1)]


@pytest.mark.spec("A1-18", "A15-07")
@virtual
async def test_a_handler_past_its_wall_limit_is_cancelled_and_charged() -> None:
    cancelled: list[float] = []

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(100 if message.attempt == 1 else 1)
        except asyncio.CancelledError:
            cancelled.append(asyncio.get_running_loop().time() - began)
            raise

    app, listings = shop_app(handle, timeout=5)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)

        assert cancelled == [5.0]
        assert shop.delivered(listings) == [attempt(1), attempt(2)]
        assert (await shop.counts(listings)).acked == 1


@virtual
async def test_a_handler_that_overruns_every_time_is_a_dead_letter_that_says_so() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(100)

    app, listings = shop_app(handle, timeout=5, retries=1)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=10)

        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.attempts, dead.crashes, dead.error_class) == ("exhausted", 2, 0, "HandlerTimeout")


@pytest.mark.spec("A2-13", "A2-16")
@virtual
async def test_an_unknown_type_and_a_malformed_body_are_dead_letters_after_one_look() -> None:
    class Wrong(ps.Event, type="listing"):
        size: int

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Photo(name="a"))
        await shop.send(listings, Wrong(size=3))
        await shop.send(listings, Listing(name="fine"))
        await shop.advance(hours=1)

        assert shop.delivered(listings) == [attempt(1)]
        assert sorted((dead.reason, dead.type) for dead in await shop.dead(listings)) == [
            ("malformed", "listing"),
            ("unknown_type", "photo"),
        ]


@pytest.mark.parametrize("seconds", [0, 1])
@virtual
async def test_a_handler_that_waits_for_something_cancelled_fails_like_any_other(seconds: float) -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        if message.attempt == 1:
            if seconds:
                await asyncio.sleep(seconds)
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)

        assert shop.delivered(listings) == [attempt(1), attempt(2)]
        assert (await shop.counts(listings)).acked == 1
