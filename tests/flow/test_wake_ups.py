"""A worker without ticks: every message that is due must wake it by itself, whatever else happens at that moment."""

from __future__ import annotations

import asyncio

import pytest

import penstock as ps
from penstock.model.errors import StatementFailed, StoreUnavailable
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, effects, shop_app


@virtual
async def test_an_alarm_that_rings_while_a_group_fails_is_not_lost() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None: ...

    async def fail() -> None:
        await asyncio.sleep(9.5)
        with pytest.raises(StatementFailed):
            async with app.unit():
                app.db.write("insert into no_such_table (what) values (1)")

    app, listings = shop_app(handle)
    # The store takes a second to begin and one to answer: the bad unit is under way when the message is due.
    async with TestApp(app, latency=1.0) as shop:
        await shop.send(listings, Listing(name="a"), delay=10)
        failing = asyncio.ensure_future(fail())
        await shop.advance(minutes=1)

        await failing
        assert shop.delivered(listings) == [attempt(1)]


@virtual
async def test_a_message_that_comes_due_while_another_is_claimed_is_not_left_waiting() -> None:
    async def handle(_listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(100)

    app, listings = shop_app(handle, parallel=5)
    async with TestApp(app, latency=1.0) as shop:
        # The second is due after the claim of the first was made and before its answer is there.
        await shop.send(listings, Listing(name="a"), delay=10)
        await shop.send(listings, Listing(name="b"), delay=11.5)
        await shop.advance(seconds=30)

        assert shop.delivered(listings) == [attempt(1), attempt(1)]


@virtual
async def test_a_unit_that_ends_after_its_app_was_closed_is_refused() -> None:
    app, _ = shop_app()
    async with TestApp(app) as shop:

        async def too_late() -> None:
            async with app.unit():
                app.db.write(EFFECT, what="late")
                await asyncio.sleep(10)

        writing = asyncio.ensure_future(too_late())
        await shop.advance(seconds=1)
        await shop.restart()
        with pytest.raises(StoreUnavailable, match="closed"):
            await writing
        assert await effects(app) == []
