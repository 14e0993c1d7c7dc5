"""Runs as an operator deals with them: states, pause, resume, terminate, restart, priorities, limits, retention."""

from __future__ import annotations

import asyncio

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.flow.research import Lab
from tests.flow.shop import Busy


class Doors:
    """Steps that wait until somebody opens their door."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._doors: dict[str, asyncio.Event] = {}

    def open(self, name: str) -> None:
        self._doors.setdefault(name, asyncio.Event()).set()

    async def go(self, name: str) -> None:
        await self._doors.setdefault(name, asyncio.Event()).wait()
        await self._lab.write(name)


def walking(lab: Lab, doors: Doors, *names: str) -> ps.Workflow[[], None]:
    @lab.app.workflow
    async def walk(run: ps.Run) -> None:
        for name in names:
            await run.step(name, doors.go, name)

    return walk


@pytest.mark.spec("A7-08")
@virtual
async def test_a_run_that_is_paused_finishes_its_step_and_stops_before_the_next() -> None:
    lab = Lab()
    doors = Doors(lab)
    walk = walking(lab, doors, "a", "b", "c")
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk.start()
        await test.advance(seconds=1)
        assert (await handle.status()).state == "running"
        await handle.pause()
        doors.open("a")
        doors.open("b")
        await test.advance(hours=1)
        status = await handle.status()
        assert (status.state, status.reason) == ("paused", "asked")
        assert [(step.name, step.state) for step in status.steps] == [("a", "done")]
        await test.restart()
        await test.advance(hours=1)
        assert lab.did == ["a"]
        with pytest.raises(ps.PenstockError, match="is paused and was not paused"):
            await handle.pause()
        await handle.resume()
        doors.open("c")
        await test.drain()
        assert (await handle.status()).state == "complete"
        assert lab.did == ["a", "b", "c"]


@pytest.mark.spec("A7-08")
@virtual
async def test_a_pause_that_is_over_before_the_step_is_changes_nothing() -> None:
    lab = Lab()
    doors = Doors(lab)
    walk = walking(lab, doors, "a", "b")
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk.start()
        await test.advance(seconds=1)
        await handle.pause()
        await handle.resume()
        doors.open("a")
        doors.open("b")
        await test.drain()
        assert (await handle.status()).state == "complete"


@pytest.mark.spec("A7-08")
@virtual
async def test_a_run_that_waits_can_be_paused_and_hears_its_signal_when_it_goes_on() -> None:
    lab = Lab()

    @lab.app.workflow
    async def listen(run: ps.Run) -> str:
        return await run.wait_for("word", str, timeout=3_600)

    async with TestApp(lab.app) as test:
        async with test.unit():
            sleeping, queued = listen.start(), listen.start()
        await queued.pause()  # before it ever began
        await test.advance(seconds=1)
        waits_until = (await sleeping.status()).due_at
        assert waits_until is not None
        assert 3_590 < (waits_until - test.now).total_seconds() < 3_600
        await sleeping.pause()
        assert [(await each.status()).due_at for each in (sleeping, queued)] == [None, None]
        async with test.unit():
            sleeping.signal("word", "hello")
            queued.signal("word", "there")
        await test.advance(minutes=10)
        assert [(await each.status()).state for each in (sleeping, queued)] == ["paused", "paused"]
        await sleeping.resume()
        await queued.resume()
        await test.drain()
        assert [await sleeping.result(), await queued.result()] == ["hello", "there"]


@pytest.mark.spec("A7-08")
@virtual
async def test_a_run_that_is_terminated_saves_nothing_any_more() -> None:
    lab = Lab()
    doors = Doors(lab)
    walk = walking(lab, doors, "a", "b")
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk["w"].start()
        await test.advance(seconds=1)
        await handle.terminate()
        doors.open("a")
        await test.advance(minutes=1)
        assert (await handle.status()).state == "terminated"
        assert await lab.effects() == []
        assert (await handle.status()).steps == []
        with pytest.raises(ps.PenstockError, match="is terminated and was not terminated"):
            await handle.terminate()
        with pytest.raises(ps.StepFailed, match="was terminated: by an operator"):
            await handle.result()


@virtual
async def test_a_run_that_failed_names_the_class_of_its_error_to_a_caller_that_waits() -> None:
    lab = Lab()

    @lab.app.workflow
    async def fail(run: ps.Run) -> None:
        raise ps.Permanent("the shop: closed")

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = fail.start()
        await test.advance(seconds=1)

        with pytest.raises(ps.StepFailed, match="the shop: closed") as refused:
            await handle.result()
        assert refused.value.facts["error_class"] == "Permanent"


@pytest.mark.parametrize("step", ["word", "rest", "first"])
@virtual
async def test_a_run_is_restarted_from_any_step_that_is_listed_also_a_wait_or_a_sleep(step: str) -> None:
    lab = Lab()

    @lab.app.workflow
    async def approval(run: ps.Run) -> str:
        await run.step("first", lab.write, "first")
        await run.sleep(seconds=60, name="rest")
        return str(await run.wait_for("word", str))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
            handle.signal("word", "no")
        await test.advance(minutes=2)
        assert await handle.result() == "no"
        assert step in [each.name for each in (await handle.status()).steps]
        await handle.restart(step=step)
        await test.advance(minutes=2)
        assert await handle.waits_for() == ["word"]
        async with test.unit():
            handle.signal("word", "yes")
        await test.advance(minutes=1)
        assert await handle.result() == "yes"


@pytest.mark.spec("A7-05", "A7-08")
@virtual
async def test_a_run_is_restarted_from_the_beginning_or_from_a_step_with_keys_of_its_own() -> None:
    lab = Lab()
    keys: list[str] = []

    async def keyed(what: str) -> None:
        keys.append(ps.step().key)
        await lab.write(what)

    @lab.app.workflow
    async def walk(run: ps.Run) -> None:
        for name in "abc":
            await run.step(name, keyed, name)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk["w"].start()
        await test.drain()
        await handle.restart()
        await test.drain()
        await handle.restart(step="c")
        await test.drain()
        assert (await handle.status()).state == "complete"
        assert lab.did == ["a", "b", "c", "a", "b", "c", "c"]
        assert keys == ["walk/w/a", "walk/w/b", "walk/w/c", "walk/w/a#1", "walk/w/b#1", "walk/w/c#1", "walk/w/c#2"]
        with pytest.raises(ps.PenstockError, match=r"has no step 'z'. It has: a, b, c"):
            await handle.restart(step="z")


@pytest.mark.spec("A7-08")
@virtual
async def test_a_run_that_failed_goes_on_where_it_failed_when_it_is_restarted_from_there() -> None:
    lab = Lab()
    broken = True

    async def fragile() -> str:
        if broken:
            raise ps.Refused("no")
        return await lab.write("b")

    @lab.app.workflow
    async def walk(run: ps.Run) -> str:
        await run.step("a", lab.write, "a")
        return await run.step("b", fragile)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk.start()
        await test.drain()
        assert (await handle.status()).state == "errored"
        broken = False
        await handle.restart(step="b")
        await test.drain()
        assert await handle.result() == "b"
        assert lab.did == ["a", "b"]


@virtual
async def test_a_restart_of_a_running_run_takes_it_from_its_worker() -> None:
    lab = Lab()
    doors = Doors(lab)
    walk = walking(lab, doors, "a")
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk.start()
        await test.advance(seconds=1)
        await handle.restart()
        doors.open("a")
        await test.drain()
        assert (await handle.status()).state == "complete"
        assert await lab.effects() == ["a"]


@virtual
async def test_no_more_runs_are_at_work_than_the_workflow_allows_and_those_of_high_priority_come_first() -> None:
    lab = Lab()
    busy = Busy()

    @lab.app.workflow(parallel=3)
    async def work(run: ps.Run, name: str) -> None:
        await run.step("work", busy.work, name, 10.0)
        await run.step("note", lab.write, name)

    async with TestApp(lab.app) as test:
        async with test.unit():
            for number in range(9):
                work.get(f"low {number}", priority=2).start(f"low {number}")
            work.get("high", priority=0).start("high")
        await test.advance(minutes=2)
        assert busy.most == 3
        assert "high" in lab.did[:3]
        assert len(lab.did) == 10


@pytest.mark.spec("A7-08")
@virtual
async def test_every_state_is_seen_in_the_list() -> None:
    lab = Lab()
    doors = Doors(lab)

    async def refuse() -> None:
        raise ps.Refused("no")

    @lab.app.workflow(parallel=1)
    async def slow(run: ps.Run) -> None:
        await run.step("go", doors.go, "go")

    @lab.app.workflow
    async def ends(run: ps.Run, how: str) -> None:
        if how == "errored":
            await run.step("refuse", refuse)
        if how in ("waiting", "paused", "terminated"):
            await run.wait_for("nothing")

    async with TestApp(lab.app) as test:
        async with test.unit():
            for how in ("errored", "waiting", "paused", "terminated", "complete"):
                ends[how].start(how)
            slow["running"].start()
        await test.advance(seconds=1)
        async with test.unit():
            slow["queued"].start()
        await ends["paused"].pause()
        await ends["terminated"].terminate()
        await test.advance(seconds=1)
        runs = await lab.app.workflows.list()
        assert {run.id: run.state for run in runs} == {run.id: run.id for run in runs}
        assert len(runs) == 7
        assert [run.id for run in await lab.app.workflows.list("ends", state="waiting")] == ["waiting"]
        with pytest.raises(ps.PenstockError, match="There is no state 'asleep'"):
            await lab.app.workflows.list(state="asleep")
        with pytest.raises(ps.PenstockError, match="There is no run 'nobody'"):
            await lab.app.workflows.find("nobody")
        assert (await lab.app.workflows.find("queued")).id == "queued"


@virtual
async def test_a_run_that_kills_its_worker_again_and_again_ends_as_errored() -> None:
    lab = Lab()

    @lab.app.workflow
    async def deadly(run: ps.Run) -> None:
        async def die() -> None:
            test.die()

        await run.step("die", die)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = deadly.start()
        await test.advance(minutes=5)
        status = await handle.status()
        assert status.state == "errored"
        assert (status.error or "").startswith("WorkerDied")
        assert test.workers_started == 4


@virtual
async def test_a_step_past_the_wall_limit_of_its_slice_is_cancelled_and_the_run_ends_as_errored() -> None:
    lab = Lab()

    async def endless() -> None:
        lab.did.append("endless")
        await asyncio.sleep(10_000)

    @lab.app.workflow(timeout=60)
    async def walk(run: ps.Run) -> None:
        await run.step("endless", endless)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = walk.start()
        await test.advance(hours=1)
        status = await handle.status()
        assert (status.state, len(lab.did)) == ("errored", 4)
        assert "HandlerTimeout" in (status.error or "")


@virtual
async def test_ended_runs_are_kept_for_as_long_as_their_workflow_says() -> None:
    lab = Lab()

    @lab.app.workflow(keep_days=2)
    async def short(run: ps.Run) -> None:
        await run.step("a", lab.write, "a")

    @lab.app.workflow
    async def long(run: ps.Run) -> None:
        await run.step("a", lab.write, "a")
        await run.sleep(days=100)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = short["s"].start()
            long["l"].start()
        await test.advance(days=1, hours=23)
        assert (await handle.status()).state == "complete"
        await test.advance(hours=3)
        assert [run.id for run in await lab.app.workflows.list()] == ["l"]
        assert await lab.app.db.value("select count(*) from penstock_steps") == 2
        async with test.unit():
            handle = short["s"].start()  # its id is free again
        await test.drain()
        assert (await handle.status()).state == "complete"


@virtual
async def test_unclaimed_signals_are_deleted_with_their_run() -> None:
    lab = Lab()

    @lab.app.workflow(keep_days=1)
    async def deaf(run: ps.Run) -> None:
        await run.sleep(hours=1)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = deaf.start()
            handle.signal("word", 1)
        await test.advance(days=1, hours=3)
        assert await lab.app.workflows.list() == []
        assert await lab.app.db.value("select count(*) from penstock_signals") == 0


@virtual
async def test_a_restart_from_a_step_leaves_a_child_that_was_begun_before_it_alone() -> None:
    lab = Lab()

    @lab.app.workflow
    async def kid(run: ps.Run, name: str) -> str:
        await run.sleep(hours=1)
        return await run.step("write", lab.write, name)

    @lab.app.workflow
    async def parent(run: ps.Run) -> list[str]:
        async def late() -> str:
            await run.step("first", lab.write, "first")
            return str(await run.child("late", kid, "late"))

        return list(await asyncio.gather(run.child("early", kid, "early"), late()))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = parent["p"].start()
        await test.advance(minutes=1)
        await handle.restart(step="first")
        await test.advance(hours=2)
        assert await handle.result() == ["early", "late"]
        assert {run.id: run.state for run in await lab.app.workflows.list("kid")} == {
            "p/early": "complete",
            "p/late": "terminated",
            "p/late#1": "complete",
        }
