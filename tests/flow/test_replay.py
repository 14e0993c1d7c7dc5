"""Replay: dead letters go back to their queues, oldest first, once each, under new ids that keep their history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadMessage, NoSuchLetter
from penstock.queues.letters import CanaryDied, DeadLetterFilter
from penstock.queues.queue import Queue
from penstock.testing import TestApp, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app


class Patient:
    """An app whose handler refuses every listing until it is cured; it writes the names of those it took."""

    def __init__(self) -> None:
        self.is_cured = False
        self.refuse: Callable[[str], Exception] = ps.Permanent
        self.seen: list[ps.Message[Listing]] = []
        self.app, self.listings = shop_app(self._handle)

    async def _handle(self, listing: Listing, message: ps.Message[Listing]) -> None:
        self.seen.append(message)
        if not self.is_cured:
            raise self.refuse(f"no {listing.name}")
        self.app.db.write(EFFECT, what=listing.name)

    async def bury(self, shop: TestApp, *names: str) -> list[str]:
        ids = []
        for name in names:
            ids.append(await shop.send(self.listings, Listing(name=name)))
            await shop.advance(seconds=1)
        self.seen.clear()
        return ids


def names(count: int) -> list[str]:
    return [f"{number:04}" for number in range(count)]


async def counts(shop: TestApp, queue: Queue[Listing]) -> tuple[int, int, int]:
    found = await shop.counts(queue)
    return found.sent, found.acked, found.dead


@pytest.mark.spec("A3-06")
@virtual
async def test_twelve_letters_go_back_ten_then_two_then_none_and_the_oldest_go_first() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(12))
        patient.is_cured = True

        assert await app.dead.replay(DeadLetterFilter(queue="listings")) == 10
        await shop.drain()
        assert await effects(app) == names(10)
        assert await app.dead.replay(DeadLetterFilter(queue="listings-dlq")) == 2
        await shop.drain()
        assert await app.dead.replay(DeadLetterFilter(queue="listings")) == 0

        assert await effects(app) == names(12)
        assert await counts(shop, patient.listings) == (12, 12, 0)
        assert {letter.resolution for letter in await app.dead.list(resolved=True)} == {"replayed"}


@pytest.mark.spec("A3-07", "G4-08")
@virtual
async def test_a_replay_has_a_new_id_keeps_its_correlation_and_names_the_original() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        [id] = await patient.bury(shop, "a")
        for _ in range(3):
            assert await app.dead.replay(DeadLetterFilter()) == 1
            await shop.drain()

        lives = patient.seen
        assert len({id, *(message.id for message in lives)}) == 4
        assert [(message.replay_of, message.correlation_id, message.attempt) for message in lives] == [(id, id, 1)] * 3
        told = await app.db.rows(
            "select replay_count, resolution, replayed_at is not null from dead_messages where correlation_id = "
            "(select correlation_id from dead_messages where id = 1) order by id"
        )
        assert told == [(1, "replayed", 1), (2, "replayed", 1), (3, "replayed", 1), (3, None, 0)]


@pytest.mark.spec("A3-07", "A2-08")
@virtual
async def test_a_replayed_message_passes_where_its_old_id_would_be_known_and_is_listed_when_done() -> None:
    patient = Patient()
    app = patient.app
    id = "0190b8f0-1234-7abc-8def-0123456789ab"
    async with TestApp(app) as shop:
        await shop.send(patient.listings, Listing(name="a"), id=id)
        await shop.drain()
        patient.is_cured = True
        assert await shop.send(patient.listings, Listing(name="a"), id=id) == id
        await shop.drain()
        assert await effects(app) == []

        await app.dead.replay(DeadLetterFilter())
        await shop.drain()

        assert await effects(app) == ["a"]
        [done] = await app.db.column("select event_id from processed_events")
        assert done.replace("-", "") == patient.seen[-1].id.replace("-", "")


@pytest.mark.spec("G4-07")
@virtual
async def test_what_was_done_once_before_a_death_is_not_done_again_by_its_replay() -> None:
    charged: list[str] = []
    cured: list[bool] = []

    async def charge(name: str) -> str:
        charged.append(name)
        return f"receipt {len(charged)}"

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        receipt = await app.once("charge", charge, listing.name)
        async with app.unit(key="paid") as unit:
            app.db.write(EFFECT, what=f"paid {listing.name}")
            photos.send(Photo(name=listing.name))
        if not cured:
            raise ps.Permanent("half done")
        app.db.write(EFFECT, what=f"{receipt}, repeated: {unit.repeated}")

    app, listings = shop_app(handle)
    photos: ps.Queue[Any] = app.queue("photos")
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        await app.dead.replay(DeadLetterFilter())
        await shop.drain()
        cured.append(True)
        await app.dead.replay(DeadLetterFilter())
        await shop.drain()

        assert charged == ["a"]
        assert await effects(app) == ["paid a", "receipt 1, repeated: True"]
        assert (await shop.counts(photos)).sent == 1


COMMITTING = [
    "commit.begun",
    "commit.settled",
    "commit.written",
    "commit.sent",
    "commit.before",
    "commit.after",
    "commit.known",
]


@pytest.mark.spec("A3-06", "G4-08")
@pytest.mark.parametrize("point", COMMITTING)
@virtual
async def test_a_death_in_the_middle_of_a_replay_never_sends_a_letter_twice_nor_loses_it(point: str) -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(3))
        patient.is_cured = True
        await shop.crash(at=point)
        replaying = shop._worker.start(app.dead.replay(DeadLetterFilter()))
        await shop.advance(minutes=1)
        assert not replaying.done() or point == "commit.known"
        assert shop.workers_started == 2

        await app.dead.replay(DeadLetterFilter())
        await shop.advance(minutes=1)

        assert await effects(app) == names(3)
        assert await counts(shop, patient.listings) == (3, 3, 0)


@pytest.mark.spec("A3-06")
@virtual
async def test_two_who_replay_at_the_same_time_send_each_letter_once() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(8))
        patient.is_cured = True
        done = await asyncio.gather(*(app.dead.replay(DeadLetterFilter()) for _ in range(4)))
        await shop.drain()

        assert sum(done) == 8
        assert await effects(app) == names(8)


@pytest.mark.fault("F28")
@virtual
async def test_a_message_goes_back_three_times_and_then_only_by_force() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, "a")
        for replayed in (1, 1, 1, 0, 0):
            assert await app.dead.replay(DeadLetterFilter()) == replayed
            await shop.drain()
        [letter] = await app.dead.list()
        assert letter.replay_count == 3
        assert await app.dead.replay(letter.id) == 0
        patient.is_cured = True
        assert await app.dead.replay(letter.id, force=True) == 1
        await shop.drain()

        assert await effects(app) == ["a"]


@pytest.mark.fault("F28")
@virtual
async def test_letters_that_may_not_go_back_do_not_stand_in_the_way_of_others() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(3))
        for _ in range(3):
            await app.dead.replay(DeadLetterFilter(queue="listings"))
            await shop.drain()
        await patient.bury(shop, "new")
        patient.is_cured = True

        assert await app.dead.replay(DeadLetterFilter(queue="listings"), limit=2) == 1
        await shop.drain()
        assert await effects(app) == ["new"]


@pytest.mark.fault("F28")
@virtual
async def test_a_rate_spreads_the_replays_over_time() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(6))
        before = len(shop.delivered(patient.listings))
        began = shop.now
        assert await app.dead.replay(DeadLetterFilter(), rate=2) == 6
        await shop.advance(seconds=10)

        times = [each.at for each in shop.delivered(patient.listings)[before:]]
        assert [(at - began).total_seconds() for at in times if at] == [0, 0.5, 1, 1.5, 2, 2.5]
        for rate in (0, -1, float("inf"), float("nan")):
            with pytest.raises(BadMessage, match="rate"):
                await app.dead.replay(DeadLetterFilter(), rate=rate)


@pytest.mark.fault("F28")
@virtual
async def test_a_canary_that_dies_keeps_the_others_where_they_are() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(5))
        with pytest.raises(CanaryDied, match=r"died again .*no 0000"):
            await app.dead.replay(DeadLetterFilter(), canary=True)

        assert len(patient.seen) == 1
        assert await counts(shop, patient.listings) == (5, 0, 5)


@pytest.mark.fault("F28")
@virtual
async def test_a_canary_that_lives_is_followed_by_the_rest() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(5))
        patient.is_cured = True
        assert await app.dead.replay(DeadLetterFilter(), canary=True) == 5
        await shop.drain()

        assert await effects(app) == names(5)


@virtual
async def test_a_canary_without_a_handler_is_given_up_after_a_minute() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(5))
        await (await app.desk()).pause("listings")
        with pytest.raises(CanaryDied, match="was not processed within 60 s"):
            await app.dead.replay(DeadLetterFilter(), canary=True)

        assert (await shop.counts(patient.listings)).dead == 4


@virtual
async def test_a_canary_that_fails_and_backs_off_names_its_error() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(2))
        patient.refuse = lambda said: ps.Unavailable(said, retry_after=3_600)
        with pytest.raises(CanaryDied, match=r"not processed within 60 s.* Its last attempt failed: .* at \S+\.py:\d+"):
            await app.dead.replay(DeadLetterFilter(), canary=True)


@pytest.mark.spec("A3-08")
@virtual
async def test_what_was_discarded_or_mended_by_hand_never_goes_back() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(4))
        patient.is_cured = True
        assert await app.dead.discard(1, "spam") == 1
        assert await app.dead.mark_fixed([2], "entered by hand") == 1
        assert await app.dead.discard([1, 2], "once more") == 0
        assert await app.dead.replay([1, 2, 3, 4], force=True) == 2
        assert await app.dead.replay(DeadLetterFilter(), force=True) == 0
        await shop.drain()

        assert await effects(app) == ["0002", "0003"]
        found = await app.db.rows("select id, resolution, note, replayed_at is not null from dead_messages order by id")
        assert found == [
            (1, "discarded", "spam", 0),
            (2, "fixed", "entered by hand", 0),
            (3, "replayed", None, 1),
            (4, "replayed", None, 1),
        ]
        told = await shop.counts(patient.listings)
        assert (told.sent, told.acked, told.dead, told.purged) == (4, 2, 0, 2)


@virtual
async def test_letters_chosen_by_number_are_all_meant_and_a_wrong_number_stops_everything() -> None:
    patient = Patient()
    app = patient.app
    async with TestApp(app) as shop:
        await patient.bury(shop, *names(12))
        with pytest.raises(NoSuchLetter, match="99"):
            await app.dead.replay([1, 99])
        assert (await shop.counts(patient.listings)).dead == 12
        assert await app.dead.replay([*range(1, 13), 1, 2]) == 12
        assert await app.dead.replay(DeadLetterFilter(), limit=0) == 0
        assert await app.dead.replay(DeadLetterFilter(), limit=-1) == 0


@virtual
async def test_a_replay_from_a_handler_is_saved_midway() -> None:
    patient = Patient()
    app = patient.app
    photos: ps.Queue[Any] = app.queue("photos")

    async def photo(_photo: Photo) -> None:
        app.db.write(EFFECT, what=f"replayed {await app.dead.replay(DeadLetterFilter())}")

    photos.handler(Photo)(photo)
    async with TestApp(app) as shop:
        await patient.bury(shop, "a", "b")
        patient.is_cured = True
        await shop.send(photos, Photo(name="go"))
        await shop.drain()

        assert await effects(app) == ["a", "b", "replayed 2"]
