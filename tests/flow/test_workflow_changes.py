"""Changed code under a run that waits is noticed, shown and waited for; there are ways on. Misuse has a clear error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual
from tests.flow.research import Lab
from tests.flow.shop import EFFECT

Way = Callable[[ps.Run, Lab], Awaitable[object]]


async def first(run: ps.Run, lab: Lab) -> None:
    await run.step("a", lab.write, "a")
    await run.step("b", lab.write, "b")
    await run.sleep(hours=1)
    await run.step("c", lab.write, "c")


async def removed(run: ps.Run, lab: Lab) -> None:
    await run.step("a", lab.write, "a")
    await run.sleep(hours=1)
    await run.step("c", lab.write, "c")


async def reordered(run: ps.Run, lab: Lab) -> None:
    await run.step("b", lab.write, "b")
    await run.step("a", lab.write, "a")
    await run.sleep(hours=1)
    await run.step("c", lab.write, "c")


async def renamed(run: ps.Run, lab: Lab) -> None:
    await run.step("a", lab.write, "a")
    await run.step("better", lab.write, "better")
    await run.sleep(hours=1)
    await run.step("c", lab.write, "c")


async def added(run: ps.Run, lab: Lab) -> None:
    await run.step("a", lab.write, "a")
    await run.step("new", lab.write, "new")
    await run.step("b", lab.write, "b")
    await run.sleep(hours=1)
    await run.step("c", lab.write, "c")


async def shortened(run: ps.Run, lab: Lab) -> None:
    await run.step("a", lab.write, "a")


async def patched(run: ps.Run, lab: Lab) -> None:
    await run.step("a", lab.write, "a")
    if run.patched("better-b"):
        await run.step("better", lab.write, "better")
    else:
        await run.step("b", lab.write, "b")
    await run.sleep(hours=1)
    if run.patched("new-end"):
        await run.step("d", lab.write, "d")
    await run.step("c", lab.write, "c")


async def longer(run: ps.Run, lab: Lab) -> None:
    await first(run, lab)
    await run.step("e", lab.write, "e")


class Deploy:
    """A workflow whose code is changed while its runs wait."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.way: Way = first

        @self.lab.app.workflow
        async def research(run: ps.Run) -> None:
            await self.way(run, self.lab)

        self.research = research


@pytest.mark.fault("F33")
@pytest.mark.parametrize(
    "way, recorded, asked",
    [
        (removed, "b", "sleep-1"),
        (reordered, "a", "b"),
        (renamed, "b", "better"),
        (added, "b", "new"),
        (shortened, "b", "the end"),
    ],
)
@virtual
async def test_a_run_whose_code_has_changed_is_parked_with_the_difference_and_goes_on_after_a_roll_back(
    way: Way, recorded: str, asked: str
) -> None:
    deploy = Deploy()
    async with TestApp(deploy.lab.app) as test:
        async with test.unit():
            old = deploy.research["old"].start()
        await test.advance(minutes=30)
        deploy.way = way
        async with test.unit():
            new = deploy.research["new"].start()
        await test.advance(hours=2)
        status = await old.status()
        assert (status.state, status.reason) == ("paused", "nondeterminism")
        assert f"- {recorded}  (recorded)\n+ {asked}  (what the code does now)" in (status.error or "")
        assert (await new.status()).state == "complete"  # others run
        assert [what for what in deploy.lab.did if what in "ab"][:2] == ["a", "b"]
        deploy.way = first
        await old.resume()
        await test.drain()
        status = await old.status()
        assert (status.state, status.error) == ("complete", None)
        assert [step.name for step in status.steps] == ["a", "b", "sleep-1", "c"]


@pytest.mark.fault("F33")
@virtual
async def test_a_patch_marker_leads_old_runs_the_old_way_and_new_ones_the_new() -> None:
    deploy = Deploy()
    async with TestApp(deploy.lab.app) as test:
        async with test.unit():
            old = deploy.research["old"].start()
        await test.advance(minutes=30)
        deploy.way = patched
        async with test.unit():
            new = deploy.research["new"].start()
        await test.crash(at="step.after", nth=2)
        await test.advance(hours=2)
        assert [step.name for step in (await old.status()).steps if step.kind != "patch"] == [
            *("a", "b", "sleep-1", "d", "c"),
        ]
        assert [step.name for step in (await new.status()).steps if step.kind != "patch"] == [
            *("a", "better", "sleep-1", "d", "c"),
        ]
        assert (await old.status()).state == (await new.status()).state == "complete"


