"""Batches: formed by size and wait, settled message by message, and blamed as a group when their worker dies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadApp
from penstock.queues.queue import Queue
from penstock.runtime.events import MessageFailed, RowsReturned
from penstock.testing import CRASH_POINTS, TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app

TEN = "abcdefghij"
Take = Callable[[ps.Batch], Awaitable[object]]


def batch_app(take: Take, **settings: int | float) -> tuple[ps.App, Queue]:
    app = ps.App("shop")
    listings = app.queue("listings", accepts=[Listing], **{"batch": 10, "wait": 5, **settings})  # type: ignore[arg-type]
    listings.on_batch(take)
    return app, listings


async def send(shop: TestApp, queue: Queue, names: Iterable[str], *, delay: float = 0.0) -> None:
    async with shop.unit():
        for name in names:
            queue.send(Listing(name=name), delay=delay)


class Seen:
    """Notes the batches that a handler was given, and when."""

    def __init__(self) -> None:
        self.batches: list[tuple[datetime, str]] = []
        self.shop: TestApp

    async def take(self, batch: ps.Batch) -> None:
        assert batch.queue == "listings"
        assert len(batch) == len(batch.messages) == len(list(batch))
        self.batches.append((self.shop.now, names_of(batch)))

    def since(self, start: datetime) -> list[tuple[float, str]]:
        return [((at - start).total_seconds(), names) for at, names in self.batches]


def names_of(batch: ps.Batch) -> str:
    return "".join(sorted(message.body.name for message in batch))


# -- when a batch is delivered --------------------------------------------------------------------------------


@pytest.mark.spec("A1-11")
@virtual
async def test_ten_are_delivered_at_once_and_three_when_the_first_has_waited_five_seconds() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, TEN)
        await seen.shop.advance(seconds=1)
        assert seen.since(start) == [(0.0, TEN)]

        await send(seen.shop, listings, "k")
        await seen.shop.advance(seconds=2)
        await send(seen.shop, listings, "lm")
        await seen.shop.advance(seconds=2.9)
        assert len(seen.batches) == 1
        await seen.shop.advance(seconds=0.1)
        assert seen.since(start) == [(0.0, TEN), (6.0, "klm")]


@pytest.mark.spec("A1-11")
@virtual
async def test_a_batch_that_fills_up_does_not_wait_for_its_time() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, TEN[:9])
        await seen.shop.advance(seconds=2)
        assert seen.batches == []
        await send(seen.shop, listings, TEN[9])
        await seen.shop.advance(seconds=1)

        assert seen.since(start) == [(2.0, TEN)]


@pytest.mark.spec("A1-11")
@virtual
async def test_a_batch_is_also_full_when_delayed_messages_become_due() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        async with seen.shop.unit():
            for name in TEN:
                listings.send(Listing(name=name), delay=0 if name == "a" else 2, priority=ord(name) % 3)
        await seen.shop.advance(seconds=6)

        assert seen.since(start) == [(2.0, TEN)]


@pytest.mark.spec("A1-11")
@virtual
async def test_what_is_left_over_from_full_batches_waits_for_its_own_time() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, [f"{number:02}" for number in range(23)])
        await seen.shop.advance(seconds=10)

        assert [(at, len(names) // 2) for at, names in seen.since(start)] == [(0.0, 10), (0.0, 10), (5.0, 3)]


@pytest.mark.spec("A1-11")
@virtual
async def test_without_a_wait_whatever_is_there_is_delivered_at_once() -> None:
    seen = Seen()
    app, listings = batch_app(seen.take, wait=0)
    async with TestApp(app) as seen.shop:
        start = seen.shop.now
        await send(seen.shop, listings, "abc")
        await seen.shop.advance()

        assert seen.since(start) == [(0.0, "abc")]


@pytest.mark.spec("A1-11")
@virtual
async def test_a_full_batch_does_not_wait_for_handlers_of_single_messages_either() -> None:
    async def handle(_listing: Listing, _message: ps.Message) -> None: ...

    app, listings = shop_app(handle, batch=10, wait=60, parallel=1)
    async with TestApp(app) as shop:
        await send(shop, listings, TEN)
        await shop.advance(seconds=1)
        assert shop.delivered(listings)
        await shop.advance(seconds=60)
        assert len(shop.delivered(listings)) == 10


@pytest.mark.spec("A1-11", "A1-12", "A1-13", "A1-16")
@pytest.mark.parametrize(
    "setting",
    [
        {"batch": 0},
        {"batch": 101},
        {"wait": -1},
        {"wait": 61},
        {"parallel": 0},
        {"parallel": 251},
        {"retries": -1},
        {"retries": 101},
        {"retention": 0},
        {"retention": 14 * 86_400 + 1},
        {"rate": 0},
        {"wall": 0},
        {"messages_max": 0},
    ],
)
def test_settings_out_of_range_are_refused_by_name(setting: dict[str, float]) -> None:
    app = ps.App("shop", config=parse('profile = "cloudflare"', "penstock.toml"))
    with pytest.raises(BadApp, match=next(iter(setting))):
        app.queue("listings", **setting)  # type: ignore[arg-type]


@pytest.mark.spec("A1-11", "A1-12", "A1-13", "A1-16")
def test_the_ends_of_every_range_are_accepted_and_the_profile_gives_the_defaults() -> None:
    app = ps.App("shop", config=parse('profile = "cloudflare"', "penstock.toml"))
    usual = app.queue("usual").settings
    assert (usual.batch, usual.wait_seconds, usual.parallel, usual.parallel_max) == (10, 5.0, None, 250)
    assert (usual.retry.retries, usual.retention_seconds) == (3, 4 * 86_400)
    least = app.queue("least", batch=1, wait=0, parallel=1, retries=0).settings
    most = app.queue("most", batch=100, wait=60, parallel=250, retries=100, retention=14 * 86_400).settings
    assert (least.batch, most.batch, most.parallel, most.retry.retries) == (1, 100, 250, 100)


# -- what is said about messages ------------------------------------------------------------------------------


@pytest.mark.spec("A1-07", "G4-15")
@virtual
async def test_what_was_acknowledged_stays_so_under_a_later_retry_of_all() -> None:
    async def take(batch: ps.Batch) -> None:
        if batch.messages[0].attempt == 1:
            batch.messages[0].ack()
            batch.retry_all(delay=7)

    app, listings = batch_app(take, batch=3)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(seconds=1)
        assert ((await shop.counts(listings)).acked, (await shop.counts(listings)).delayed) == (1, 2)
        await shop.advance(seconds=5.9)
        assert len(shop.delivered(listings)) == 3
        await shop.advance(seconds=6)

        assert [each.number for each in shop.delivered(listings)] == [1, 1, 1, 2, 2]
        assert {each.payload.name for each in shop.delivered(listings)[3:]} == {"b", "c"}  # type: ignore[attr-defined]


@pytest.mark.spec("A1-07")
@virtual
async def test_the_first_word_about_a_message_stands() -> None:
    async def take(batch: ps.Batch) -> None:
        first, second, third, fourth, fifth = sorted(batch, key=lambda message: message.body.name)
        first.retry()
        second.later(60)
        third.discard("sold")
        fourth.ack()
        fourth.retry()
        batch.ack_all()
        batch.retry_all()
        fifth.discard("too late")

    app, listings = batch_app(take, batch=5)
    async with TestApp(app) as shop:
        await send(shop, listings, "abcde")
        await shop.advance(seconds=1)

        waiting = await app.db.rows("select body, attempts from penstock_messages order by body")
        assert [(bytes(row.body), row.attempts) for row in waiting] == [(b'{"name":"a"}', 1), (b'{"name":"b"}', 0)]
        assert [dead.reason for dead in await shop.dead(listings)] == ["discarded"]
        assert (await shop.counts(listings)).acked == 2


@pytest.mark.spec("A1-08")
@virtual
async def test_a_raise_brings_back_what_nothing_was_said_about_and_a_return_acknowledges_it() -> None:
    async def take(batch: ps.Batch) -> None:
        if batch.messages[0].attempt == 1:
            batch.messages[0].ack()
            raise ValueError("on the second")

    app, listings = batch_app(take, batch=3)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(seconds=1)
        assert (await shop.counts(listings)).acked == 1
        await shop.advance(minutes=1)

        assert [each.number for each in shop.delivered(listings)] == [1, 1, 1, 2, 2]
        assert "a" not in {each.payload.name for each in shop.delivered(listings)[3:]}  # type: ignore[attr-defined]
        assert (await shop.counts(listings)).acked == 3


@pytest.mark.spec("A1-08")
@virtual
async def test_an_acknowledged_message_comes_back_if_the_raise_took_what_was_written_for_it() -> None:
    async def take(batch: ps.Batch) -> None:
        for message in batch:
            app.db.write(EFFECT, what=message.body.name)
            message.ack()
        if batch.messages[0].attempt == 1:
            raise ValueError("after everything was written and acknowledged")

    app, listings = batch_app(take, batch=3)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(seconds=1)
        assert await effects(app) == []
        assert (await shop.counts(listings)).acked == 0
        await shop.advance(minutes=1)

        assert await effects(app) == ["a", "b", "c"]
        assert [each.number for each in shop.delivered(listings)] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("answer", [ps.Later(45), ps.Throttled(retry_after=45), ps.QueueFull()])
@virtual
async def test_an_answer_for_the_whole_batch_delays_it_and_charges_nobody(answer: object) -> None:
    answers = [answer]

    async def take(_batch: ps.Batch) -> object:
        given = answers.pop() if answers else None
        if isinstance(given, Exception):
            raise given
        return given

    app, listings = batch_app(take, batch=2)
    async with TestApp(app) as shop:
        await send(shop, listings, "ab")
        await shop.advance(minutes=1)

        assert shop.delivered(listings) == [attempt(1)] * 4
        assert (await shop.counts(listings)).acked == 2


# -- a message's own unit -------------------------------------------------------------------------------------


@pytest.mark.fault("F29")
@pytest.mark.spec("A1-08", "F-18")
@virtual
async def test_of_ten_messages_the_seventh_fails_and_only_it_comes_back_alone() -> None:
    async def take(batch: ps.Batch) -> None:
        for message in batch:
            async with message:
                app.db.write(EFFECT, what=message.body.name)
                photos.send(Photo(name=message.body.name))
                if message.body.name == "g" and message.attempt == 1:
                    raise ValueError("the seventh")

    app, listings = batch_app(take)
    photos = app.queue("photos", accepts=[Photo])
    failed: list[MessageFailed] = []
    app.events.subscribe(failed.append, to=MessageFailed)
    async with TestApp(app) as shop:
        await send(shop, listings, TEN)
        await shop.advance(seconds=1)
        assert await effects(app) == list(TEN.replace("g", ""))
        assert ((await shop.counts(listings)).acked, (await shop.counts(listings)).delayed) == (9, 1)
        assert [each.error for each in failed] == ["ValueError: the seventh"]
        await shop.advance(minutes=1)

        assert await effects(app) == list(TEN)
        assert (await shop.counts(photos)).sent == 10
        assert [each.number for each in shop.delivered(listings)] == [1] * 10 + [2]


@virtual
async def test_a_block_that_the_database_refuses_is_retried_alone() -> None:
    async def take(batch: ps.Batch) -> None:
        for message in batch:
            async with message:
                broken = message.body.name == "b" and message.attempt == 1
                app.db.write("insert into effects (what) values (:what || null)" if broken else EFFECT, what="x")

    app, listings = batch_app(take, batch=3)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(seconds=1)
        assert await effects(app) == ["x", "x"]
        await shop.advance(minutes=1)
        assert await effects(app) == ["x", "x", "x"]
        assert [each.number for each in shop.delivered(listings)] == [1, 1, 1, 2]


@virtual
async def test_what_failed_is_not_saved_whatever_was_said_before() -> None:
    async def take(batch: ps.Batch) -> None:
        for message in batch:
            async with message:
                if message.attempt == 1 and message.body.name not in done:
                    done.append(message.body.name)
                    message.later(10) if message.body.name == "a" else message.discard("no")
                    app.db.write(EFFECT, what=f"half of {message.body.name}")
                    raise ValueError("in the middle")

    done: list[str] = []
    app, listings = batch_app(take, batch=2)
    async with TestApp(app) as shop:
        await send(shop, listings, "ab")
        await shop.advance(minutes=1)

        assert await effects(app) == []
        assert [dead.reason for dead in await shop.dead(listings)] == ["discarded"]
        assert (await shop.counts(listings)).acked == 1


@virtual
async def test_what_is_done_beside_the_blocks_is_saved_with_the_rest_of_the_batch() -> None:
    async def take(batch: ps.Batch) -> None:
        first, *rest = batch
        app.db.write(EFFECT, what=f"batch of {len(rest)} and one")
        async with first:
            app.db.write(EFFECT, what=first.body.name)
        if rest:
            raise ValueError("the rest")

    app, listings = batch_app(take, batch=3, wait=0)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(seconds=1)
        assert await effects(app) == ["a"]
        await shop.advance(minutes=5)
        assert await effects(app) == ["a", "b", "batch of 0 and one", "c"]


@virtual
async def test_blocks_may_run_side_by_side() -> None:
    async def one(message: ps.Message) -> None:
        async with message:
            await asyncio.sleep(1)
            app.db.write(EFFECT, what=message.body.name)
            if message.body.name == "c" and message.attempt == 1:
                raise ValueError

    async def take(batch: ps.Batch) -> None:
        await asyncio.gather(*map(one, batch))

    app, listings = batch_app(take)
    async with TestApp(app) as shop:
        await send(shop, listings, TEN)
        await shop.advance(seconds=1.5)
        assert await effects(app) == list(TEN.replace("c", ""))
        await shop.advance(minutes=1)
        assert await effects(app) == list(TEN)
