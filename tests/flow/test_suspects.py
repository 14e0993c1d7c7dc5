"""What a dead worker ran runs alone from then on: it waits for its turn with its lease, and nobody else begins it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.runtime.events import LeaseWasLost
from penstock.testing import virtual
from tests.flow.crew import Crew
from tests.flow.shop import EFFECT, Listing, Photo, effects

WALL_SECONDS = 5  # a lease is half a minute more
LONGEST_LEASE_MINUTES = 16  # a worker that has just begun cuts nobody's lease short for this long


class Shop:
    """What its workers did, and when."""

    def __init__(self) -> None:
        self.long_seconds = 0.0
        self.began: list[float] = []
        self.ended: list[float] = []
        self.lost: list[LeaseWasLost] = []

    def made(self) -> ps.App:
        app = ps.App("shop")
        time = asyncio.get_running_loop().time
        listings: ps.Queue[Any] = app.queue("listings", timeout=WALL_SECONDS)
        photos: ps.Queue[Any] = app.queue("photos", parallel=1)

        @photos.handler(Photo)
        async def develop(_photo: Photo) -> None:
            await asyncio.sleep(self.long_seconds)

        @listings.handler(Listing)
        async def handle(listing: Listing) -> None:
            self.began.append(time())
            await asyncio.sleep(WALL_SECONDS - 1)
            self.ended.append(time())
            app.db.write(EFFECT, what=listing.name)

        app.events.subscribe(self.lost.append, to=LeaseWasLost)
        return app


@pytest.mark.fault("F03")
@pytest.mark.parametrize("seconds", [34, 100])  # just within its lease, and long after it
@virtual
async def test_a_suspect_that_waits_for_its_turn_keeps_its_lease_and_runs_in_one_process(
    tmp_path: Path, seconds: float
) -> None:
    shop = Shop()
    shop.long_seconds = seconds
    async with Crew(shop.made, tmp_path, workers=3) as crew:
        await crew.advance(minutes=LONGEST_LEASE_MINUTES)
        crew.pause(1)
        crew.pause(2)
        async with crew.apps[0].unit():
            crew.apps[0].queues["listings"].send(Listing(name="a"))
        await crew.advance(seconds=1)
        crew.pause(0)
        crew.resume(1)
        crew.resume(2)
        async with crew.apps[1].unit():
            for name in "bc":
                crew.apps[1].queues["photos"].send(Photo(name=name))
        await crew.advance(seconds=1)
        crew.kill(0)
        await crew.advance(minutes=10)

        first, *again = shop.began
        assert len(again) == 1
        assert again[0] - first == pytest.approx(seconds + 1, abs=2)
        assert len(shop.ended) == 1
        assert await effects(crew.apps[1]) == ["a"]
    assert shop.lost == []
