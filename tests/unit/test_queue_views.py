"""The overview of queues: the truth of one moment, read without counting what need not be counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.model.message import NewMessage, checksum
from penstock.queues.queue import Queue
from penstock.testing import TestApp, virtual
from penstock.views import queues
from penstock.views.view import Row
from tests.unit.market import market, run

BOTH_STORES = True

SECOND = 1_000_000
FIELDS = "name sent acked ready leased delayed dead purged expired oldest_age_seconds paused exact".split()


class Found(ps.Event):
    id: int


def queue_of(app: ps.App, name: str = "found") -> Queue[Any]:
    queue = app.queue(name, Found, parallel=2, retries=0)

    @queue.handler
    async def look(event: Found) -> None:
        if event.id == 13:
            raise ValueError("unlucky")
        if event.id > 100:
            await asyncio.sleep(3_600)

    return queue


@virtual
async def test_every_message_is_in_one_place_and_the_places_add_up() -> None:
    app = ps.App("shop")
    found, other = queue_of(app), app.queue("other", Found)
    async with TestApp(app) as shop:
        for id in (1, 13, 2, 101, 102):
            await shop.send(found, Found(id=id))
        await shop.send(found, Found(id=3), delay=600)
        await shop.send(other, Found(id=4), priority=0)
        await shop.advance(seconds=5)
        await shop.send(found, Found(id=5))

        now = round(shop.now.timestamp() * SECOND)
        states = await queues.rows(app.db, now=now)

        assert states == [
            dict(zip(FIELDS, ("found", 7, 2, 1, 2, 1, 1, 0, 0, 0.0, False, True), strict=True)),
            dict(zip(FIELDS, ("other", 1, 0, 1, 0, 0, 0, 0, 0, 5.0, False, True), strict=True)),
        ]
        for state, queue in zip(states, (found, other), strict=True):
            counted = await shop.counts(queue)
            assert [state[place] for place in counted._fields] == list(counted)


@virtual
async def test_what_is_only_delayed_has_no_age() -> None:
    app = ps.App("shop")
    found = queue_of(app)
    async with TestApp(app) as shop:
        await shop.send(found, Found(id=1), delay=60)

        (state,) = await queues.rows(app.db, now=round(shop.now.timestamp() * SECOND))

        assert (state["ready"], state["delayed"], state["oldest_age_seconds"]) == (0, 1, None)


@pytest.mark.parametrize(
    "ready, delayed, read_most", [(30_000, 5, 1_000), (5, 30_000, 1_000), (30_000, 60, 5_000), (150, 30_000, 5_000)]
)
def test_a_long_backlog_is_known_without_counting_it(tmp_path: Path, ready: int, delayed: int, read_most: int) -> None:
    app = market(tmp_path)
    queue_of(app)

    async def work() -> tuple[Row, int]:
        now = (await app._opened()).clock.now()
        await send(app, ready, due=now - SECOND)
        await send(app, delayed, due=now + 3_600 * SECOND)
        before = (await app.db.usage()).total.rows_read
        (state,) = await queues.rows(app.db, now=now)
        return state, (await app.db.usage()).total.rows_read - before

    state, rows_read = run(app, work())

    assert (state["ready"], state["delayed"], state["exact"]) == (ready, delayed, True)
    assert rows_read < read_most  # an estimate that is never too low


def test_where_both_are_many_it_says_that_they_cannot_be_distinguished(tmp_path: Path) -> None:
    app = market(tmp_path)
    queue_of(app)

    async def work() -> Row:
        now = (await app._opened()).clock.now()
        await send(app, 12_000, due=now - SECOND)
        await send(app, 11_000, due=now + 3_600 * SECOND)
        (state,) = await queues.rows(app.db, now=now)
        return state

    state = run(app, work())

    assert not state["exact"]
    assert (state["ready"], state["ready"] + state["delayed"]) == (10_000, 23_000)


async def send(app: ps.App, count: int, *, due: int) -> None:
    engine = await app._opened()
    for start in range(0, count, 5_000):
        async with app.unit() as unit:
            for _ in range(min(5_000, count - start)):
                id = engine.ids.new()
                body = b'{"id":1}'
                unit.add(
                    NewMessage(
                        *(
                            id,
                            "found",
                            1,
                            due,
                            "found",
                            "market",
                            id,
                            None,
                            0,
                            0,
                            due,
                            checksum(id, body),
                            body,
                            0,
                            None,
                        )
                    )
                )


@pytest.mark.only_on("sqlite")
def test_the_statement_walks_no_table(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[str]:
        given = {"now": 0, "most": 1, "leased_max": 1, "queues_max": 1}
        return [row.detail for row in await app.db.rows(f"explain query plan {queues.SQL['queues']}", given)]

    plan = run(app, work())

    messages = [step for step in plan if "penstock_messages" in step]
    assert len(messages) == 4
    assert all("USING" in step and "INDEX penstock_messages_" in step for step in messages), plan
    assert all("SEARCH" in step for step in messages), plan


def test_workers_are_those_that_are_enrolled(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        engine = await app._opened()
        assert [worker.id for worker in await queues.processes(app.db)] == [engine.writer.workers.me]
        return [worker.pid for worker in await queues.processes(app.db)]

    assert len(run(app, work())) == 1
