"""Every message carries one envelope: who sent it, what caused it, and how long its chain is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import penstock as ps
from penstock.config import Config
from penstock.contracts.faults import NoFaults
from penstock.model.errors import BadApp, BadMessage
from penstock.queues.batch import Batch
from penstock.queues.queue import Queue
from penstock.runtime.events import ChainGrewLong, MessageWasLarge
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app


class Research(ps.Command, type="research.requested"):
    keyword: str


class Publish(ps.Command, type="content.publish"):
    keyword: str


class Post(ps.Command, type="social.create"):
    keyword: str


class Boast(ps.Command, type="boast.create"):
    keyword: str


class Researched(ps.Event, type="research.completed"):
    keyword: str


class Published(ps.Event, type="content.published"):
    keyword: str


Chain = tuple[str, str | None, str]  # id, causation, correlation


def noting(
    chains: dict[str, Chain], then: Callable[[], object] | None = None
) -> Callable[..., Coroutine[Any, Any, None]]:
    """A handler that notes the envelope of what it gets, and does one thing more."""

    async def handle(payload: Any, message: ps.Message[Any]) -> None:
        chains[type(payload).__name__] = (message.id, message.causation_id, message.correlation_id)
        if then is not None:
            then()

    return handle


# -- what an envelope holds ---------------------------------------------------------------------------------------


@pytest.mark.spec("A2-01", "A2-02", "A3-01")
@virtual
async def test_the_envelope_is_filled_in_by_the_engine_and_kept_whole_with_a_dead_letter() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise ps.Permanent("no")

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        first, second = [await shop.send(listings, Listing(name="same")) for _ in range(2)]
        await shop.drain()

        assert first != second
        rows = await app.db.rows("select event_id, envelope, payload from dead_messages order by id")
        for row, id in zip(rows, (first, second), strict=True):
            envelope = json.loads(row.envelope)
            assert row.event_id == envelope["event_id"]
            assert row.event_id.replace("-", "") == id.replace("-", "")
            assert (envelope["type"], envelope["source"]) == ("listing", "shop")
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", envelope["timestamp"])
            assert envelope["correlation_id"] == envelope["event_id"]
            assert (envelope["hops"], envelope["depth"]) == (0, 0)
            assert json.loads(row.payload) == {"name": "same"}


@virtual
async def test_a_message_tells_its_handler_who_sent_it_and_when() -> None:
    told: list[tuple[str, str, str, object]] = []

    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        told.append((message.type, message.source, message.queue, message.timestamp))

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        began = shop.now
        await shop.send(listings, Listing(name="a"), delay=60)
        await shop.advance(minutes=2)

        assert told == [("listing", "shop", "listings", began)]


@pytest.mark.spec("A2-03")
@virtual
async def test_a_body_over_ten_kilobytes_is_sent_with_one_warning_for_its_type() -> None:
    app, listings = shop_app()
    warned: list[MessageWasLarge] = []
    app.events.subscribe(warned.append, to=MessageWasLarge)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="x" * 9_000))
        assert warned == []
        for _ in range(3):
            await shop.send(listings, Listing(name="x" * 10_500))

        assert [(each.queue, each.type) for each in warned] == [("listings", "listing")]
        assert (await shop.counts(listings)).sent == 4


# -- commands and events --------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-04", "A2-05", "G4-22")
@virtual
async def test_an_event_does_not_fit_a_queue_of_commands_nor_a_command_a_queue_of_events() -> None:
    app = ps.App("shop")
    commands = app.queue("research-commands", Research)
    events = app.queue("brand-events", Researched | Published)
    async with TestApp(app) as shop:
        pairs: list[tuple[Queue[Any], object]] = [(commands, Researched(keyword="a")), (events, Research(keyword="a"))]
        for queue, payload in pairs:
            with pytest.raises(BadMessage, match="does not accept"):
                await shop.send(queue, payload)
            assert (await shop.counts(queue)).sent == 0


@pytest.mark.spec("A2-05")
def test_a_queue_that_takes_commands_and_events_or_a_command_with_two_addressees_is_refused() -> None:
    app = ps.App("shop")
    app.queue("research-commands", Research)
    app.queue("brand-events", Researched | Published)
    with pytest.raises(BadApp, match="commands and events"):
        app.queue("mixed", Publish | Published)
    with pytest.raises(BadApp, match="one receiving queue"):
        app.queue("other-commands", Research)
    app.queue("publish-commands", Publish | Post)
    with pytest.raises(BadApp, match="does not accept"):
        app.queues["brand-events"].handler(Listing)


@pytest.mark.spec("A2-21")
@virtual
async def test_three_services_send_to_one_queue_of_events_and_one_router_sees_all() -> None:
    heard: list[tuple[str, str]] = []

    async def route(event: Published, message: ps.Message[Published]) -> None:
        heard.append((message.source, event.keyword))

    router = ps.App("router")
    router.queue("brand-events", Published).handler(Published)(route)
    async with TestApp(router) as shop:
        for name in ("writer", "publisher", "poster"):
            service = ps.App(name)
            events = service.queue("brand-events", Published)
            await beside(shop, service)
            async with service.unit():
                events.send(Published(keyword=f"by {name}"))
        await shop.drain()

        assert sorted(heard) == sorted((name, f"by {name}") for name in ("writer", "publisher", "poster"))


async def beside(shop: TestApp, app: ps.App, *, tick_seconds: float | None = None) -> None:
    """Runs another app as a process of its own on the database that is under test."""
    app.database = shop.app.database
    app.migrations = shop.app.migrations
    process = shop._host.process(app.name)
    surroundings = shop._host.surroundings(process, NoFaults(), tick_seconds=tick_seconds)
    process.owns(await process.start(app._open(surroundings)))
    running = process.start(app.run())
    await shop._host.loop.settle()
    assert not running.done()


# -- what follows from what -----------------------------------------------------------------------------------------


@pytest.mark.spec("A2-06", "G4-04")
@virtual
async def test_everything_that_follows_from_a_message_carries_its_correlation_and_names_its_cause() -> None:
    chains: dict[str, Chain] = {}
    app = ps.App("shop")
    first = app.queue("first", Research)
    second = app.queue("second", Researched)
    third = app.queue("third", Published)
    first.handler(Research)(noting(chains, lambda: second.send(Researched(keyword="a"))))
    second.handler(Researched)(noting(chains, lambda: third.send(Published(keyword="a"))))
    third.handler(Published)(noting(chains))
    async with TestApp(app) as shop:
        id = await shop.send(first, Research(keyword="a"))
        await shop.drain()

        assert chains["Research"] == (id, None, id)
        assert chains["Researched"][1:] == (id, id)
        assert chains["Published"][1:] == (chains["Researched"][0], id)


@pytest.mark.spec("A2-06")
@virtual
async def test_what_is_sent_midway_or_once_belongs_to_the_chain_too() -> None:
    chains: list[tuple[str, str | None, str]] = []

    async def photo(photo: Photo, message: ps.Message[Photo]) -> None:
        chains.append((photo.name, message.causation_id, message.correlation_id))

    async def send(name: str) -> None:
        photos.send(Photo(name=name))

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        async with app.unit():
            photos.send(Photo(name="midway"))
        async with app.unit(key="a"):
            photos.send(Photo(name="keyed"))
        await app.once("b", send, "once")

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="a"))
        await shop.drain()

        assert sorted(chains) == [(name, id, id) for name in ("keyed", "midway", "once")]


@pytest.mark.spec("G4-05")
@virtual
async def test_two_chains_of_one_day_are_two_traces() -> None:
    seen: list[str] = []

    async def photo(_photo: Photo, message: ps.Message[Photo]) -> None:
        seen.append(message.correlation_id)

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        photos.send_batch([Photo(name=listing.name)] * 3)

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        ids = [await shop.send(listings, Listing(name="the same brand")) for _ in range(2)]
        await shop.drain()

        assert sorted(seen) == sorted(ids * 3)


@pytest.mark.spec("A2-06")
@pytest.mark.parametrize("blocks", [True, False])
@virtual
async def test_what_a_batch_sends_belongs_to_the_chain_of_its_message(blocks: bool) -> None:
    seen: dict[str, tuple[str | None, str]] = {}

    async def photo(photo: Photo, message: ps.Message[Photo]) -> None:
        seen[photo.name] = (message.causation_id, message.correlation_id)

    async def handle(batch: Batch[Listing]) -> None:
        for message in batch:
            if blocks:
                async with message:
                    photos.send(Photo(name=message.body.name))
            else:
                photos.send(Photo(name=message.body.name))

    app = ps.App("shop")
    listings = app.queue("listings", Listing, batch=3 if blocks else 1)
    listings.batch_handler(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        ids = {name: await shop.send(listings, Listing(name=name)) for name in "abc"}
        await shop.drain()

        assert seen == {name: (id, id) for name, id in ids.items()}


@pytest.mark.spec("A2-19")
@virtual
async def test_a_consumer_stores_its_result_and_tells_of_it_without_knowing_who_asked() -> None:
    async def research(command: Research) -> None:
        app.db.write(EFFECT, what=f"facts about {command.keyword}")
        events.send(Researched(keyword=command.keyword))

    found: list[tuple[str, list[str]]] = []

    async def completed(event: Researched, message: ps.Message[Researched]) -> None:
        found.append((message.correlation_id, await effects(app)))

    app, _ = shop_app()
    commands = app.queue("research-commands", Research)
    commands.handler(Research)(research)
    events = app.queue("brand-events", Researched)
    events.handler(Researched)(completed)
    async with TestApp(app) as shop:
        id = await shop.send(commands, Research(keyword="a"))
        await shop.drain()

        assert found == [(id, ["facts about a"])]


@pytest.mark.spec("A2-18", "F-26")
@virtual
async def test_ten_units_of_work_are_ten_messages_and_the_failure_of_one_is_its_own() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        listings.send_batch([Photo(name=f"{listing.name}{number}") for number in range(10)])

    async def photo(photo: Photo, message: ps.Message[Photo]) -> None:
        if photo.name == "a7" and message.attempt == 1:
            raise OSError
        app.db.write(EFFECT, what=photo.name)

    app, listings = shop_app(handle)
    listings.handler(Photo)(photo)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=1)

        tries = [each for each in shop.delivered(listings) if isinstance(each.payload, Photo)]
        assert len({each.id for each in tries}) == 10
        assert [each.payload for each in tries if each == attempt(2)] == [Photo(name="a7")]
        assert await effects(app) == [f"a{number}" for number in range(10)]


# -- how long a chain may be ------------------------------------------------------------------------------------------


def chained(*links: Any) -> tuple[ps.App, Queue[Any]]:
    """An app in which each message leads to the next of these."""
    app = ps.App("brand", config=Config(profile="cloudflare"))
    queues = [app.queue(f"q{number}", link) for number, link in enumerate(links)]

    def sends(number: int) -> Callable[..., Coroutine[Any, Any, None]]:
        async def handle(payload: Any) -> None:
            if number + 1 < len(links):
                queues[number + 1].send(links[number + 1](keyword=payload.keyword))

        return handle

    for number, link in enumerate(links):
        queues[number].handler(link)(sends(number))
    return app, queues[0]


@pytest.mark.spec("A2-20", "F-28", "A15-20")
@pytest.mark.parametrize(
    "links, warned",
    [
        ((Research, Researched, Publish, Published, Post), []),
        ((Research, Publish, Post, Boast), [("q3", "boast.create", 4)]),
    ],
    ids=["three commands and their answers", "four commands"],
)
@virtual
async def test_three_commands_in_a_chain_are_usual_and_a_fourth_is_warned_of_once(
    links: tuple[type[ps.Command], ...], warned: list[tuple[str, str, int]]
) -> None:
    app, first = chained(*links)
    told: list[tuple[str, str, int]] = []
    app.events.subscribe(lambda event: told.append((event.queue, event.type, event.hops)), to=ChainGrewLong)
    async with TestApp(app) as shop:
        for keyword in "ab":
            await shop.send(first, links[0](keyword=keyword))
        await shop.drain()

        assert told == warned
        assert all([not await shop.dead(queue) for queue in app.queues.values()])


@pytest.mark.spec("A2-06")
@virtual
async def test_what_is_sent_because_of_a_death_belongs_to_the_chain_of_what_died() -> None:
    told: list[tuple[str | None, str]] = []

    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        raise ps.Permanent("no")

    async def photo(_photo: Photo, message: ps.Message[Photo]) -> None:
        told.append((message.causation_id, message.correlation_id))

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    photos.handler(Photo)(photo)

    @listings.dead_letter_handler
    async def tell(letter: ps.DeadLetter) -> None:
        assert letter.correlation_id == letter.event_id
        photos.send(Photo(name="of the dead"))

    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="a"))
        await shop.drain()

        [(cause, correlation)] = told
        assert correlation == id
        [notice] = shop.delivered(app.queues["listings-dlq"])
        assert cause == notice.id


# -- handlers that read state -------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-23", "A1-10", "F-12")
@pytest.mark.parametrize("order", [("enriched", "ranked"), ("ranked", "enriched")])
@pytest.mark.parametrize("unruly", [False, True])
@virtual
async def test_handlers_that_read_state_come_to_the_same_end_in_any_order(order: tuple[str, str], unruly: bool) -> None:
    class Enriched(ps.Event):
        item: str

    class Ranked(ps.Event):
        item: str

    async def enriched(event: Enriched) -> None:
        app.db.write(
            "insert into stock (item, pieces) values (:item, 5) on conflict (item) do nothing", item=event.item
        )

    async def ranked(event: Ranked) -> object:
        found = await app.db.value("select pieces from stock where item = :item", item=event.item)
        if found is None:
            return ps.Later(5)  # not yet visible
        app.db.write("update stock set pieces = 50 where item = :item and pieces = 5", item=event.item)
        await asyncio.sleep(0)
        return None

    app, _ = shop_app()
    events = app.queue("events", Enriched | Ranked)
    events.handler(Enriched)(enriched)
    events.handler(Ranked)(ranked)
    async with TestApp(app, shuffled=unruly, duplicated=unruly) as shop:
        for item in "abcdef":
            for kind in order:
                await shop.send(events, Enriched(item=item) if kind == "enriched" else Ranked(item=item))
        await shop.advance(minutes=1)

        assert await app.db.rows("select item, pieces from stock order by item") == [(item, 50) for item in "abcdef"]
        assert (await shop.counts(events)).acked == 12
