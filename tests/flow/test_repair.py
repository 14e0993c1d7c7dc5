"""Whoever hears of dead letters does so from a queue with retries of its own; a repair goes back once and no more."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadMessage, NoSuchLetter, TooLarge
from penstock.queues.letters import DeadLetterFilter
from penstock.queues.queue import Queue
from penstock.runtime.events import StoreFailed
from penstock.testing import CRASH_POINTS, TestApp, WorkerFailed, attempt, virtual
from tests.disk import Operation
from tests.extent import sampled
from tests.flow.shop import EFFECT, Listing, OnDisk, Photo, effects, shop_app


def frail_app() -> tuple[ps.App, Queue[Any]]:
    """Takes every listing whose name is good, and writes it; the others die at once."""

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if not listing.name.startswith("good"):
            raise ps.Permanent(f"no {listing.name}")
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle)
    return app, listings


# -- hearing of dead letters ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-03")
@virtual
async def test_a_dead_letter_handler_gets_each_once_with_everything_known_about_it() -> None:
    heard: list[ps.DeadLetter] = []
    app, listings = frail_app()

    @listings.dead_letter_handler
    async def hear(letter: ps.DeadLetter) -> None:
        heard.append(letter)
        app.db.write(EFFECT, what=f"heard of {app.dead.payload(letter).name}")

    async with TestApp(app) as shop:
        ids = [await shop.send(listings, Listing(name=name)) for name in ("a", "b", "good")]
        await shop.drain()

        assert [(each.event_id, each.reason, each.attempts) for each in heard] == [
            (id, "permanent", 1) for id in ids[:2]
        ]
        assert await effects(app) == ["good", "heard of a", "heard of b"]
        counts = await shop.counts(app.queues["listings-dlq"])
        assert (counts.sent, counts.acked) == (2, 2)


@pytest.mark.spec("G4-44", "A3-03")
@virtual
async def test_a_handler_of_dead_letters_that_fails_is_tried_a_hundred_times_more() -> None:
    app, listings = frail_app()

    @listings.dead_letter_handler
    async def hear(_letter: ps.DeadLetter) -> None:
        app.db.write(EFFECT, what="heard")
        if len(shop.delivered(news)) < 90:
            raise OSError("the pager is down")

    news = app.queues["listings-dlq"]
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(days=2)

        assert shop.delivered(news) == [attempt(number) for number in range(1, 91)]
        assert await effects(app) == ["heard"]
        assert (await shop.counts(listings)).dead == 1


@virtual
async def test_what_a_handler_of_dead_letters_answers_is_heeded() -> None:
    answers: list[object] = [ps.Later(60), None]
    app, listings = frail_app()

    @listings.dead_letter_handler
    async def hear(_letter: ps.DeadLetter) -> object:
        return answers.pop(0)

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)

        assert shop.delivered(app.queues["listings-dlq"]) == [attempt(1)] * 2
        assert answers == []


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("G4-44")
@pytest.mark.parametrize("failing", ["write", "sync"])
@sampled("nth", [1, 2, 3, 5, 8], every=3)
@pytest.mark.parametrize("times", [3, 1_000_000], ids=["for seconds", "until its worker gives up"])
@virtual
async def test_a_database_that_fails_for_a_while_loses_and_doubles_no_dead_letter(
    failing: Operation, nth: int, times: int
) -> None:
    names = [f"{number}" for number in range(5)]
    app = OnDisk("shop")
    listings: ps.Queue[Any] = app.queue("listings")
    failed: list[StoreFailed] = []
    app.events.subscribe(failed.append, to=StoreFailed)

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        raise ps.Permanent(listing.name)

    @listings.dead_letter_handler
    async def hear(letter: ps.DeadLetter) -> None:
        app.db.write(EFFECT, what=letter.error_message)

    async with TestApp(app, synchronous="full", tick_seconds=1.0) as shop:
        async with shop.unit():
            for name in names:
                listings.send(Listing(name=name))
        app.disk.fail(failing, nth=nth, times=times, on="-wal")
        try:
            await shop.advance(minutes=1)
        except WorkerFailed:
            app.disk.heal()
            await shop._start_worker()
        await shop.advance(minutes=3)

        assert len(failed) >= 3
        assert await effects(app) == names
        assert sorted(str(letter.error_message) for letter in await app.dead.list()) == names


@pytest.mark.spec("G4-44", "A3-09")
@sampled("point", CRASH_POINTS, every=3)
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@virtual
async def test_a_worker_that_dies_while_it_hears_of_the_dead_repairs_once_and_hears_once(point: str, nth: int) -> None:
    app, listings = frail_app()

    @listings.repair
    async def mend(letter: ps.DeadLetter) -> Listing | None:
        return Listing(name="good a") if app.dead.payload(letter).name == "a" else None

    @listings.dead_letter_handler
    async def hear(letter: ps.DeadLetter) -> None:
        app.db.write(EFFECT, what=f"heard of {app.dead.payload(letter).name}")

    async with TestApp(app) as shop:
        await shop.crash(at=point, nth=nth)
        await shop.send(listings, Listing(name="a"))
        await shop.send(listings, Listing(name="b"))
        await shop.advance(minutes=10)

        assert await effects(app) == ["good a", "heard of b"]
        counts = await shop.counts(listings)
        assert (counts.sent, counts.acked, counts.dead) == (2, 1, 1)


# -- repair ---------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-09", "G1-10")
@virtual
async def test_a_mended_message_goes_back_and_is_handled() -> None:
    app, listings = frail_app()
    mended: list[str] = []

    @listings.repair
    async def mend(letter: ps.DeadLetter) -> Listing:
        mended.append(letter.event_id)
        return Listing(name=f"good {app.dead.payload(letter).name}")

    async with TestApp(app) as shop:
        id = await shop.send(listings, Listing(name="a"))
        await shop.drain()

        assert mended == [id]
        assert await effects(app) == ["good a"]
        [letter] = await app.dead.list(resolved=True)
        assert (letter.resolution, letter.replay_count) == ("fixed", 1)
        assert (await shop.counts(listings)).acked == 1


@pytest.mark.spec("A3-09", "G1-10")
@virtual
async def test_what_dies_again_after_its_repair_is_not_mended_again_but_heard_of() -> None:
    app, listings = frail_app()
    mended: list[str] = []
    heard: list[str] = []

    @listings.repair
    async def mend(letter: ps.DeadLetter) -> Listing:
        mended.append(app.dead.payload(letter).name)
        return Listing(name="still bad")

    @listings.dead_letter_handler
    async def hear(letter: ps.DeadLetter) -> None:
        heard.append(app.dead.payload(letter).name)

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="bad"))
        await shop.advance(days=1)
        assert (mended, heard) == (["bad"], ["still bad"])

        await app.dead.replay(DeadLetterFilter())
        await shop.advance(days=1)
        assert (mended, heard) == (["bad"], ["still bad"] * 2)


@pytest.mark.spec("A3-09")
@pytest.mark.parametrize("answer", [None, b"not a listing", {"name": 5}, Listing(name="x" * 2_000_000)])
@virtual
async def test_what_cannot_be_mended_stays_dead_and_is_heard_of(answer: object) -> None:
    app, listings = frail_app()
    heard: list[int] = []

    @listings.repair
    async def mend(_letter: ps.DeadLetter) -> object:
        return answer

    @listings.dead_letter_handler
    async def hear(letter: ps.DeadLetter) -> None:
        heard.append(letter.id)

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="bad"))
        await shop.advance(days=1)

        assert heard == [1]
        assert [letter.resolution for letter in await app.dead.list()] == [None]


@virtual
async def test_a_letter_that_was_dealt_with_meanwhile_is_neither_mended_nor_heard_of() -> None:
    app, listings = frail_app()
    heard: list[int] = []

    @listings.dead_letter_handler
    async def hear(letter: ps.DeadLetter) -> None:
        heard.append(letter.id)

    async with TestApp(app) as shop:
        await (await app.desk()).pause("listings-dlq")
        await shop.send(listings, Listing(name="bad"))
        await shop.advance(minutes=1)
        await app.dead.discard(1, "seen by somebody")
        await (await app.desk()).resume("listings-dlq")
        await shop.advance(minutes=1)

        assert heard == []
        assert (await shop.counts(app.queues["listings-dlq"])).acked == 1


# -- edit -----------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-08")
@virtual
async def test_an_edited_letter_goes_back_with_its_new_body() -> None:
    app, listings = frail_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="bad"))
        await shop.drain()
        await app.dead.edit(1, Listing(name="good as new"))
        letter = await app.dead.get(1)
        assert letter.edited_at == shop.now
        assert app.dead.payload(letter) == Listing(name="good as new")
        await app.dead.replay(1)
        await shop.drain()

        assert await effects(app) == ["good as new"]
        with pytest.raises(NoSuchLetter, match="replayed"):
            await app.dead.edit(1, Listing(name="too late"))


@pytest.mark.spec("A3-08")
@pytest.mark.parametrize("accepts", [True, False])
@virtual
async def test_an_edit_that_does_not_fit_the_type_is_refused_and_changes_nothing(accepts: bool) -> None:
    async def refuse(payload: object) -> None:
        raise ps.Permanent("no")

    app, _ = shop_app()
    queue: Queue[Any] = app.queue("strict", Listing | Photo | str) if accepts else app.queue("strict")
    for kind in (Listing, Photo, str):
        queue.handler(kind, name=f"refuse {kind.__name__}")(refuse)
    async with TestApp(app) as shop:
        await shop.send(queue, Listing(name="a"))
        await shop.send(queue, "text")
        await shop.drain()
        for wrong in (b"{}", b"no JSON", {"name": 5}, [1], b'{"name":7}'):
            with pytest.raises(BadMessage, match="is not a valid listing"):
                await app.dead.edit(1, wrong)
        with pytest.raises(TooLarge):
            await app.dead.edit(1, Listing(name="x" * 1_000_000))
        with pytest.raises(BadMessage, match="is not a valid text"):
            await app.dead.edit(2, b"\xff")
        assert (await app.dead.get(1)).body == b'{"name":"a"}'

        await app.dead.edit(1, {"name": "b"})
        await app.dead.edit(2, "other text")
        assert [letter.body for letter in await app.dead.list()] == [b'{"name":"b"}', b"other text"]
