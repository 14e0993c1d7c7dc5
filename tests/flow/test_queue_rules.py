"""Rules that only show over several messages: what is not there yet, what goes out together, who goes first, who listens."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path

import pytest

import penstock as ps
from penstock.model.message import PRIORITY_HIGH, PRIORITY_LOW
from penstock.testing import TestApp, virtual
from tests.flow.shop import EFFECT, Listing, Photo, effects, shop_app


class Research(ps.Command, type="research.requested"):
    keyword: str


class Request(ps.Command, type="brand.research"):
    request: str
    keywords: list[str]


# -- what is not there yet -----------------------------------------------------------------------------------------


@pytest.mark.spec("G4-12", "A2-23")
@virtual
async def test_not_found_means_not_yet_until_the_tries_are_used_up() -> None:
    async def published(listing: Listing, message: ps.Message[Listing]) -> None:
        if f"row of {listing.name}" not in await effects(app):
            raise LookupError(f"{listing.name} was not found")
        app.db.write(EFFECT, what=f"{listing.name} at try {message.attempt}")

    app, listings = shop_app(published)
    async with TestApp(app) as shop:
        for name in ("late", "never"):
            await shop.send(listings, Listing(name=name))
        await shop.advance(seconds=45)
        async with app.unit():
            app.db.write(EFFECT, what="row of late")
        await shop.advance(hours=1)

        assert await effects(app) == ["late at try 3", "row of late"]
        [dead] = await shop.dead(listings)
        assert (dead.reason, dead.attempts, dead.error_class) == ("exhausted", 4, "LookupError")


# -- what goes out together ----------------------------------------------------------------------------------------


@pytest.mark.spec("G4-18", "A2-09")
@pytest.mark.parametrize(
    "point", ["handler.before", "handler.after", "unit.sealed", "commit.before", "commit.after", None]
)
@virtual
async def test_a_fan_out_and_its_count_are_one_commit_despite_deaths_and_repeated_requests(point: str | None) -> None:
    async def fan_out(wanted: Request) -> None:
        async with app.unit():  # as much as is known of the request, and all of its commands
            for keyword in wanted.keywords:
                research.send(Research(keyword=keyword), unique=f"{wanted.request} {keyword}")
        app.db.write(EFFECT, what=f"{wanted.request}: {len(wanted.keywords)} pending")

    async def find(command: Research) -> None:
        app.db.write(EFFECT, what=command.keyword)

    app = ps.App("shop", migrations=Path(__file__).parent / "migrations")
    requests = app.queue("requests", Request, crashes_max=10)
    requests.handler(Request)(fan_out)
    research = app.queue("research", Research)
    research.handler(Research)(find)
    keywords = [f"keyword {number}" for number in range(10)]
    async with TestApp(app) as shop:
        if point is not None:
            await shop.crash(at=point)
        for _ in range(2):  # the second time from a caller that lost our answer
            await shop.send(requests, Request(request="r1", keywords=keywords), unique="r1")
            await shop.advance(minutes=5)

        assert await effects(app) == [*keywords, "r1: 10 pending"]
        assert (await shop.counts(research)).sent == 10
        assert shop.workers_started == (1 if point is None else 2)


# -- who goes first ------------------------------------------------------------------------------------------------


@pytest.mark.spec("G4-19")
@virtual
async def test_high_overtakes_what_waits_and_low_may_be_put_off() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        order.append(listing.name)
        await asyncio.sleep(1)

    order: list[str] = []
    app, listings = shop_app(handle, parallel=1)
    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(20):
                listings.send(Listing(name=f"normal {number}"))
            listings.send(Listing(name="low"), priority=PRIORITY_LOW, delay=3_600)
        await shop.advance(seconds=2.5)
        await shop.send(listings, Listing(name="high"), priority=PRIORITY_HIGH)
        await shop.advance(seconds=3_590)
        assert order.index("high") <= 4  # behind what had begun or was claimed
        assert len(order) == 21
        assert "low" not in order
        await shop.advance(seconds=60)

        assert order[-1] == "low"


# -- who listens ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("G4-20")
@virtual
async def test_a_further_subscriber_is_one_more_handler_and_changes_no_other() -> None:
    async def first(listing: Listing, _message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what=f"first: {listing.name}")

    app, listings = shop_app(first)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.drain()
        assert await effects(app) == ["first: a"]

        @listings.handler(Listing)
        async def second(listing: Listing) -> None:
            app.db.write(EFFECT, what=f"second: {listing.name}")

        await shop.restart()
        await shop.send(listings, Listing(name="b"))
        await shop.drain()

        assert await effects(app) == ["first: a", "first: b", "second: b"]


# -- a rate for each key -------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-22")
@virtual
async def test_a_pace_for_each_key_holds_each_to_its_rate_and_costs_no_attempt() -> None:
    starts: dict[str, list[float]] = defaultdict(list)

    async def fetch(photo: Photo) -> None:
        host = photo.name.split("/")[0]
        async with app.pace(host, rate=(2.0, 2.0), max_wait=2).permit():
            starts[host].append(asyncio.get_running_loop().time())

    app, listings = shop_app()
    listings.handler(Photo)(fetch)
    async with TestApp(app) as shop:
        async with shop.unit():
            for number in range(30):
                listings.send(Photo(name=f"busy.example/{number}"))
            listings.send(Photo(name="quiet.example/1"))
        await shop.advance(seconds=1)
        assert len(starts["quiet.example"]) == 1  # nobody waits for another key's turn
        await shop.advance(minutes=5)

        assert len(starts["busy.example"]) == 30
        busy = starts["busy.example"]
        assert max(bisect_left(busy, at + 1) - place for place, at in enumerate(busy)) <= 3
        assert busy[-1] - busy[0] >= 14
        assert {each.number for each in shop.delivered(listings)} == {1}
