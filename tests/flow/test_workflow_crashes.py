"""A run of twenty steps whose worker dies at every boundary of every step ends as if nothing had happened."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.extent import sampled
from tests.flow.research import Lab
from tests.flow.shop import EFFECT

STEPS = 20
POINTS = ("step.before", "step.after", "commit.begun", "commit.written", "commit.before", "commit.after")


class Ladder:
    """Each step writes into the database, and calls something outside that remembers the keys it was given."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.lab = Lab()
        self.outside: Counter[str] = Counter()

        async def climb(run_id: str, rung: int, below: int) -> int:
            self.outside[ps.step().key] += 1
            await asyncio.sleep(seconds)
            self.lab.app.db.write(EFFECT, what=f"{run_id} {rung:02}")
            return below + rung

        @self.lab.app.workflow
        async def ladder(run: ps.Run) -> int:
            reached = 0
            for rung in range(STEPS):
                reached = await run.step(f"rung-{rung}", climb, run.id, rung, reached)
            return reached

        self.ladder = ladder


@pytest.mark.spec("A7-02", "A7-03", "A7-05", "A13-11")
@pytest.mark.fault("F32")
@sampled("point", ["step.before", "step.after", "step.saved"], every=3)
@virtual
async def test_a_ladder_of_twenty_steps_is_climbed_once_whichever_boundary_its_worker_dies_at(point: str) -> None:
    ladder = Ladder()
    async with TestApp(ladder.lab.app) as test:
        async with test.unit():
            calm = ladder.ladder["calm"].start()
        await test.drain()
        as_it_should = await calm.status()
        for nth in range(1, STEPS + 1):
            async with test.unit():
                handle = ladder.ladder[f"{point} {nth}"].start()
            await test.crash(at=point, nth=nth)
            await test.drain()
            status = await handle.status()
            assert test.workers_started == nth + 1, f"{point} was not reached {nth} times"
            assert (status.state, status.result) == ("complete", sum(range(STEPS))), f"{point} {nth}"
            assert [step[:4] for step in status.steps] == [step[:4] for step in as_it_should.steps]
        effects = await ladder.lab.effects()
        assert len(effects) == len(set(effects)) == STEPS * (STEPS + 1)
        repeated = sum(count - 1 for count in ladder.outside.values())
        assert max(ladder.outside.values()) <= 2
        assert repeated == (STEPS if point == "step.after" else 0)


@pytest.mark.fault("F32")
@sampled("point", POINTS, every=3)
@virtual
async def test_a_ladder_is_climbed_once_although_each_worker_dies_at_its_next_commit(point: str) -> None:
    """Whatever number of commits a worker makes before it dies, what it saved stays and the rest is done again."""
    ladder = Ladder(seconds=1.0)
    async with TestApp(ladder.lab.app) as test:
        async with test.unit():
            handles = [ladder.ladder[f"run {number}"].start() for number in range(4)]
        for nth in range(1, 12):
            await test.crash(at=point, nth=nth)
            await test.advance(seconds=3)
        await test.drain()
        assert test.workers_started > 3
        for handle in handles:
            assert await handle.result() == sum(range(STEPS))
        effects = await ladder.lab.effects()
        assert len(effects) == len(set(effects)) == 4 * STEPS
