"""What objects cost is metered: how often they were asked, how long they were at work, how often they were saved."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing

METERED = """
select executions as requests, rows_written as saves, micros / 1000000.0 as seconds
from penstock_usage
where statement = 'penstock:object_requests'
and task = 'object.Worker'
"""


class Worker(ps.Object):
    done: int = 0

    async def work(self, seconds: float) -> int:
        await asyncio.sleep(seconds)
        self.done += 1
        return self.done

    async def work_beside(self, seconds: float) -> None:
        async with self.released():
            await asyncio.sleep(seconds)

    async def look(self) -> int:
        return self.done

    async def fail(self) -> None:
        await asyncio.sleep(1)
        self.done += 1
        raise OSError("no")

    async def later(self, seconds: float) -> None:
        self.set_alarm(after=seconds)

    async def alarm(self) -> None:
        await asyncio.sleep(4)


@pytest.mark.spec("A5-18")
@virtual
async def test_requests_duration_and_saves_grow_by_what_was_done() -> None:
    app = ps.App("shop")
    workers = app.object(Worker)
    async with TestApp(app) as shop:
        for seconds in (3, 7):
            await workers["a"].work(seconds)
        await workers["a"].look()
        with pytest.raises(OSError, match="no"):
            await workers["b"].fail()
        await workers["b"].later(60)
        await shop.advance(minutes=2)

        total = (await app.db.usage()).total
        assert total.object_requests == 6
        assert total.object_seconds == pytest.approx(3 + 7 + 1 + 4, abs=0.01)
        [metered] = await app.db.rows(METERED)
        # The first event of an object that changes anything, be it the alarm, saves the fields it began with.
        assert (metered.requests, metered.saves, round(metered.seconds)) == (6, 3, 15)


@pytest.mark.spec("A5-18")
@virtual
async def test_events_beside_each_other_take_the_time_of_the_longest_and_objects_beside_each_other_add_up() -> None:
    app = ps.App("shop")
    workers = app.object(Worker)
    async with TestApp(app):
        await asyncio.gather(*(workers["a"].work_beside(seconds) for seconds in (2, 5, 9)))
        assert (await app.db.usage()).total.object_seconds == pytest.approx(9, abs=0.01)

        await asyncio.gather(workers["a"].work_beside(10), workers["b"].work_beside(10))
        assert (await app.db.usage()).total.object_seconds == pytest.approx(29, abs=0.01)


@pytest.mark.spec("A5-18")
@virtual
async def test_idle_objects_cost_nothing() -> None:
    app = ps.App("shop")
    workers = app.object(Worker)
    async with TestApp(app) as shop:
        await workers["a"].work(1)
        await shop.advance(hours=5)
        await workers["a"].look()
        assert (await app.db.usage()).total.object_seconds == pytest.approx(1, abs=0.01)


@virtual
async def test_an_answer_that_was_stored_is_no_request() -> None:
    app = ps.App("shop")
    workers = app.object(Worker)
    listings: ps.Queue[Any] = app.queue("listings")
    fails = [True, False]

    @listings.handler(Listing)
    async def handle(_listing: Listing) -> None:
        await workers["a"].work(1)
        if fails.pop():
            return
        raise OSError("again, please")

    async with TestApp(app) as shop:
        await shop.send(listings, Listing(name="a"))
        await shop.advance(minutes=2)
        assert fails == []
        assert (await app.db.usage()).total.object_requests == 1


@pytest.mark.spec("A5-18", "A4-14")
@virtual
async def test_a_million_requests_and_45_hours_are_priced() -> None:
    app = ps.App("shop")
    workers = app.object(Worker)
    async with TestApp(app):
        await workers["a"].work(45 * 3_600)
        bill = (await app.db.usage()).bill
        assert bill.line("object_seconds").usd == pytest.approx(0.5625)
        assert bill.line("object_requests").usd == pytest.approx(12.50 / 1_000_000)
