"""A disk that stays bad is tried again at the set times, however many ask; once it is given up on nothing is tried."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from penstock.contracts.effects import OnceKey, SealedUnit
from penstock.contracts.ledger import ClaimRequest, Committed, Ledger
from penstock.runtime.scheduler import FULL_RETRY_SECONDS, RETRY_SECONDS
from penstock.testing import TestApp, WorkerFailed, virtual
from tests.flow.shop import EFFECT, Listing, OnDisk, effects

pytestmark = pytest.mark.only_on("sqlite")


class Watched:
    """The worker's ledger, with a note of when it was asked to commit."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.tries: list[float] = []

    def commit(
        self, units: Sequence[SealedUnit], wants: Sequence[ClaimRequest], *, now: int, sweep: bool, fire: bool = False
    ) -> Committed:
        self.tries.append(asyncio.get_running_loop().time())
        return self._ledger.commit(units, wants, now=now, sweep=sweep, fire=fire)

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._ledger.find_once(once)


def watch(shop: TestApp) -> Watched:
    engine = shop._worker.engine
    assert engine is not None
    watched = Watched(engine.scheduler._ledger)
    engine.scheduler._ledger = watched
    return watched


def slow_app() -> OnDisk:
    """Its handlers end one after the other, a fifth of a second apart: each asks for a commit of its own."""
    app = OnDisk("shop")
    listings = app.queue("listings", Listing, parallel=100)

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        await asyncio.sleep(1 + int(listing.name) / 5)
        app.db.write(EFFECT, what=listing.name)

    return app


async def send(app: OnDisk, shop: TestApp, count: int) -> None:
    async with shop.unit():
        for number in range(count):
            app.queues["listings"].send(Listing(name=str(number)))


@pytest.mark.parametrize("tick_seconds", [None, 1.0])
@virtual
async def test_a_disk_that_stays_bad_is_tried_at_the_set_times_and_no_more(tick_seconds: float | None) -> None:
    app = slow_app()
    with pytest.raises(WorkerFailed, match="the disk did not write"):
        async with TestApp(app, synchronous="full", tick_seconds=tick_seconds) as shop:
            await send(app, shop, 60)
            await shop.send(app.queues["listings"], Listing(name="60"), delay=30)  # due when nothing is tried any more
            await shop.advance(seconds=0.5)
            watched = watch(shop)
            app.disk.fail("write", times=1_000_000, on="-wal")
            try:
                await shop.advance(minutes=1)
            finally:
                app.disk.heal()

    waits = [after - before for before, after in pairwise(watched.tries)]
    assert waits == pytest.approx(RETRY_SECONDS)


@virtual
async def test_what_comes_while_a_bad_disk_is_given_time_is_saved_once_it_is_well() -> None:
    app = slow_app()
    async with TestApp(app, synchronous="full") as shop:
        await send(app, shop, 40)
        await shop.advance(seconds=0.5)
        watched = watch(shop)
        app.disk.fail("write", times=len(RETRY_SECONDS), on="-wal")
        await shop.advance(seconds=0.5 + sum(RETRY_SECONDS))

        waits = [after - before for before, after in pairwise(watched.tries)]
        assert waits[: len(RETRY_SECONDS)] == pytest.approx(RETRY_SECONDS)
        await shop.drain()
        assert await effects(app) == sorted(str(number) for number in range(40))


@pytest.mark.fault("F14")
@virtual
async def test_the_tries_of_a_full_disk_do_not_multiply() -> None:
    app = slow_app()
    async with TestApp(app, synchronous="full") as shop:
        await send(app, shop, 20)
        await shop.advance(seconds=0.5)
        app.disk.quota_bytes = 1  # not even what is set aside for settling helps
        await shop.advance(seconds=10)
        watched = watch(shop)
        await shop.advance(seconds=30)
        assert len(watched.tries) == pytest.approx(30 / FULL_RETRY_SECONDS, abs=1)

        app.disk.quota_bytes = None
        await shop.advance(minutes=1)
        assert await effects(app) == sorted(str(number) for number in range(20))
