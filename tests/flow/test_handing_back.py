"""What a worker claimed and cannot run goes back as it came: after 20 s, when it stops, or when the clock jumps."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

import penstock as ps
from penstock.queues import consumer
from penstock.queues.queue import Queue
from penstock.runtime.gate import Gate
from penstock.testing import TestApp, attempt, virtual
from tests.flow.shop import EFFECT, Listing, effects, shop_app


@virtual
async def test_what_could_not_begin_within_20_seconds_of_its_claim_goes_back_uncharged() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        if listing.name == "slow":
            await asyncio.sleep(600)

    app, listings = shop_app(handle, parallel=1)
    async with TestApp(app) as shop:
        # Quick handlers make the worker claim ahead; then a slow one holds up what it claimed.
        async with shop.unit():
            for name in ["quick"] * 20 + ["slow"] + ["quick"] * 5:
                listings.send(Listing(name=name))
        await shop.advance(seconds=1)
        assert (await shop.counts(listings)).leased > 1

        await shop.advance(seconds=120)
        counts = await shop.counts(listings)
        assert (counts.leased, counts.ready) == (1, 5)
        await shop.advance(minutes=10)

        assert shop.delivered(listings) == [attempt(1)] * 26
        assert (await shop.counts(listings)).acked == 26


@pytest.mark.fault("F04")
@virtual
async def test_a_stopping_worker_lets_handlers_finish_and_hands_back_the_rest_uncharged() -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(10 if listing.name == "short" else 100)
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle, parallel=2)
    async with TestApp(app) as shop:
        async with shop.unit():
            for name in ("short", "long", "waiting"):
                listings.send(Listing(name=name))
        await shop.advance(seconds=5)
        began = shop.now
        await shop.restart()

        assert 24 <= (shop.now - began).total_seconds() <= 31
        assert await effects(app) == ["short"]
        assert {each.payload for each in shop.delivered(listings)[2:]} == {
            Listing(name="long"),
            Listing(name="waiting"),
        }
        assert shop.delivered(listings) == [attempt(1)] * 4
        await shop.advance(minutes=5)
        assert await effects(app) == ["long", "short", "waiting"]


@pytest.mark.fault("F09")
@pytest.mark.parametrize("jump_seconds", [3_600, -3_600, 5, -5])
@virtual
async def test_a_jump_of_the_clock_takes_no_message_from_its_handler(jump_seconds: float) -> None:
    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        await asyncio.sleep(300)
        app.db.write(EFFECT, what=listing.name)

    app, listings = shop_app(handle)
    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(seconds=10)
        shop.jump(jump_seconds)
        await shop.advance(seconds=300)

        assert shop.delivered(listings) == [attempt(1)]
        assert await effects(app) == ["a"]
        assert (await shop.counts(listings)).acked == 1


@pytest.mark.fault("F09")
async def test_a_jump_forward_makes_waiting_messages_due_and_one_back_makes_none_early(
    shop: TestApp, listings: Queue[Listing]
) -> None:
    await shop.send(listings, Listing(name="a"), delay=1_000)
    await shop.send(listings, Listing(name="b"), delay=5_000)
    await shop.advance(seconds=1)
    shop.jump(1_000)
    await shop.advance(seconds=1)
    assert [each.payload for each in shop.delivered(listings)] == [Listing(name="a")]

    shop.jump(-1_000)
    await shop.advance(seconds=3_900)
    assert len(shop.delivered(listings)) == 1
    await shop.advance(seconds=1_100)
    assert len(shop.delivered(listings)) == 2


@pytest.mark.only_on("sqlite")
def test_what_waited_while_the_process_stood_still_is_claimed_anew_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have begun it since."""
    monkeypatch.setattr(consumer, "UNSTARTED_SECONDS", 0.2)
    begun: list[tuple[str, int]] = []

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        begun.append((listing.name, message.delivery.token))
        if listing.name == "a":
            time.sleep(0.5)  # noqa: ASYNC251  as a stopped process does

    app, listings = shop_app(handle, parallel=8)
    app.database = str(tmp_path / "shop.db")

    async def work() -> None:
        async with app, app.unit():
            listings.send_all([Listing(name=name) for name in "abcd"])
        await app.run(until_idle=True)

    asyncio.run(work())

    (first, token), *others = begun
    assert [first, *sorted(name for name, _ in others)] == list("abcd")
    assert all(other > token for _, other in others), begun


@pytest.mark.only_on("sqlite")
def test_a_run_until_nothing_is_left_runs_suspects_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it looks just when they were claimed and have not begun."""
    begun: list[str] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        begun.append(listing.name)

    app, listings = shop_app(handle, parallel=8)
    app.database = str(tmp_path / "shop.db")

    async def sent() -> None:
        async with app, app.unit():
            listings.send_all([Listing(name=name) for name in "abcd"])

    asyncio.run(sent())
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("update penstock_messages set crashes = 1")
    database.close()
    turn = Gate.turn

    async def late(gate: Gate) -> None:
        await asyncio.sleep(0.3)  # longer than it takes to look whether anything is left
        await turn(gate)

    monkeypatch.setattr(Gate, "turn", late)
    asyncio.run(app.run(until_idle=True))

    assert sorted(begun) == list("abcd")
