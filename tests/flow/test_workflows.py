"""Workflows: each step is done once and saved with what it wrote; its run goes on from there whatever happens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.flow.research import Lab
from tests.flow.shop import EFFECT, Listing


@dataclass
class Facts:
    cluster: int
    names: list[str]


@pytest.mark.spec("A7-01", "A7-02", "A7-08")
@virtual
async def test_a_run_goes_through_its_steps_and_ends_with_its_result() -> None:
    lab = Lab()

    async def gather(cluster: int) -> Facts:
        return Facts(cluster, ["a", "b"])

    @lab.app.workflow
    async def research(run: ps.Run, cluster: int, *, loud: bool = False) -> str:
        facts = await run.step("gather", gather, cluster)
        assert isinstance(facts, Facts)
        said = await run.step("write", lab.write, f"{facts.cluster}: {', '.join(facts.names)}")
        return said.upper() if loud else said

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start(7, loud=True)
        assert (await handle.status()).state == "queued"
        await test.drain()
        assert await handle.result() == "7: A, B"
        status = await handle.status()
        assert (status.state, status.result, status.input) == ("complete", "7: A, B", {"cluster": 7, "loud": True})
        assert [(step.name, step.state, step.attempts) for step in status.steps] == [
            ("gather", "done", 1),
            ("write", "done", 1),
        ]
        assert status.steps[0].result == {"cluster": 7, "names": ["a", "b"]}
        assert await lab.effects() == ["7: a, b"]


@pytest.mark.spec("A7-02", "A7-03")
@pytest.mark.parametrize("point", ["step.before", "step.after", "step.saved", "commit.before", "commit.after"])
@virtual
async def test_a_run_whose_worker_dies_goes_on_at_the_first_step_that_was_not_saved(point: str) -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> list[str]:
        return [await run.step(f"step-{number}", lab.write, f"effect {number}") for number in range(4)]

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.crash(at=point, nth=3)
        await test.drain()
        assert await handle.result() == [f"effect {number}" for number in range(4)]
        assert await lab.effects() == [f"effect {number}" for number in range(4)]
        assert test.workers_started == 2
        assert len(lab.did) <= 5  # at most the step that was under way is done again


@pytest.mark.spec("A7-03", "A7-07")
@virtual
async def test_a_sleep_of_an_hour_is_slept_over_a_restart() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("before", lab.write, "before")
        await run.sleep(hours=1)
        await run.step("after", lab.write, "after")

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(minutes=30)
        status = await handle.status()
        assert status.state == "waiting"
        assert status.due_at == status.created_at + timedelta(hours=1)
        await test.restart()
        await test.advance(minutes=29, seconds=59)
        assert await lab.effects() == ["before"]
        await test.advance(seconds=1)
        assert await lab.effects() == ["after", "before"]
        assert lab.did == ["before", "after"]


@pytest.mark.spec("A7-07")
@virtual
async def test_seconds_a_timedelta_and_units_are_the_same_wait() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.sleep(3_600)
        await run.sleep(timedelta(minutes=60))
        await run.sleep(60, minutes=59)
        await run.step("slept", lab.write, "slept")
        with pytest.raises(ps.TimedOut):
            await run.wait_for("word", timeout=timedelta(hours=1))
        await run.step("waited", lab.write, "waited", timeout=timedelta(seconds=5))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(timedelta(hours=2, minutes=59, seconds=59))
        assert await lab.effects() == []
        await test.advance(1)
        assert await lab.effects() == ["slept"]
        await test.advance(hours=1)
        await handle.result(timeout=timedelta(seconds=1))
        assert await lab.effects() == ["slept", "waited"]


@virtual
async def test_a_run_sleeps_for_a_month_and_until_a_moment() -> None:
    lab = Lab()
    moment = datetime(2026, 2, 3, tzinfo=UTC)

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.sleep(days=30)
        await run.step("month", lab.write, "month")
        await run.sleep_until(moment)
        await run.step("february", lab.write, "february")
        await run.sleep_until(moment - timedelta(days=1))
        await run.step("past", lab.write, "past")

    async with TestApp(lab.app, start=datetime(2026, 1, 1, tzinfo=UTC)) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(days=29, hours=23, minutes=59)
        assert await lab.effects() == []
        await test.advance(minutes=1)
        assert await lab.effects() == ["month"]
        await test.advance(days=2, hours=23)
        assert await lab.effects() == ["month"]
        await test.advance(hours=1)
        assert await lab.effects() == ["february", "month", "past"]
        assert (await handle.status()).state == "complete"


@pytest.mark.spec("A7-04")
@virtual
async def test_a_step_that_fails_twice_and_then_passes_is_tried_three_times_and_written_once() -> None:
    lab = Lab()
    seen: list[tuple[int, str]] = []

    async def flaky() -> str:
        seen.append((ps.step().attempt, ps.step().key))
        lab.app.db.write(EFFECT, what=f"attempt {ps.step().attempt}")
        if len(seen) < 3:
            raise ConnectionError("not yet")
        return "ok"

    @lab.app.workflow
    async def research(run: ps.Run) -> str:
        return await run.step("flaky", flaky)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research["one"].start()
        await test.advance(seconds=9)
        assert (await handle.status()).steps[0][2:4] == ("retrying", 1)
        assert "not yet" in ((await handle.status()).steps[0].error or "")
        await test.advance(seconds=1)
        await test.advance(seconds=19)
        assert [attempt for attempt, _ in seen] == [1, 2]
        await test.advance(seconds=1)
        assert await handle.result() == "ok"
        assert (await handle.status()).steps[0].attempts == 3
        assert {key for _, key in seen} == {"research/one/flaky"}
        assert await lab.effects() == ["attempt 3"]


@pytest.mark.spec("A7-04")
@virtual
async def test_a_step_without_a_rule_of_its_own_is_retried_five_times_with_doubling_waits_from_ten_seconds() -> None:
    lab = Lab()
    tried: list[float] = []

    async def broken() -> None:
        tried.append(test.now.timestamp())
        raise ConnectionError("always")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("broken", broken)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(hours=1)
        assert (await handle.status()).state == "errored"
        assert [round(later - before) for before, later in pairwise(tried)] == [10, 20, 40, 80, 160]


@pytest.mark.spec("A7-04")
@virtual
async def test_a_permanent_error_or_the_last_failure_is_raised_in_the_workflow_which_may_catch_it() -> None:
    lab = Lab()

    async def refused() -> None:
        lab.did.append("refused")
        raise ps.Refused("no such cluster")

    async def broken() -> None:
        lab.did.append("broken")
        raise ValueError("always")

    @lab.app.workflow(retries=ps.Retry(2, 1.0, 1.0))
    async def research(run: ps.Run) -> str:
        try:
            await run.step("refused", refused)
        except ps.StepFailed as error:
            await run.step("note", lab.write, f"{error.name}, {error.error_class}: {error}")
        await run.step("broken", broken, retries=1)
        return "never"

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=60)
        status = await handle.status()
        assert status.state == "errored"
        assert status.error == "StepFailed: Step 'broken' failed: ValueError: always"
        assert lab.did == [
            "refused",
            "refused, Refused: Step 'refused' failed: Refused: no such cluster",
            "broken",
            "broken",
        ]
        with pytest.raises(ps.StepFailed, match="errored: StepFailed"):
            await handle.result()


@pytest.mark.spec("A7-04")
@virtual
async def test_a_throttled_step_waits_as_the_service_asks_and_is_not_charged() -> None:
    lab = Lab()

    async def throttled() -> str:
        lab.did.append("asked")
        if len(lab.did) < 10:
            raise ps.Throttled("slow down", retry_after=60)
        return "there"

    @lab.app.workflow(retries=1)
    async def research(run: ps.Run) -> str:
        return await run.step("ask", throttled)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(minutes=9)
        assert await handle.result() == "there"
        assert (await handle.status()).steps[0].attempts == 1


@pytest.mark.spec("A7-06")
@virtual
async def test_a_second_start_under_one_id_gives_the_run_that_is_there_also_after_it_has_ended() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run, what: str) -> str:
        await run.sleep(minutes=1)
        return await run.step("write", lab.write, what)

    async with TestApp(lab.app) as test:
        async with test.unit():
            research["cluster 7"].start("first")
            research["cluster 7"].start("second of one unit")
        async with test.unit():
            research["cluster 7"].start("while it waits")
        await test.advance(minutes=1)
        async with test.unit():
            handle = research["cluster 7"].start("after its end")
            other = research["cluster 8"].start("another")
        await test.advance(minutes=2)
        assert (await handle.result(), await other.result()) == ("first", "another")
        assert await lab.effects() == ["another", "first"]
        assert len(await lab.app.workflows.list("research")) == 2


@pytest.mark.spec("A7-05", "A7-06")
@virtual
async def test_a_message_that_is_handled_again_starts_the_same_run() -> None:
    lab = Lab()
    listings: ps.Queue[Any] = lab.app.queue("listings")

    @lab.app.workflow
    async def research(run: ps.Run, name: str) -> None:
        await run.step("write", lab.write, name)

    @listings.handler(Listing)
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        research.start(listing.name)
        if message.attempt == 1:
            raise OSError("the run must not begin")

    async with TestApp(lab.app) as test:
        await test.send(listings, Listing(name="a"))
        await test.crash(at="commit.after", nth=4)
        await test.advance(minutes=1)
        assert await lab.effects() == ["a"]
        (run,) = await lab.app.workflows.list()
        assert run.correlation_id == (await lab.app.workflows["research"][run.id].status()).correlation_id


@pytest.mark.spec("A7-05")
@virtual
async def test_what_a_step_sends_and_starts_is_there_once() -> None:
    lab = Lab()
    listings: ps.Queue[Any] = lab.app.queue("listings")

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        lab.app.db.write(EFFECT, what=listing.name)

    @lab.app.workflow
    async def small(run: ps.Run, name: str) -> None:
        await run.step("write", lab.write, f"small {name}")

    async def spread(name: str) -> None:
        listings.send(Listing(name=name))
        small.start(name)

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("a", spread, "a")
        await run.step("b", spread, "b")

    async with TestApp(lab.app) as test:
        async with test.unit():
            research.start()
        await test.crash(at="step.after", nth=2)
        await test.drain()
        assert await lab.effects() == ["a", "b", "small a", "small b"]


@virtual
async def test_steps_beside_each_other_run_together_and_are_each_done_once() -> None:
    lab = Lab()
    at_once = [0, 0]

    async def slow(name: str) -> str:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(10)
        at_once[0] -= 1
        return await lab.write(name)

    @lab.app.workflow
    async def research(run: ps.Run) -> list[str]:
        async def branch(name: str) -> str:
            first = await run.step(f"{name}-1", slow, f"{name}1")
            return first + await run.step(f"{name}-2", slow, f"{name}2")

        return list(await asyncio.gather(*(branch(name) for name in "abc")))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.crash(at="step.saved", nth=4)
        await test.advance(seconds=60)
        assert await handle.result() == ["a1a2", "b1b2", "c1c2"]
        assert await lab.effects() == ["a1", "a2", "b1", "b2", "c1", "c2"]
        assert at_once[1] == 3


@virtual
async def test_a_branch_that_sleeps_does_not_hold_up_the_one_beside_it() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        async def sleepy() -> None:
            await run.sleep(hours=1)
            await run.step("late", lab.write, "late")

        async def busy() -> None:
            await run.step("early", lab.write, "early")
            await run.sleep(minutes=10, name="short")
            await run.step("middle", lab.write, "middle")

        async with asyncio.TaskGroup() as group:
            group.create_task(sleepy())
            group.create_task(busy())

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(minutes=1)
        assert lab.did == ["early"]
        await test.advance(minutes=10)
        assert lab.did == ["early", "middle"]
        await test.kill()
        await test.advance(minutes=50)
        assert lab.did == ["early", "middle", "late"]
        assert (await handle.status()).state == "complete"


@virtual
async def test_a_step_that_takes_too_long_is_cancelled_and_tried_again() -> None:
    lab = Lab()

    async def slow() -> str:
        lab.did.append("slow")
        await asyncio.sleep(60 if len(lab.did) == 1 else 1)
        return "done"

    @lab.app.workflow
    async def research(run: ps.Run) -> str:
        return await run.step("slow", slow, timeout=30)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=50)
        assert await handle.result() == "done"
        assert len(lab.did) == 2


@virtual
async def test_a_run_whose_steps_together_take_longer_than_a_slice_goes_on_in_another() -> None:
    lab = Lab()

    async def slow(number: int) -> None:
        await asyncio.sleep(40)
        await lab.write(str(number))

    @lab.app.workflow(timeout=120)
    async def research(run: ps.Run) -> None:
        for number in range(20):
            await run.step(f"step-{number}", slow, number)

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=20 * 40 + 20)
        assert (await handle.status()).state == "complete"
        assert lab.did == [str(number) for number in range(20)]


@virtual
async def test_a_run_knows_when_it_was_started_whenever_it_goes_on() -> None:
    lab = Lab()
    seen: list[datetime] = []

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        seen.append(run.started_at)
        await run.sleep(seconds=3_600)
        seen.append(run.started_at)

    async with TestApp(lab.app) as test:
        async with test.unit():
            research.start()
        await test.advance(hours=2)

    assert len(seen) == 3, "before the sleep twice, and after it"
    assert len(set(seen)) == 1
    assert seen[0].tzinfo is UTC
