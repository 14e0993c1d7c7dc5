"""Back-off with jitter: what failed together does not come back together."""

from __future__ import annotations

from datetime import datetime

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing, shop_app

MESSAGES = 200


async def waits(shop: TestApp, queue: Queue[Listing], began: datetime) -> list[float]:
    """When the second deliveries began, in seconds after the first."""
    return sorted(
        (each.at - began).total_seconds() for each in shop.delivered(queue) if each.number == 2 and each.at is not None
    )


@pytest.mark.spec("A1-14")
@pytest.mark.parametrize("jitter", [False, True])
@virtual
async def test_failures_come_back_together_unless_the_queue_asks_for_jitter(jitter: bool) -> None:
    async def handle(_listing: Listing, message: ps.Message[Listing]) -> None:
        if message.attempt == 1:
            raise OSError("the service is down")

    app, listings = shop_app(handle, jitter=jitter, parallel=MESSAGES)
    async with TestApp(app) as shop:
        began = shop.now
        async with shop.unit():
            listings.send_all(Listing(name=str(number)) for number in range(MESSAGES))
        await shop.advance(seconds=31)

        back = await waits(shop, listings, began)
        assert len(back) == MESSAGES
        if not jitter:
            assert {round(seconds, 2) for seconds in back} == {30.0}
        else:  # full jitter: anywhere between at once and the whole back-off
            assert 0 < back[0] < 3
            assert 27 < back[-1] <= 30.01
            assert 12 < sum(back) / MESSAGES < 18


@pytest.mark.spec("A1-14")
@virtual
async def test_a_delay_that_a_caller_named_is_kept_to_the_second() -> None:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        if message.attempt == 1 and listing.name == "asked":
            message.retry(delay=7)
        elif listing.name == "throttled" and len(shop.delivered(listings)) < 3:
            raise ps.Throttled("slow down", retry_after=9)

    app, listings = shop_app(handle, jitter=True)
    async with TestApp(app) as shop:
        began = shop.now
        for name in ("asked", "throttled"):
            await shop.send(listings, Listing(name=name))
        await shop.advance(seconds=60)

        at = [round((each.at - began).total_seconds(), 2) for each in shop.delivered(listings) if each.at is not None]
        assert at == [0.0, 0.0, 7.0, 9.0]
