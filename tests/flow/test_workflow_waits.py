"""Signals, time-outs and children of runs, in virtual time: none is lost, none is heard twice."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

import pytest

import penstock as ps
from penstock.model.errors import BadMessage
from penstock.testing import TestApp, virtual
from penstock.workflows.execution import SignalRefused
from tests.extent import sampled
from tests.flow.research import Lab


@dataclass
class Word:
    by: str
    approved: bool


def approving(lab: Lab, *, timeout: float | None = None) -> ps.Workflow[[], str]:
    @lab.app.workflow
    async def approval(run: ps.Run) -> str:
        await run.step("draft", lab.write, "draft")
        try:
            word = await run.wait_for("word", Word, timeout=timeout)
        except ps.TimedOut:
            return await run.step("late", lab.write, "late")
        return await run.step("publish", lab.write, f"{word.by}: {word.approved}")

    return approval


@pytest.mark.spec("A7-07", "A7-08")
@virtual
async def test_a_run_waits_for_a_signal_for_as_long_as_it_takes() -> None:
    lab = Lab()
    approval = approving(lab)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.advance(days=20)
        assert (await handle.status()).state == "waiting"
        await test.restart()
        async with test.unit():
            handle.signal("word", Word("Ada", approved=True))
        await test.drain()
        assert await handle.result() == "Ada: True"
        assert lab.did == ["draft", "Ada: True"]


@virtual
@pytest.mark.parametrize("timeout", [0, -60])
async def test_a_wait_without_time_ends_at_once(timeout: float) -> None:
    lab = Lab()
    approval = approving(lab, timeout=timeout)
    async with TestApp(lab.app) as test:
        async with test.unit():
            approval.start()
        await test.advance(seconds=0.9)
        assert lab.did == ["draft", "late"]


@virtual
async def test_a_signal_that_comes_before_the_wait_is_kept_for_it() -> None:
    lab = Lab()

    @lab.app.workflow
    async def approval(run: ps.Run) -> list[int]:
        await run.sleep(hours=1)
        first = await run.wait_for("number", int)
        second = await run.wait_for("number", int, name="second")
        return [first, second]

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval["one"].start()
            handle.signal("number", 1)  # in the very unit that starts it
        async with test.unit():
            handle.signal("number", 2)
        await test.advance(minutes=59)
        assert (await handle.status()).state == "waiting"
        await test.advance(minutes=1)
        assert await handle.result() == [1, 2]


@virtual
async def test_two_signals_at_once_are_both_heard_in_the_order_they_came() -> None:
    lab = Lab()

    @lab.app.workflow
    async def approval(run: ps.Run) -> list[str]:
        heard = [await run.wait_for("word", str, name=f"word-{number}") for number in range(4)]
        await run.step("write", lab.write, " ".join(heard))
        return heard

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.drain()
        async with test.unit():
            handle.signal("word", "a")
            handle.signal("word", "b")
        async with test.unit():
            handle.signal("word", "c")
        await test.drain()
        assert (await handle.status()).state == "waiting"
        async with test.unit():
            handle.signal("word", "d")
            handle.signal("word", "nobody waits for this one")
        await test.drain()
        assert await handle.result() == ["a", "b", "c", "d"]


@sampled("point", ["commit.before", "commit.after", "commit.known", "handler.after", "handler.before"], every=3)
@pytest.mark.parametrize("nth", [1, 2, 3])
@virtual
async def test_a_signal_is_heard_once_although_the_worker_dies_around_it(point: str, nth: int) -> None:
    lab = Lab()
    approval = approving(lab)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.drain()
        await test.crash(at=point, nth=nth)
        async with test.unit():
            handle.signal("word", Word("Ada", approved=True))
        await test.drain()
        assert await handle.result() == "Ada: True"
        assert await lab.effects() == ["Ada: True", "draft"]


@virtual
async def test_a_signal_whose_wake_up_was_lost_is_found_all_the_same() -> None:
    """The worker is paused between its claim and its wait; the signal falls in between, and rings for nobody."""
    lab = Lab()
    gate = asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    @lab.app.workflow
    async def approval(run: ps.Run) -> str:
        await run.step("slow", slow)
        return await run.wait_for("word", str)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.advance(seconds=1)
        async with test.unit():
            handle.signal("word", "said while it was busy")
        await test.advance(seconds=5)
        gate.set()
        await test.drain()
        assert await handle.result() == "said while it was busy"


@virtual
@pytest.mark.parametrize("timeout", [None, 3_600.0])
async def test_a_wait_beside_a_long_step_hears_its_signal_within_seconds(timeout: float | None) -> None:
    lab = Lab()
    gate = asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    @lab.app.workflow
    async def approval(run: ps.Run) -> None:
        async def answer() -> None:
            word = await run.wait_for("word", str, timeout=timeout)
            await run.step("answer", lab.write, word)

        await asyncio.gather(run.step("slow", slow), answer())

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.advance(seconds=10)
        async with test.unit():
            handle.signal("word", "heard")
        await test.advance(seconds=3)
        assert lab.did == ["heard"]
        assert not gate.is_set()
        gate.set()
        await test.drain()


@virtual
async def test_a_wait_that_times_out_says_so_and_a_late_signal_changes_nothing() -> None:
    lab = Lab()
    approval = approving(lab, timeout=3_600)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.advance(minutes=59, seconds=59)
        assert (await handle.status()).state == "waiting"
        await test.advance(seconds=1)
        assert await handle.result() == "late"
        async with test.unit():
            handle.signal("word", Word("Ada", approved=True))
        await test.drain()
        assert await lab.effects() == ["draft", "late"]
        assert (await handle.status()).steps[1][1:3] == ("signal", "timed_out")


@pytest.mark.parametrize("seconds", [-1e-6, 0.0, 1e-6])
@sampled("point", [None, "step.after", "commit.after", "commit.before"], every=3)
@virtual
async def test_a_time_out_that_races_a_signal_has_one_winner_that_stays(seconds: float, point: str | None) -> None:
    lab = Lab()
    approval = approving(lab, timeout=60)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.drain()
        if point is not None:
            await test.crash(at=point)
        await test.advance(seconds=60 + seconds)
        async with test.unit():
            handle.signal("word", Word("Ada", approved=True))
        await test.advance(seconds=60)
        result = await handle.result()
        assert result in ("late", "Ada: True")
        assert await lab.effects() == sorted(["draft", result])
        state = (await handle.status()).steps[1].state
        assert state == ("timed_out" if result == "late" else "done")


@virtual
async def test_a_signal_to_no_run_is_refused_and_takes_its_unit_with_it() -> None:
    lab = Lab()
    approval = approving(lab)
    async with TestApp(lab.app) as test:
        with pytest.raises(ps.PenstockError, match="exists for signal 'word'"):
            async with test.unit():
                approval["nobody"].signal("word")
                approval["somebody"].start()
        assert await lab.app.workflows.list() == []


@pytest.mark.spec("A7-06")
@virtual
async def test_a_signal_that_does_not_fit_is_refused_to_its_sender_and_the_run_waits_on() -> None:
    lab = Lab()
    approval = approving(lab)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
        await test.drain()
        assert await handle.waits_for() == ["word"]
        for payload, reason in [({"by": "Ada"}, "lacks the field 'approved'"), (17, "must be of type object")]:
            with pytest.raises(ps.PenstockError, match=reason):
                async with test.unit():
                    handle.signal("word", payload)
        await test.drain()
        assert (await handle.status()).state == "waiting"
        async with test.unit():
            handle.signal("word", Word("Ada", approved=True))
        await test.drain()
        assert (await handle.status()).state == "complete"


@virtual
async def test_a_signal_that_came_too_early_and_does_not_fit_is_reported_and_the_run_waits_on() -> None:
    lab = Lab()
    approval = approving(lab)
    refused: list[SignalRefused] = []
    lab.app.events.subscribe(refused.append, to=SignalRefused)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = approval.start()
            handle.signal("word", 17)
        await test.drain()
        assert (await handle.status()).state == "waiting"
        assert [(event.signal, event.error) for event in refused] == [("word", "Expected `object`, got `int`")]
        async with test.unit():
            handle.signal("word", Word("Ada", approved=True))
        await test.drain()
        assert (await handle.status()).state == "complete"


# -- children ------------------------------------------------------------------------------------------------------


def family(lab: Lab) -> tuple[ps.Workflow[[int], int], ps.Workflow[[list[int]], list[int]]]:
    async def double(number: int) -> int:
        if number < 0:
            raise ps.Refused("too small")
        await lab.write(f"child {number}")
        return number * 2

    @lab.app.workflow
    async def child(run: ps.Run, number: int) -> int:
        await run.sleep(minutes=1)
        return await run.step("double", double, number)

    @lab.app.workflow
    async def parent(run: ps.Run, numbers: list[int]) -> list[int]:
        got = [await run.child(f"child-{number}", child, number) for number in numbers]
        await run.step("sum", lab.write, f"sum {sum(got)}")
        return got

    return child, parent


@pytest.mark.parametrize("point", [None, "commit.after", "commit.before", "step.after"])
@virtual
async def test_a_parent_waits_for_its_children_and_gets_their_results_once(point: str | None) -> None:
    lab = Lab()
    _, parent = family(lab)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = parent["p"].start([1, 2, 3])
        await test.advance(seconds=30)
        if point is not None:
            await test.crash(at=point, nth=2)
        await test.advance(minutes=5)
        assert await handle.result() == [2, 4, 6]
        assert await lab.effects() == ["child 1", "child 2", "child 3", "sum 12"]
        runs = {run.id: run for run in await lab.app.workflows.list()}
        assert sorted(runs) == ["p", "p/child-1", "p/child-2", "p/child-3"]
        assert len({run.correlation_id for run in runs.values()}) == 1


@virtual
async def test_a_child_that_fails_raises_in_its_parent_which_may_go_on() -> None:
    lab = Lab()
    child, parent = family(lab)

    @lab.app.workflow
    async def careful(run: ps.Run) -> str:
        try:
            await run.child("bad", child, -1)
        except ps.ChildFailed as error:
            return await run.step("note", lab.write, f"{error.name}: {error.error_class}")
        return "never"

    async with TestApp(lab.app) as test:
        async with test.unit():
            cautious, careless = careful.start(), parent.start([-1])
        await test.advance(minutes=2)
        assert await cautious.result() == "bad: StepFailed"
        status = await careless.status()
        assert status.state == "errored"
        assert (status.error or "").startswith("ChildFailed: Child 'child--1' failed: StepFailed: Step 'double'")


@virtual
async def test_children_beside_each_other_run_together() -> None:
    lab = Lab()
    child, _ = family(lab)

    @lab.app.workflow
    async def parent_of_many(run: ps.Run) -> list[int]:
        return list(await asyncio.gather(*(run.child(f"c{number}", child, number) for number in range(10))))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = parent_of_many.start()
        await test.advance(seconds=70)
        assert await handle.result() == [number * 2 for number in range(10)]


@pytest.mark.spec("A7-08")
@virtual
async def test_a_parent_that_is_terminated_takes_its_children_with_it() -> None:
    lab = Lab()
    _, parent = family(lab)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = parent["p"].start([1, 2])
        await test.advance(seconds=10)
        await handle.terminate()
        await test.advance(minutes=10)
        assert {run.id: run.state for run in await lab.app.workflows.list()} == {
            "p": "terminated",
            "p/child-1": "terminated",
        }
        assert await lab.effects() == []


@virtual
async def test_a_child_that_is_terminated_fails_its_parent() -> None:
    lab = Lab()
    child, parent = family(lab)
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = parent["p"].start([1])
        await test.advance(seconds=10)
        await child["p/child-1"].terminate()
        await test.drain()
        assert (await handle.status()).error == "ChildFailed: Child 'child-1' was terminated"


@virtual
@pytest.mark.parametrize("seconds", [-1.0, 1_001 * 365.25 * 86_400])
async def test_a_sleep_that_is_negative_or_longer_than_a_thousand_years_is_refused(seconds: float) -> None:
    lab = Lab()

    @lab.app.workflow
    async def nap(run: ps.Run) -> str:
        try:
            await run.sleep(seconds)
        except BadMessage as refused:
            return str(refused)
        return "slept"

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = nap.start()
        await test.drain()
        assert (await handle.result()).startswith(
            f"A run cannot sleep for {seconds:,.0f} s: it can be 0 to 31,557,600,000"
        )


@virtual
async def test_a_sleep_until_a_moment_without_a_time_zone_is_refused() -> None:
    lab = Lab()

    @lab.app.workflow
    async def nap(run: ps.Run) -> str:
        try:
            await run.sleep_until(datetime(2030, 1, 1))  # noqa: DTZ001  (the mistake)
        except BadMessage as refused:
            return str(refused)
        return "slept"

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = nap.start()
        await test.drain()
        assert (await handle.result()).endswith("has no time zone. Use datetime(..., tzinfo=UTC).")


@virtual
async def test_a_result_is_waited_for_and_looked_for_twice_a_second_at_most() -> None:
    lab = Lab()

    @lab.app.workflow
    async def slow(run: ps.Run) -> int:
        await run.sleep(10)
        return 7

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = slow["one"].start()
        began = test.now
        waiting = asyncio.ensure_future(handle.result(timeout=60))
        await test.advance(seconds=9.9)
        assert not waiting.done()
        assert await waiting == 7
        assert 10 <= (test.now - began).total_seconds() <= 10.6
        with pytest.raises(TimeoutError):
            await slow["one"].result(timeout=0)
        with pytest.raises(ps.PenstockError, match="Workflow 'slow' has no run 'two'"):
            await slow["two"].result()
