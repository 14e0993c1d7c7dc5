"""Histories from a fixed range of seeds break no law, and a seed always tells the same story."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.extent import EVERYTHING
from tests.simulation.features import ACTS, planned
from tests.simulation.many import histories, report
from tests.simulation.mutants import SEEDS as ALL
from tests.simulation.runs import plan as runs
from tests.simulation.runs.shape import STEPS, WAITS, Do, nodes
from tests.simulation.simulator import Simulator
from tests.simulation.stage import Staging

SEEDS = ALL if EVERYTHING else ALL[:40]
RUNS_SEEDS = SEEDS[:15]


@pytest.mark.spec("A13-11")
@pytest.mark.fault("F01", "F03", "F06", "F09")
def test_no_history_breaks_a_law(note: Callable[[str], None]) -> None:
    began, messages = time.perf_counter(), 0
    for history in histories(SEEDS, jobs=2):
        messages += history.size
        assert history.broken is None, report(history)

    seconds = time.perf_counter() - began
    note(f"simulator: {len(SEEDS)} histories, {messages:,} messages, {len(SEEDS) / seconds:.0f} histories a second")


@pytest.mark.spec("A7-02", "A7-03", "A7-05", "A13-11")
@pytest.mark.fault("F32")
def test_no_history_of_workflows_breaks_a_law(note: Callable[[str], None]) -> None:
    began, size = time.perf_counter(), 0
    for history in histories(RUNS_SEEDS, jobs=2, world="runs"):
        size += history.size
        assert history.broken is None, report(history)

    seconds = time.perf_counter() - began
    note(f"simulator: {len(RUNS_SEEDS)} histories, {size:,} runs, {len(RUNS_SEEDS) / seconds:.0f} histories a second")


def test_no_run_is_operated_through_a_worker_that_has_stopped() -> None:
    """In this history a run is to be resumed by a worker that has stopped meanwhile: opened anew, no law would see it."""
    with Simulator("runs") as simulator:
        history = simulator.history(158)
    assert history.broken is None, report(history)


@pytest.mark.parametrize("world", ["messages", "runs"])
def test_a_seed_tells_the_same_story_every_time(world: str) -> None:
    plans: dict[str, Callable[[int], Staging]] = {"messages": planned, "runs": runs.planned}
    seeds = [seed for seed in SEEDS if plans[world](seed).faults][: 5 if EVERYTHING else 1]
    with Simulator(world) as first, Simulator(world) as second:
        for seed in seeds:
            one, other = first.history(seed), second.history(seed)
            assert one.lines == other.lines
            assert one.digest == other.digest


def test_histories_hold_every_kind_of_fault_and_of_behaviour() -> None:
    """A range of seeds that never pauses a worker past its lease, say, would prove little."""
    plans = [planned(seed) for seed in SEEDS]
    kinds = {fault.kind for each in plans for fault in each.faults}
    assert kinds == {"kill", "trap", "pause", "restart", "jump"}
    assert any(
        fault.seconds > each.queues[0].wall + 30 for each in plans for fault in each.faults if fault.kind == "pause"
    )
    assert any(fault.seconds < 0 for each in plans for fault in each.faults if fault.kind == "jump")
    assert {each.workers for each in plans} == {1, 2, 3, 4}
    assert any(each.peaceful for each in plans)
    assert any(each.rings_lost and each.workers > 1 for each in plans)
    assert {kind for each in plans for kind in each.behaviours} >= {"bad", "background", "poison", "overrun", "twice"}


def test_histories_hold_every_way_to_use_a_queue() -> None:
    plans = [planned(seed) for seed in SEEDS]
    queues = [queue for each in plans for queue in each.queues]
    assert {queue.batch for queue in queues} == {1, 2, 3, 4}
    assert {queue.handlers for queue in queues} == {1, 2}
    assert any(queue.pulled for queue in queues)
    assert any(queue.rate and queue.batch > 1 for queue in queues)
    assert any(queue.messages_max for queue in queues)
    assert any(queue.retention and queue.handlers > 1 for queue in queues)
    assert any(send.unique for each in plans for send in each.sends)
    assert {act.kind for each in plans for act in each.acts} == {*ACTS, "pull"}
    assert any(each.stalls and each.workers > 1 for each in plans)


def test_histories_of_workflows_hold_every_kind_of_fault_and_of_step() -> None:
    plans = [runs.planned(seed) for seed in RUNS_SEEDS]
    faults = [fault for each in plans for fault in each.faults]
    assert {fault.kind for fault in faults} == {"kill", "trap", "pause", "restart", "jump"}
    assert {fault.point for fault in faults} >= {"step.before", "step.after", "step.saved", "commit.after"}
    assert any(fault.seconds > each.lease for each in plans for fault in each.faults if fault.kind == "pause")
    assert {each.workers for each in plans} == {1, 2, 3, 4}
    assert any(each.tick_seconds is None for each in plans)
    assert {act.kind for each in plans for act in each.acts} == set(runs.ACTS)
    parts = [node for each in plans for flow in each.workflows for node in nodes(flow.shape)]
    assert {part.kind for part in parts if isinstance(part, Do)} == set(STEPS)
    assert {type(part).__name__.lower() for part in parts} == {"do", *WAITS}
    assert any(not part.caught for part in parts if isinstance(part, Do))
    assert any(start.spoilt for each in plans for start in each.starts)
