"""Histories from a fixed range of seeds break no law, and a seed always tells the same story."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.simulation.features import ACTS, planned
from tests.simulation.many import histories, report
from tests.simulation.mutants import SEEDS
from tests.simulation.simulator import Simulator


@pytest.mark.spec("A13-11")
@pytest.mark.fault("F01", "F03", "F06", "F09")
def test_no_history_breaks_a_law(note: Callable[[str], None]) -> None:
    began, messages = time.perf_counter(), 0
    for history in histories(SEEDS, jobs=2):
        messages += history.rows
        assert history.broken is None, report(history)

    seconds = time.perf_counter() - began
    note(f"simulator: {len(SEEDS)} histories, {messages:,} messages, {len(SEEDS) / seconds:.0f} histories a second")


@pytest.mark.spec("A13-12")
def test_a_seed_tells_the_same_story_every_time() -> None:
    seeds = [seed for seed in SEEDS if planned(seed).faults][:5]
    with Simulator() as first, Simulator() as second:
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
