"""User code that raises exits, cancels itself or blocks: each is a failure of its own, and everything else goes on."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar

import pytest

import penstock as ps
from penstock.runtime.events import HandlerOverran, MessageFailed, QueuesRedeclared, TickFailed
from penstock.testing import TestApp, virtual
from tests.flow.crons import START
from tests.flow.research import Lab
from tests.flow.shelf import Shelf, names
from tests.flow.shop import EFFECT, Listing, effects


class Collapse(BaseException):
    pass


async def leave() -> None:
    sys.exit(3)


async def leave_later() -> None:
    await asyncio.sleep(1)
    sys.exit(3)


async def interrupt() -> None:
    raise KeyboardInterrupt


async def collapse() -> None:
    raise Collapse("of its own")


async def stop_the_generator() -> None:
    await asyncio.sleep(1)
    raise GeneratorExit


async def cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


WAYS = pytest.mark.parametrize(
    "misbehave", [leave, leave_later, interrupt, collapse, stop_the_generator, cancel_itself], ids=lambda f: f.__name__
)
Misbehaviour = Callable[[], Coroutine[Any, Any, None]]


@WAYS
@virtual
async def test_a_handler_that_exits_is_charged_and_becomes_a_dead_letter(misbehave: Misbehaviour) -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, retries=2)

    @listings.handler
    async def handle(listing: Listing) -> None:
        app.db.write(EFFECT, what=listing.name)
        if listing.name == "bad":
            await misbehave()

    async with TestApp(app) as shop:
        for name in ("bad", "good"):
            await shop.send(listings, Listing(name=name))
        await shop.advance(hours=1)
        assert [attempt.number for attempt in shop.delivered(listings)] == [1, 1, 2, 3]
        assert await effects(app) == ["good"]
        assert (await shop.counts(listings)).dead == 1


@WAYS
@virtual
async def test_a_batch_that_exits_is_charged_and_becomes_dead_letters(misbehave: Misbehaviour) -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, retries=1, batch=3)

    @listings.batch_handler
    async def handle(batch: ps.Batch[Listing]) -> None:
        app.db.write(EFFECT, what="of a batch")
        await misbehave()

    async with TestApp(app) as shop:
        for name in "abc":
            await shop.send(listings, Listing(name=name))
        await shop.advance(hours=1)
        assert (await shop.counts(listings)).dead == 3
        assert await effects(app) == []


@pytest.mark.parametrize(
    "misbehave", [leave, leave_later, interrupt, collapse, stop_the_generator], ids=lambda f: f.__name__
)
@virtual
async def test_an_exit_in_the_block_of_one_message_is_charged_to_that_message_alone(misbehave: Misbehaviour) -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, retries=1, batch=3)

    @listings.batch_handler
    async def handle(batch: ps.Batch[Listing]) -> None:
        for message in batch:
            async with message:
                app.db.write(EFFECT, what=message.body.name)
                if message.body.name == "b":
                    await misbehave()

    async with TestApp(app) as shop:
        for name in "abc":
            await shop.send(listings, Listing(name=name))
        await shop.advance(hours=1)
        assert await effects(app) == ["a", "c"]
        assert [letter.attempts for letter in await shop.dead(listings)] == [2]


class Fragile(ps.Event, type="listing.fragile"):
    is_sent: ClassVar[bool] = False
    name: str

    def __post_init__(self) -> None:
        if self.name == "bad" and self.is_sent:
            sys.exit(3)


@pytest.mark.parametrize("batch", [1, 2])
@virtual
async def test_a_body_whose_class_exits_when_it_is_read_becomes_a_dead_letter(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Fragile, batch=batch)
    handled: list[str] = []
    if batch == 1:

        @listings.handler(Fragile)
        async def handle(listing: Fragile) -> None:
            handled.append(listing.name)

    else:

        @listings.batch_handler
        async def handle_all(messages: ps.Batch[Fragile]) -> None:
            handled.extend(message.body.name for message in messages)

    async with TestApp(app) as shop:
        for name in ("bad", "good"):
            await shop.send(listings, Fragile(name=name), delay=60)
        monkeypatch.setattr(Fragile, "is_sent", True)
        await shop.advance(minutes=10)
        assert handled == ["good"]
        assert [(letter.reason, letter.attempts) for letter in await shop.dead(listings)] == [("malformed", 0)]


@virtual
async def test_a_handler_that_cancels_itself_and_returns_leaves_the_next_message_alone() -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, parallel=1)

    @listings.handler
    async def handle(listing: Listing) -> None:
        if listing.name == "cancels":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        elif listing.name == "waits":
            await asyncio.sleep(1)

    async with TestApp(app) as shop:
        async with shop.unit():  # enough of them that the worker claims several at once and runs them in one task
            listings.send_all([Listing(name=name) for name in 20 * ["returns"] + 10 * ["cancels", "waits", "returns"]])
        await shop.advance(minutes=10)
        assert [attempt.number for attempt in shop.delivered(listings)] == [1] * 50


@virtual
async def test_a_process_that_is_killed_inside_a_handler_charges_nothing_and_begins_nothing() -> None:
    app = ps.App("shop")
    listings = app.queue("listings", Listing, parallel=1)
    began: list[str] = []
    failed: list[MessageFailed] = []
    app.events.subscribe(failed.append, to=MessageFailed)

    @listings.handler
    async def handle(listing: Listing) -> None:
        began.append(listing.name)
        if began == ["deadly"]:
            shop.die()

    async with TestApp(app) as shop:
        async with shop.unit():
            listings.send_all([Listing(name=name) for name in ("deadly", "a")])
        await shop.advance(minutes=10)
        assert failed == []
        assert sorted(began) == ["a", "deadly", "deadly"]


@WAYS
@virtual
async def test_a_step_that_exits_fails_its_run(misbehave: Misbehaviour) -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("leave", misbehave, retries=1)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(hours=12)
        assert (await handle.status()).state == "errored"


@WAYS
@virtual
async def test_a_cron_task_that_exits_has_failed_and_runs_at_its_next_fire(misbehave: Misbehaviour) -> None:
    app = ps.App("shop")
    failed: list[TickFailed] = []
    app.events.subscribe(failed.append, to=TickFailed)

    @app.cron("*/5 * * * *", reason="charts move slowly")
    async def bad() -> None:
        app.db.write(EFFECT, what="of a run that failed")
        await misbehave()

    async with TestApp(app, start=START) as shop:
        await shop.advance(minutes=30)
        assert len(failed) >= 2
        assert await effects(app) == []


@WAYS
@virtual
async def test_an_alarm_that_exits_is_tried_again(misbehave: Misbehaviour) -> None:
    app = ps.App("shop")
    rang: list[int] = []

    class Watch(ps.Object):
        async def start(self) -> None:
            self.set_alarm(after=10)

        async def alarm(self) -> None:
            rang.append(1)
            if len(rang) == 1:
                await misbehave()

    watches = app.object(Watch)
    async with TestApp(app) as shop:
        await watches["a"].start()
        await shop.advance(hours=1)
        assert len(rang) == 2


@WAYS
@virtual
async def test_an_item_that_exits_is_parked_and_harms_no_other(misbehave: Misbehaviour) -> None:
    async def work(item: str) -> None:
        if item == "003":
            await misbehave()

    shelf = Shelf(work)
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(6))
        await shop.advance(hours=2)
        assert await effects(shelf.app) == [name for name in names(6) if name != "003"]
        assert await shelf.notes() == {"003": "parked"}


@pytest.mark.spec("A2-09")
@virtual
async def test_an_item_that_fails_starts_no_run_and_sends_nothing() -> None:
    async def work(_item: str) -> None:
        queue.send(Listing(name="sent"))
        research.start()
        raise OSError("poison")

    shelf = Shelf(work)
    queue = shelf.app.queue("listings", Listing)

    @shelf.app.workflow
    async def research(_run: ps.Run) -> None:
        pass

    @queue.handler
    async def handle(_listing: Listing) -> None:
        pass

    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        await shop.advance(hours=2)
        assert await shelf.notes() == {"a": "parked"}
        assert await shelf.app.workflows.list() == []
        assert shop.delivered(queue) == []


@virtual
async def test_what_an_item_left_running_can_send_nothing_once_the_item_has_ended() -> None:
    left, refused = list[asyncio.Task[None]](), list[type[Exception]]()

    async def send_later(item: str) -> None:
        for _ in range(3):  # while the item is saved, and after
            await asyncio.sleep(0)
            try:
                queue.send(Listing(name=item))
            except Exception as error:
                refused.append(type(error))

    async def work(item: str) -> None:
        left.append(asyncio.create_task(send_later(item)))

    shelf = Shelf(work)
    queue = shelf.app.queue("listings", Listing)

    @queue.handler
    async def handle(_listing: Listing) -> None:
        pass

    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, "a")
        await shop.advance(hours=2)
        assert refused == [ps.UnitClosed] * 3
        assert shop.delivered(queue) == []


@virtual
async def test_a_step_may_be_any_awaitable() -> None:
    lab = Lab()

    async def one() -> int:
        await asyncio.sleep(1)
        return 1

    @lab.app.workflow
    async def research(run: ps.Run) -> list[int]:
        return await run.step("both", lambda: asyncio.gather(*[one(), one()]))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(hours=12)
        assert (await handle.status()).result == [1, 1]


@virtual
async def test_a_queue_that_only_the_database_knows_is_looked_up_once() -> None:
    app = ps.App("shop")
    listings: ps.Queue[Any] = app.queue("listings")
    async with TestApp(app) as shop:
        await shop.send(listings, {"name": "a"})
        del app.queues["listings"]
        operations = (await app._opened()).writer.operations
        looked_up: list[list[str]] = []
        queues = operations.queues

        def counted() -> list[str]:
            looked_up.append(queues())
            return looked_up[-1]

        operations.queues = counted  # type: ignore[method-assign]
        for _ in range(3):
            assert (await (await app.desk()).backlog("listings")).count == 1
        assert len(looked_up) == 1


@pytest.mark.parametrize("batch", [1, 2])
def test_a_handler_that_blocks_past_its_limit_and_ends_is_reported(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = ps.App("shop")
    listings = app.queue("listings", Listing, timeout=0.05, batch=batch)
    overran: list[HandlerOverran] = []
    app.events.subscribe(overran.append, to=HandlerOverran)

    async def handle(_given: Listing | ps.Batch[Listing]) -> None:
        time.sleep(0.2)  # noqa: ASYNC251 (a handler that holds up the event loop is the point)

    if batch == 1:
        listings.handler(Listing)(handle)
    else:
        listings.batch_handler(handle)

    async def main() -> None:
        async with app, app.unit():
            listings.send(Listing(name="a"))
        await app.run(until_idle=True)

    asyncio.run(main())

    [event] = overran
    assert (event.queue, event.handler, event.limit_seconds) == ("listings", "listings:handle", 0.05)
    assert event.seconds >= 0.2


@virtual
async def test_a_queue_that_another_app_declares_with_other_settings_is_warned_of(tmp_path: Path) -> None:
    warned: list[QueuesRedeclared] = []
    for retries in (7, 7, 1):
        app = ps.App("shop")
        app.events.subscribe(warned.append, to=QueuesRedeclared)
        app.queue("listings", retries=retries)
        async with TestApp(app, folder=tmp_path):
            pass

    assert [event.changed for event in warned] == [["listings: retries was 7, is now 1"]]