@virtual
async def test_steps_that_were_added_behind_everything_recorded_are_simply_done() -> None:
    deploy = Deploy()
    async with TestApp(deploy.lab.app) as test:
        async with test.unit():
            old = deploy.research.start()
        await test.advance(minutes=30)
        deploy.way = longer
        await test.advance(hours=1)
        assert [step.name for step in (await old.status()).steps] == ["a", "b", "sleep-1", "c", "e"]


@virtual
async def test_a_run_that_was_parked_can_be_restarted_from_a_step() -> None:
    deploy = Deploy()
    async with TestApp(deploy.lab.app) as test:
        async with test.unit():
            old = deploy.research.start()
        await test.advance(minutes=30)
        deploy.way = renamed
        await test.advance(hours=1)
        assert (await old.status()).state == "paused"
        await old.restart(step="b")
        await test.advance(hours=2)
        assert (await old.status()).state == "complete"
        assert deploy.lab.did == ["a", "b", "better", "c"]  # what was done before that step stays done


@virtual
async def test_a_parallel_run_that_is_replayed_in_another_order_of_ends_is_no_difference() -> None:
    lab = Lab()
    slow_first = True

    async def work(name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return await lab.write(name)

    @lab.app.workflow
    async def research(run: ps.Run) -> list[str]:
        async def branch(name: str, seconds: float) -> str:
            await run.step(f"{name}1", work, f"{name}1", seconds)
            await run.step(f"{name}2", work, f"{name}2", 1)
            await run.sleep(minutes=1, name=f"{name}-sleep")
            return await run.step(f"{name}3", work, f"{name}3", 1)

        return list(await asyncio.gather(branch("a", 9 if slow_first else 1), branch("b", 2), branch("c", 4)))

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=30)
        slow_first = False
        await test.restart()
        await test.advance(minutes=3)
        assert await handle.result() == ["a3", "b3", "c3"]
        assert sorted(lab.did) == sorted(f"{name}{number}" for name in "abc" for number in (1, 2, 3))


# -- misuse ---------------------------------------------------------------------------------------------------------


async def errored(lab: Lab, workflow: ps.Workflow[[], object], *, seconds: float = 1) -> str:
    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = workflow.start()
        await test.advance(seconds=seconds)
        status = await handle.status()
        assert status.state == "errored"
        return status.error or ""


@pytest.mark.spec("A7-10")
@virtual
async def test_two_steps_of_one_name_are_an_error_that_says_what_to_do() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        for _ in range(2):
            await run.step("page", lab.write, "page")

    error = await errored(lab, research)
    assert "two steps called 'page'" in error
    assert 'f"page-{number}"' in error


@virtual
async def test_a_write_or_a_send_between_steps_is_refused() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("a", lab.write, "a")
        lab.app.db.write(EFFECT, what="between")

    assert "Between the steps of a workflow nothing is saved" in await errored(lab, research)


@virtual
async def test_a_unit_between_steps_is_refused() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        async with lab.app.unit():
            lab.app.db.write(EFFECT, what="between")

    assert "Between the steps of a workflow nothing is saved" in await errored(lab, research)


@virtual
async def test_a_result_that_cannot_be_stored_fails_its_step_at_once() -> None:
    lab = Lab()

    async def odd() -> object:
        lab.did.append("odd")
        return object()

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("odd", odd)

    assert "Step 'odd' returned a result that cannot be stored" in await errored(lab, research)
    assert lab.did == ["odd"]


@virtual
async def test_a_step_inside_a_step_and_a_step_outside_a_run_are_refused() -> None:
    lab = Lab()
    kept: list[ps.Run] = []

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        async def outer() -> None:
            await run.step("inner", lab.write, "inner")

        kept.append(run)
        await run.step("outer", outer)

    assert "inside another step" in await errored(lab, research)
    with pytest.raises(ps.PenstockError, match="Use a run only inside its workflow"):
        await kept[0].step("late", lab.write, "late")
    with pytest.raises(ps.PenstockError, match="inside a step of a workflow, and there is none here"):
        ps.step()
    assert lab.did == []


