"""Retention: what nobody consumed is gone at its time and not before, and everybody can see how much that was."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadApp
from penstock.queues.queue import Queue
from penstock.runtime.events import MessagesExpired
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing, shop_app

DAY = 86_400


def platform(profile: str = "cloudflare", **queue: Any) -> tuple[ps.App, Queue[Listing]]:
    app = ps.App("shop", config=parse(f'profile = "{profile}"', "penstock.toml"))
    return app, app.queue("listings", Listing, **queue)


@pytest.mark.spec("A1-16")
@pytest.mark.parametrize(
    "profile, retention, seconds",
    [
        pytest.param("cloudflare", None, 4 * DAY, marks=pytest.mark.slow("postgres")),
        pytest.param("cloudflare", 14 * DAY, 14 * DAY, marks=pytest.mark.slow("postgres")),
        ("cloudflare", 90, 90),
        ("cloudflare-free", None, DAY),
        ("local", 3_600, 3_600),
    ],
)
@virtual
async def test_a_message_is_there_a_second_before_its_end_and_counted_as_expired_after(
    profile: str, retention: float | None, seconds: float
) -> None:
    app, listings = platform(profile) if retention is None else platform(profile, retention=retention)
    expired: list[MessagesExpired] = []
    app.events.subscribe(expired.append, to=MessagesExpired)
    async with TestApp(app) as shop:
        await shop.advance(seconds=17)
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=11)
        await shop.send(listings, Listing(name="b"))
        await shop.advance(seconds=seconds - 12)
        assert ((await shop.counts(listings)).ready, (await shop.counts(listings)).expired) == (2, 0)
        await shop.advance(seconds=2)
        assert ((await shop.counts(listings)).ready, (await shop.counts(listings)).expired) == (1, 1)
        await shop.advance(seconds=11)

        assert ((await shop.counts(listings)).ready, (await shop.counts(listings)).expired) == (0, 2)
        assert [(each.messages, each.dead) for each in expired] == [(1, 0), (1, 0)]


@pytest.mark.spec("A1-16")
@pytest.mark.parametrize("profile, most", [("cloudflare", 14 * DAY), ("cloudflare-free", DAY)])
def test_more_than_the_profile_keeps_is_refused(profile: str, most: float) -> None:
    assert platform(profile, retention=most)[1].settings.retention_seconds == most
    with pytest.raises(BadApp, match="retention"):
        platform(profile, retention=most + 1)


@pytest.mark.slow
@pytest.mark.spec("A1-16")
@virtual
async def test_without_a_retention_nothing_ever_expires() -> None:
    app, listings = shop_app()
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(days=60)
        assert (await shop.counts(listings)).ready == 1


@pytest.mark.spec("A1-09", "A1-16")
@virtual
async def test_retries_and_delays_do_not_make_a_message_live_longer() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> object:
        return ps.Later(40)

    app, listings = shop_app(handle, retention=100)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.send(listings, Listing(name="delayed beyond its end"), delay=150)
        await shop.advance(seconds=99)
        assert len(shop.delivered(listings)) == 3
        assert (await shop.counts(listings)).delayed == 2
        await shop.advance(seconds=2)

        assert (await shop.counts(listings)).expired == 2
        await shop.advance(hours=1)
        assert len(shop.delivered(listings)) == 3


@virtual
async def test_what_runs_at_its_end_may_finish_and_what_comes_back_then_is_not_delivered_again() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> object:
        await asyncio.sleep(200)
        return None if listing.name == "fine" else ps.Later(5)

    app, listings = shop_app(handle, retention=100)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="fine"))
        await shop.send(listings, Listing(name="wants more time"))
        await shop.advance(hours=2)

        assert len(shop.delivered(listings)) == 2
        counts = await shop.counts(listings)
        assert (counts.acked, counts.expired) == (1, 1)


@pytest.mark.spec("A1-16")
@virtual
async def test_what_expired_while_no_worker_ran_is_not_delivered_by_the_next() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle, retention=100)
    async with TestApp(app) as shop:
        desk = await app.desk()
        await desk.pause("listings")
        async with shop.unit():
            for number in range(2_500):
                listings.send(Listing(name=str(number)))
        await shop.advance(seconds=50)
        await shop.send(listings, Listing(name="young"))
        shop.jump(60)  # as if the machine had slept: nobody looked when their time came
        await desk.resume("listings")
        await shop.advance(seconds=1)

        assert [each.payload.name for each in shop.delivered(listings)] == ["young"]  # type: ignore[attr-defined]
        await shop.advance(hours=2)
        counts = await shop.counts(listings)
        assert (counts.acked, counts.expired) == (1, 2_500)


@pytest.mark.spec("A1-16", "A3-01", "A15-09")
@virtual
async def test_dead_letters_without_a_handler_expire_after_four_days_and_others_stay() -> None:
    async def heard(_letter: ps.DeadLetter) -> None: ...
    async def handle(_listing: Listing) -> object:
        return ps.Discard("sold")

    app, listings = platform(batch_wait=0)
    watched = app.queue("watched", Listing, batch_wait=0)
    for queue in (listings, watched):
        queue.handler(Listing)(handle)
    watched.dead_letter_handler(heard)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.send(watched, Listing(name="b"))
        await shop.advance(seconds=1)
        await shop.advance(seconds=4 * DAY - 2)
        assert ((await shop.counts(listings)).dead, (await shop.counts(watched)).dead) == (1, 1)
        await shop.advance(seconds=3)

        counts = await shop.counts(listings)
        assert (counts.dead, counts.expired) == (0, 1)
        assert (await shop.counts(watched)).dead == 1
