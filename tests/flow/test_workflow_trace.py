"""Runs of workflows are in the trace of their chain: each step with how long it took, children and what steps sent below."""

from __future__ import annotations

import asyncio

import pytest

import penstock as ps
from penstock.model.ids import from_text
from penstock.model.times import to_micros
from penstock.testing import TestApp, virtual
from penstock.views import runs
from penstock.views import trace as tracing
from penstock.views.chain import Trace
from tests.flow.research import Lab
from tests.flow.shop import Listing


class Newsroom:
    """A message starts a run, whose steps write and send, and which has a child."""

    def __init__(self) -> None:
        self.lab = lab = Lab()
        self.listings = lab.app.queue("listings", Listing)
        self.tries: list[str] = []

        async def gather(name: str) -> str:
            await asyncio.sleep(2)
            self.tries.append(name)
            if len(self.tries) == 1:
                raise ConnectionError("away, token=hunter2hunter2")
            return name

        async def spread(name: str) -> None:
            await asyncio.sleep(0.5)
            self.listings.send(Listing(name=f"sent by {name}"))

        @lab.app.workflow
        async def proof(run: ps.Run, name: str) -> None:
            await run.step("read", asyncio.sleep, 1)

        @lab.app.workflow
        async def article(run: ps.Run, name: str) -> None:
            await run.step("gather", gather, name)
            await run.sleep(minutes=10)
            await run.step("spread", spread, name)
            await run.child("proof", proof, name)
            await run.wait_for("approved")

        self.article = article

        @self.listings.handler(Listing)
        async def handle(listing: Listing) -> None:
            if not listing.name.startswith("sent by"):
                article[listing.name].start(listing.name)


async def traced(test: TestApp, id: str) -> Trace:
    engine = await test.app._opened()
    found = await tracing.trace(test.app.db, engine.history, from_text(id), now=to_micros(test.now))
    assert found is not None
    return found


def told(trace: Trace) -> list[tuple[int, str, str, str, int | None]]:
    return [
        (event.depth, event.kind, event.name, event.status, None if event.micros is None else event.micros // 1_000)
        for event in trace.events
    ]


@pytest.mark.spec("A7-09")
@virtual
async def test_the_trace_of_a_chain_has_its_runs_with_each_step_and_how_long_it_took() -> None:
    news = Newsroom()
    async with TestApp(news.lab.app) as test:
        first = await test.send(news.listings, Listing(name="shoes"))
        await test.advance(minutes=30)
        trace = await traced(test, first)

    assert told(trace) == [
        (0, "message", "listing", "acked", 0),
        (1, "run", "article", "waiting", None),
        (1, "message", "workflow.run", "later", 2_000),
        (1, "step", "gather", "done", 14_000),
        (1, "message", "workflow.run", "later", 2_000),
        (1, "sleep", "sleep-1", "done", 600_000),
        (1, "message", "workflow.run", "later", 500),
        (1, "step", "spread", "done", 500),
        (1, "child", "proof", "done", 1_000),
        (1, "message", "workflow.run", "later", 0),
        (1, "signal", "approved", "waiting", None),
        (1, "message", "workflow.run", "delayed", None),
        (2, "run", "proof", "complete", 1_000),
        (2, "message", "workflow.run", "acked", 1_000),
        (2, "step", "read", "done", 1_000),
        (2, "message", "listing", "acked", 0),
    ]
    assert len({event.id for event in trace.events}) == 4
    gather = trace.events[3]
    assert (gather.run, gather.attempt, gather.service, gather.queue) == ("shoes", 2, "lab", "workflow.article")
    assert trace.notes == []


@virtual
async def test_a_run_is_reported_by_its_id_also_where_the_history_knows_nothing() -> None:
    news = Newsroom()
    async with TestApp(news.lab.app) as test:
        await test.send(news.listings, Listing(name="shoes"))
        await test.advance(seconds=3)
        engine = await test.app._opened()
        now = to_micros(test.now)
        (retrying,) = await runs.find(test.app.db, "shoes", now=now)
        early = await tracing.trace_of_run(test.app.db, engine.history, retrying, now=now)
        await test.advance(minutes=30)
        async with test.unit():
            news.article["shoes"].signal("approved")
        await test.drain()
        await engine.history.ask(lambda file: file.prune(2**62, 1_000))
        (run,) = await runs.find(test.app.db, "shoes", now=to_micros(test.now))
        trace = await tracing.trace_of_run(test.app.db, engine.history, run, now=to_micros(test.now))

    assert told(early)[-2:] == [
        (1, "step", "gather", "retrying", None),
        (1, "message", "workflow.run", "delayed", None),
    ]
    assert early.events[-2].error == "ConnectionError: away, token=[redacted]"
    assert [(event.depth, event.kind, event.name, event.status) for event in trace.events] == [
        (0, "run", "article", "complete"),
        (0, "step", "gather", "done"),
        (0, "sleep", "sleep-1", "done"),
        (0, "step", "spread", "done"),
        (0, "child", "proof", "done"),
        (0, "signal", "approved", "done"),
        (1, "run", "proof", "complete"),
        (1, "step", "read", "done"),
    ]
    assert trace.facts()["events"][1]["run"] == "shoes"
