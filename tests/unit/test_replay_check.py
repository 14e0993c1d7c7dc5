"""The replay check finds, before a deploy, that changed code does not fit a run that was recorded; and only then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.testing import Nondeterminism, TestApp, replay, virtual
from tests.unit.cli import Terminal

Way = Callable[[ps.Run, int], Awaitable[object]]


async def work(what: str, seconds: float = 0) -> dict[str, str]:
    await asyncio.sleep(seconds)
    return {"what": what}


async def refused() -> None:
    raise ps.Refused("no such cluster")


def research(way: Way, name: str = "research") -> ps.Workflow[[int], object]:
    """The workflow with other code in it."""
    app = ps.App("lab")

    @app.workflow
    async def twice(run: ps.Run, number: int) -> list[int]:
        if number < 0:
            raise ps.Refused("too small")
        return [number, number]

    children.append(twice)

    async def function(run: ps.Run, cluster: int) -> object:
        return await way(run, cluster)

    return app.workflow(name=name)(function)


children: list[ps.Workflow[[int], list[int]]] = []  # the last is that of the app whose code runs


def recorded(terminal: Terminal, way: Way, *, seconds: float = 60, signals: tuple[str, ...] = ()) -> str:
    """What `penstock workflows show --json` prints of a run that has got so far."""
    workflow = research(way)
    app: Any = workflow.home

    @virtual
    async def record() -> None:
        async with TestApp(app, folder=Path()) as test:
            async with test.unit():
                handle = workflow["7"].start(7)
                for signal in signals:
                    handle.signal(signal, "yes")
            await test.advance(seconds=seconds)

    Path("lab.db").unlink(missing_ok=True)
    record()
    said = terminal("workflows", "show", "7", "lab.db", "--json")
    assert said.code == 0, said
    return said.out


def check(way: Way, history: Any) -> None:
    virtual(lambda: replay(research(way), history))()


# -- one step after the other -----------------------------------------------------------------------------


async def first(run: ps.Run, cluster: int) -> object:
    found = await run.step("gather", work, f"cluster {cluster}")
    await run.step("write", work, found["what"])
    await run.sleep(hours=1)
    return await run.step("publish", work, "it")


async def removed(run: ps.Run, cluster: int) -> None:
    await run.step("gather", work, "it")
    await run.sleep(hours=1)


async def renamed(run: ps.Run, cluster: int) -> None:
    await run.step("gather", work, "it")
    await run.step("draft", work, "it")
    await run.sleep(hours=1)


async def reordered(run: ps.Run, cluster: int) -> None:
    await run.step("write", work, "it")
    await run.step("gather", work, "it")
    await run.sleep(hours=1)


async def added(run: ps.Run, cluster: int) -> None:
    await run.step("gather", work, "it")
    await run.step("translate", work, "it")
    await run.step("write", work, "it")
    await run.sleep(hours=1)


async def shortened(run: ps.Run, cluster: int) -> None:
    await run.step("gather", work, "it")


async def of_another_kind(run: ps.Run, cluster: int) -> None:
    await run.step("gather", work, "it")
    await run.sleep(hours=1, name="write")


@pytest.mark.fault("F33")
@pytest.mark.parametrize(
    "way, difference",
    [
        (removed, "  gather\n- write  (recorded)\n+ sleep-1  (what the code does now)\n- and 1 more recorded"),
        (renamed, "  gather\n- write  (recorded)\n+ draft  (what the code does now)"),
        (reordered, "- gather  (recorded)\n+ write  (what the code does now)"),
        (added, "  gather\n- write  (recorded)\n+ translate  (what the code does now)"),
        (shortened, "  gather\n- write  (recorded)\n+ the end  (what the code does now)"),
        (of_another_kind, "'write' was recorded as a step, and the code has a sleep of that name"),
    ],
)
def test_code_that_differs_in_what_was_recorded_fails_with_the_difference(
    terminal: Terminal, way: Way, difference: str
) -> None:
    history = recorded(terminal, first)

    with pytest.raises(Nondeterminism) as caught:
        check(way, history)

    assert difference in str(caught.value)


async def longer(run: ps.Run, cluster: int) -> None:
    await first(run, cluster)
    await run.step("tell", work, "everybody")


async def other_work(run: ps.Run, cluster: int) -> None:
    """What is done in a step that is recorded may be anything."""
    await run.step("gather", refused)
    await run.step("write", refused, retries=1, timeout=5)
    await run.sleep(days=7)
    await run.wait_for("approved")


async def patched(run: ps.Run, cluster: int) -> None:
    await run.step("gather", work, "it")
    if run.patched("translated"):
        await run.step("translate", work, "it")
    await run.step("write", work, "it")
    await run.sleep(hours=1)
    if run.patched("told"):
        await run.step("tell", work, "everybody")


@pytest.mark.fault("F33")
@pytest.mark.parametrize("way", [first, longer, other_work, patched])
@pytest.mark.parametrize("seconds", [60, 7_200])
def test_code_that_differs_behind_what_was_recorded_or_keeps_both_ways_passes(
    terminal: Terminal, way: Way, seconds: int
) -> None:
    history = recorded(terminal, first, seconds=seconds)
    if seconds > 3_600 and way in (other_work, patched):
        with pytest.raises(Nondeterminism, match="publish"):
            check(way, history)
    else:
        check(way, history)


def test_runs_that_have_taken_the_new_way_of_a_patch_stay_on_it(terminal: Terminal) -> None:
    history = recorded(terminal, patched)
    check(patched, history)
    with pytest.raises(Nondeterminism, match=r"- translate  .recorded"):
        check(first, history)


# -- side by side -----------------------------------------------------------------------------------------


def beside(*branches: list[str]) -> Way:
    """Branches beside each other; the first step of the first takes longest."""

    async def way(run: ps.Run, cluster: int) -> None:
        async def branch(names: list[str], seconds: float) -> None:
            for name in names:
                if name == "approved":
                    await run.wait_for(name)
                else:
                    await run.step(name, work, name, seconds)

        async with asyncio.TaskGroup() as group:
            for place, names in enumerate(branches):
                group.create_task(branch(names, 100 if place == 0 else 1))

    return way


@pytest.mark.parametrize(
    "way, difference",
    [
        (beside(["approved", "a"], ["b1", "b2"]), None),
        (beside(["approved", "a"], ["b1", "b2", "b3"]), None),
        (beside(["approved", "a"], ["b1", "other"]), "- b2  (recorded)\n+ other  (what the code does now)"),
        (beside(["approved", "a"], ["b1"]), "- b2  (recorded)\n+ the end  (what the code does now)"),
    ],
)
def test_a_branch_beside_one_that_waits_is_looked_at_to_its_end(
    terminal: Terminal, way: Way, difference: str | None
) -> None:
    history = recorded(terminal, beside(["approved", "a"], ["b1", "b2"]))
    if difference is None:
        check(way, history)
        return
    with pytest.raises(Nondeterminism) as caught:
        check(way, history)
    assert difference in str(caught.value)


def test_a_finished_run_with_branches_fits_its_own_code(terminal: Terminal) -> None:
    way = beside(["a1", "a2"], ["b1", "b2"], ["c1"])
    history = recorded(terminal, way, seconds=1_000)
    assert json.loads(history)["state"] == "complete"
    check(way, history)


# -- what was recorded is handed out ----------------------------------------------------------------------


async def eventful(run: ps.Run, cluster: int) -> str:
    said = await run.wait_for("approved", str)
    try:
        await run.wait_for("never", timeout=5)
    except ps.TimedOut:
        said += " late"
    try:
        await run.step("refused", refused)
    except ps.StepFailed as error:
        said += f" {error.error_class}"
    return str((await run.step(said, work, said))["what"])


async def with_children(run: ps.Run, cluster: int) -> object:
    found = await run.child("first", children[-1], cluster)
    try:
        await run.child("second", children[-1], -sum(found))
    except ps.ChildFailed as error:
        await run.step(f"{error.name} of {found}", work, "it")
    return await run.wait_for("approved")


def test_children_are_not_started_and_their_ends_are_those_that_were_recorded(terminal: Terminal) -> None:
    history = recorded(terminal, with_children)
    assert [step["name"] for step in json.loads(history)["steps"]] == [
        *("first", "second", "second of [7, 7]", "approved"),
    ]
    check(with_children, history)


def test_results_signals_time_outs_and_failures_are_those_of_the_run(terminal: Terminal) -> None:
    history = recorded(terminal, eventful, signals=("approved",))
    assert json.loads(history)["result"] == "yes late Refused"
    check(eventful, history)


def test_an_error_of_the_code_is_raised_unless_the_run_had_it(terminal: Terminal) -> None:
    async def reads_more(run: ps.Run, cluster: int) -> None:
        found = await run.step("gather", work, "it")
        await run.step("write", work, found["who"])

    async def fails(run: ps.Run, cluster: int) -> None:
        await run.step("gather", work, "it")
        await run.step("refused", refused)

    async def between(run: ps.Run, cluster: int) -> None:
        await run.step("gather", work, "it")
        ps.App("other").queue("found", Found).send(Found())

    with pytest.raises(Nondeterminism) as caught:
        check(reads_more, recorded(terminal, first))
    assert isinstance(caught.value.__cause__, KeyError)
    once = recorded(terminal, shortened)
    with pytest.raises(KeyError):
        check(reads_more, once)
    with pytest.raises(ps.NoUnit):
        check(between, once)
    check(fails, recorded(terminal, fails))


class Found(ps.Event):
    pass


# -- histories --------------------------------------------------------------------------------------------


def test_a_history_is_a_file_its_text_or_what_was_read_from_it(terminal: Terminal) -> None:
    text = recorded(terminal, first)
    Path("7.json").write_text(text)
    for history in (text, Path("7.json"), "7.json", json.loads(text)):
        check(first, history)
        with pytest.raises(Nondeterminism):
            check(renamed, history)


def test_what_is_no_history_or_that_of_another_workflow_is_refused(terminal: Terminal) -> None:
    text = recorded(terminal, first)
    for wrong in ("nowhere.json", "{", {"id": "7"}, Path()):
        with pytest.raises(ps.PenstockError, match="penstock workflows show ID --json"):
            check(first, wrong)
    with pytest.raises(
        ps.PenstockError, match="The history is of workflow 'research', and the code is that of 'other'"
    ):
        virtual(lambda: replay(research(first, "other"), text))()


def test_an_input_that_the_workflow_does_not_take_any_more_is_a_difference(terminal: Terminal) -> None:
    history = json.loads(recorded(terminal, first))
    with pytest.raises(Nondeterminism, match="no longer matches the workflow"):
        check(first, history | {"input": {"cluster_id": 7}})


def test_it_works_in_real_time(terminal: Terminal) -> None:
    history = recorded(terminal, beside(["approved", "a"], ["b1", "b2"]))
    asyncio.run(replay(research(beside(["approved", "a"], ["b1", "b2"])), history))
    with pytest.raises(Nondeterminism):
        asyncio.run(replay(research(renamed), history))
