"""Branches of a run beside each other, and what they note, over waits, refusals, restarts and deaths."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.flow.research import Lab


class Ping(ps.Event, type="branches.ping"):
    number: int


def slowly(lab: Lab, seconds: float) -> Callable[[str], Awaitable[str]]:
    async def write(what: str) -> str:
        await asyncio.sleep(seconds)
        return await lab.write(what)

    return write


def waiting_once(lab: Lab, seconds: float) -> Callable[[str], Awaitable[str]]:
    """A step that is told to wait at its first call."""
    called: set[str] = set()

    async def write(what: str) -> str:
        if what not in called:
            called.add(what)
            raise ps.Throttled(retry_after=seconds)
        return await lab.write(what)

    return write


@pytest.mark.parametrize("rounds", [1, 4, 30])
@virtual
async def test_a_branch_that_comes_a_long_way_through_what_is_recorded_goes_on_beside_one_that_waits(
    rounds: int,
) -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        async def long_way() -> None:
            for number in range(rounds):
                names = [f"{number}{side}" for side in "ab"]
                await asyncio.gather(*(run.step(name, lab.write, name) for name in names))
            await run.step("last", slowly(lab, 5.0), "last")

        await asyncio.gather(long_way(), run.wait_for("word"))

    async with TestApp(lab.app) as test:
        async with test.unit():
            research.start()
        await test.crash(at="step.after", nth=2 * rounds + 1)
        await test.advance(minutes=1)
        assert lab.did.count("last") == 2
        assert len(await lab.effects()) == 2 * rounds + 1


@virtual
async def test_two_branches_that_wait_for_one_signal_do_not_both_get_it() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> list[int]:
        first, second, _ = await asyncio.gather(
            run.wait_for("number", int, name="first"),
            run.wait_for("number", int, name="second"),
            run.step("slow", slowly(lab, 5.0), "slow"),
        )
        return [first, second]

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=0.5)
        async with test.unit():
            handle.signal("number", 1)
        await test.advance(seconds=10)
        assert (await handle.status()).state == "waiting"
        async with test.unit():
            handle.signal("number", 2)
        await test.drain()
        assert sorted(await handle.result()) == [1, 2]


@pytest.mark.parametrize("seconds", [0.0, 0.2])
@virtual
async def test_a_step_that_is_tried_again_within_its_slice_is_done_once(seconds: float) -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await asyncio.gather(
            run.step("busy", slowly(lab, 1.0), "busy"), run.step("told to wait", waiting_once(lab, seconds), "w")
        )
        await run.sleep(minutes=1)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(minutes=2)
        assert (await handle.status()).state == "complete"
        assert await lab.effects() == ["busy", "w"]


@pytest.mark.parametrize("turns", range(6))
@virtual
async def test_what_a_branch_noted_does_not_come_back_with_a_step_beside_it_that_was_refused(turns: int) -> None:
    """The note that a step is to be tried again goes with the refused one, and comes back when it has long been done."""
    lab = Lab()
    waiting = waiting_once(lab, 0.1)
    tries: list[int] = []

    async def refused() -> None:
        tries.append(1)
        if len(tries) == 1:
            await asyncio.sleep(0.1)
            for _ in range(turns):
                await asyncio.sleep(0)
            lab.app.db.write("insert into no_such_table (id) values (1)")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await asyncio.gather(
            run.step("refused", refused),
            run.step("told to wait", waiting, "w"),
            run.step("s", slowly(lab, 1.0), "s"),
        )
        await run.sleep(minutes=1)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(minutes=2)
        assert (await handle.status()).state == "complete"
        assert await lab.effects() == ["s", "w"]


@virtual
async def test_a_failure_in_a_task_group_ends_the_run_although_a_branch_beside_it_waits() -> None:
    lab = Lab()

    async def fail() -> None:
        await asyncio.sleep(0.4)
        raise ps.Refused("no")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.step("fail", fail))
            group.create_task(run.wait_for("nothing"))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=5)
        assert (await handle.status()).state == "errored"


@virtual
async def test_what_a_step_sends_after_a_restart_is_sent_although_what_it_sent_before_still_waits() -> None:
    lab = Lab()
    pings = lab.app.queue("pings", Ping)
    heard: list[int] = []

    @pings.handler
    async def on_ping(ping: Ping) -> None:
        heard.append(ping.number)

    async def send(number: int) -> None:
        pings.send(Ping(number=number), delay=60)

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("send", send, 1)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=1)
        await handle.restart()
        await test.advance(minutes=2)
        assert heard == [1, 1]


@virtual
async def test_a_child_from_before_a_restart_is_not_heard_for_the_one_that_took_its_place() -> None:
    lab = Lab()

    @lab.app.workflow
    async def child(run: ps.Run) -> str:
        return await run.wait_for("word", str)

    @lab.app.workflow
    async def parent(run: ps.Run) -> str:
        return await run.child("c", child)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = parent["p"].start()
        await test.drain()
        await handle.restart()
        await child["p/c"].restart()  # by somebody who does not know better
        await test.drain()
        async with test.unit():
            child["p/c"].signal("word", "old")
        await test.drain()
        assert (await handle.status()).state == "waiting"
        async with test.unit():
            child["p/c#1"].signal("word", "new")
        await test.drain()
        assert await handle.result() == "new"


@virtual
async def test_a_worker_that_stops_leaves_its_runs_at_their_next_step() -> None:
    lab = Lab()
    begun: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(3)
        await lab.write(f"{number:02}")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        for number in range(20):
            await run.step(f"{number}", work, number)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=7)
        await test.restart()
        assert len(await lab.effects()) == 3  # it did not go on for as long as it is given to stop
        await test.advance(minutes=2)
        assert (await handle.status()).state == "complete"
        assert begun == [*range(20)]  # none was cancelled and done again


@virtual
async def test_runs_that_were_with_a_dead_worker_do_not_wait_for_each_others_steps() -> None:
    """Each of them runs alone for a step, to see whether it is to blame. The others make room for that."""
    lab = Lab()

    @lab.app.workflow(parallel=8)
    async def research(run: ps.Run) -> None:
        for number in range(20):
            await run.step(f"{number}", slowly(lab, 1.0), f"{run.id} {number}")

    async with TestApp(lab.app) as test:
        async with test.unit():
            handles = [research[f"run-{number}"].start() for number in range(8)]
        await test.advance(seconds=3.5)
        await test.kill()
        await test.advance(seconds=45)
        assert [(await handle.status()).state for handle in handles] == ["complete"] * 8
        assert len(await lab.effects()) == 8 * 20


@virtual
async def test_the_news_that_a_run_has_died_does_not_end_it_once_it_was_restarted() -> None:
    lab = Lab()
    deadly = True

    async def die() -> None:
        if deadly:
            test.die()
        await lab.write("done")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("die", die)
        await run.sleep(minutes=10)

    async with TestApp(lab.app) as test:
        await (await lab.app.desk()).pause("workflow.research-dlq")
        async with test.unit():
            handle = research.start()
        await test.advance(minutes=1)
        deadly = False
        await handle.restart()
        await test.advance(minutes=1)
        await (await lab.app.desk()).resume("workflow.research-dlq")
        await test.advance(minutes=1)
        assert (await handle.status()).state == "waiting"
        await test.advance(minutes=10)
        assert (await handle.status()).state == "complete"