@virtual
async def test_arguments_that_do_not_fit_are_refused_at_the_start() -> None:
    lab = Lab()

    @lab.app.workflow
    async def research(run: ps.Run, cluster: int) -> None: ...

    async with TestApp(lab.app) as test:
        starting: Any = research  # whoever runs no type checker
        for given, named in ((("seven",), {}), ((), {}), ((1,), {"loud": True})):
            with pytest.raises(ps.PenstockError, match="Workflow 'research' cannot be started with that"):
                async with test.unit():
                    starting.start(*given, **named)
        with pytest.raises(ps.NoUnit):
            research.start(1)
        with pytest.raises(ps.PenstockError, match="an id of the form that the engine generates"):
            async with test.unit():
                research["r" + "0" * 32].start(1)


def test_a_workflow_that_cannot_run_is_refused_where_it_is_written() -> None:
    app = ps.App("odd")
    with pytest.raises(ps.PenstockError, match="not async"):

        @app.workflow  # type: ignore[arg-type]
        def plain(run: ps.Run) -> None: ...

    with pytest.raises(ps.PenstockError, match="must take its run first"):

        @app.workflow  # type: ignore[arg-type]
        async def nothing() -> None: ...

    with pytest.raises(ps.PenstockError, match="stored by name"):

        @app.workflow
        async def many(run: ps.Run, *numbers: int) -> None: ...

    @app.workflow
    async def fine(run: ps.Run) -> None: ...

    with pytest.raises(ps.PenstockError, match="two workflows called 'fine'"):

        @app.workflow(name="fine")
        async def other(run: ps.Run) -> None: ...


def test_a_workflow_with_more_runs_at_once_than_the_profile_allows_is_refused() -> None:
    app = ps.App("odd")
    with pytest.raises(ps.PenstockError, match="parallel is 1,000,000; it can be"):

        @app.workflow(parallel=1_000_000)
        async def wide(run: ps.Run) -> None: ...


@virtual
async def test_a_run_whose_input_no_longer_fits_its_workflow_is_parked_with_the_reason(tmp_path: Path) -> None:
    def app_with(kind: type) -> tuple[ps.App, ps.Workflow[..., Any]]:
        app = ps.App("lab")

        async def research(run: ps.Run, topic: object) -> object:
            await run.sleep(hours=1)
            return topic

        research.__annotations__["topic"] = kind
        return app, app.workflow(research)

    app, old = app_with(str)
    async with TestApp(app, folder=tmp_path) as test:
        async with test.unit():
            old["r"].start(topic="lamps")
        await test.advance(minutes=30)
    app, new = app_with(int)
    async with TestApp(app, folder=tmp_path) as test:
        await test.advance(hours=2)

        status = await new["r"].status()
        assert (status.state, status.reason) == ("paused", "input")
        assert "Expected `int`, got `str`" in (status.error or "")


@virtual
async def test_what_a_step_left_running_can_write_nothing_once_the_step_has_ended() -> None:
    lab, late, refused = Lab(), list[asyncio.Task[None]](), list[type[Exception]]()

    async def write_later() -> None:
        await asyncio.sleep(60)
        try:
            lab.app.db.write(EFFECT, what="late")
        except Exception as error:
            refused.append(type(error))

    async def careless() -> None:
        late.append(asyncio.create_task(write_later()))

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        await run.step("careless", careless)
        await run.sleep(minutes=10)

    async with TestApp(lab.app) as test:
        async with test.unit():
            research.start()
        await test.advance(hours=1)

        assert refused == [ps.UnitClosed]
        assert await lab.effects() == []


@virtual
async def test_branches_that_a_workflow_leaves_behind_are_cancelled_with_it() -> None:
    lab, ended, left = Lab(), list[str](), list[asyncio.Task[None]]()

    async def endless() -> None:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        left.append(asyncio.create_task(run.step("endless", endless)))
        await run.step("quick", lab.write, "quick")
        raise ValueError("enough")

    async with TestApp(lab.app) as test:
        async with test.unit():
            handle = research.start()
        await test.advance(seconds=10)

        assert (await handle.status()).state == "errored"
        assert ended == ["cancelled"]
        assert await lab.effects() == ["quick"]
