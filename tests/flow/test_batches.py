"""Batches: settled message by message, by what was said about each and by how the handler ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.runtime.events import MessageFailed
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects

TEN = "abcdefghij"
Take = Callable[[ps.Batch[Listing]], Coroutine[Any, Any, object]]


def batch_app(take: Take, **settings: Any) -> tuple[ps.App, Queue[Listing]]:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, **{"batch": 10, "batch_wait": 5, **settings})
    listings.batch_handler(take)
    return app, listings


async def send(shop: TestApp, queue: Queue[Listing], names: Iterable[str], *, delay: float = 0.0) -> None:
    async with shop.unit():
        for name in names:
            queue.send(Listing(name=name), delay=delay)


# -- what is said about messages ------------------------------------------------------------------------------


@pytest.mark.spec("A1-07", "G4-15")
@virtual
async def test_what_was_acknowledged_stays_so_under_a_later_retry_of_all() -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
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
    async def take(batch: ps.Batch[Listing]) -> None:
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
    async def take(batch: ps.Batch[Listing]) -> None:
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
    async def take(batch: ps.Batch[Listing]) -> None:
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
async def test_an_answer_for_the_whole_batch_delays_it_and_charges_no_message(answer: object) -> None:
    answers = [answer]

    async def take(_batch: ps.Batch[Listing]) -> object:
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


@virtual
async def test_the_unit_of_a_message_inside_that_of_another_is_refused() -> None:
    refused: list[str] = []

    async def take(batch: ps.Batch[Listing]) -> None:
        first, second = batch.messages
        async with first:
            try:
                async with second:
                    raise AssertionError("it began")
            except ps.PenstockError as error:
                refused.append(str(error))
            app.db.write(EFFECT, what=first.body.name)

    app, listings = batch_app(take, batch=2)
    async with TestApp(app) as shop:
        await send(shop, listings, "ab")
        await shop.drain()
        assert refused == ["`async with message:` blocks cannot be nested, and end with their batch."]
        assert await effects(app) == ["a"]
        assert (await shop.counts(listings)).acked == 2


@virtual
async def test_a_batch_says_how_many_messages_of_which_queue_it_holds() -> None:
    shown: list[str] = []

    async def take(batch: ps.Batch[Listing]) -> None:
        shown.append(repr(batch))

    app, listings = batch_app(take, batch=3)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.drain()
    assert shown == ["<Batch of 3 on listings>"]


@pytest.mark.fault("F29")
@pytest.mark.spec("A1-08", "F-18")
@virtual
async def test_of_ten_messages_the_seventh_fails_and_only_it_comes_back_alone() -> None:
    async def take(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            async with message:
                app.db.write(EFFECT, what=message.body.name)
                photos.send(Photo(name=message.body.name))
                if message.body.name == "g" and message.attempt == 1:
                    raise ValueError("the seventh")

    app, listings = batch_app(take)
    photos = app.queue("photos", Photo)
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
    async def take(batch: ps.Batch[Listing]) -> None:
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
    async def take(batch: ps.Batch[Listing]) -> None:
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
    async def take(batch: ps.Batch[Listing]) -> None:
        first, *rest = batch
        app.db.write(EFFECT, what=f"batch of {len(rest)} and one")
        async with first:
            app.db.write(EFFECT, what=first.body.name)
        if rest:
            raise ValueError("the rest")

    app, listings = batch_app(take, batch=3, batch_wait=0)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(seconds=1)
        assert await effects(app) == ["a"]
        await shop.advance(minutes=5)
        assert await effects(app) == ["a", "b", "batch of 0 and one", "c"]


@virtual
async def test_blocks_may_run_side_by_side() -> None:
    async def one(message: ps.Message[Listing]) -> None:
        async with message:
            await asyncio.sleep(1)
            app.db.write(EFFECT, what=message.body.name)
            if message.body.name == "c" and message.attempt == 1:
                raise ValueError

    async def take(batch: ps.Batch[Listing]) -> None:
        await asyncio.gather(*map(one, batch))

    app, listings = batch_app(take)
    async with TestApp(app) as shop:
        await send(shop, listings, TEN)
        await shop.advance(seconds=1.5)
        assert await effects(app) == list(TEN.replace("c", ""))
        await shop.advance(minutes=1)
        assert await effects(app) == list(TEN)


@pytest.mark.parametrize("ends_first", ["batch", "block"])
@virtual
async def test_a_task_that_the_handler_forgot_settles_nothing_twice(ends_first: str) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def forgotten(message: ps.Message[Listing]) -> None:
        async with message:
            await asyncio.sleep(1)
            app.db.write(EFFECT, what="forgotten")

    async def take(batch: ps.Batch[Listing]) -> None:
        if ends_first == "batch":
            await asyncio.sleep(0.5)
        tasks.extend(asyncio.create_task(forgotten(message)) for message in [batch.messages[0]] * 2)
        await asyncio.sleep(0.5 if ends_first == "batch" else 1)

    app, listings = batch_app(take, batch=3)
    async with TestApp(app) as shop:
        await send(shop, listings, "abc")
        await shop.advance(minutes=5)
        ended = await asyncio.gather(*tasks, return_exceptions=True)

        assert (await shop.counts(listings)).acked == 3
        assert shop.delivered(listings) == [attempt(1)] * 3
        saved = ended.count(None)
        assert await effects(app) == ["forgotten"] * saved
        assert saved <= (ends_first == "block")
