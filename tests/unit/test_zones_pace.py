"""In the pilot's shape the zones make the same batches, chunks and pauses, item by item."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import pytest

from penstock.control.outcome import Outcome
from penstock.control.zones_state import Rules
from penstock.control.zones_tick import reset, start, stop
from penstock.control.zoning import Zones

NOON = 1_794_744_000.0


def drive(
    zones: Zones, seconds: float, *, outcome: Callable[[float], str] = lambda _: "ok", takes: float = 1.0
) -> list[float]:
    """Starts an item whenever it may, for so long. When each was started, from noon on."""
    now, end = NOON, NOON + seconds
    starts: list[float] = []
    under_way: list[tuple[float, int]] = []
    while now < end:
        decision = zones.next(now)
        if decision.start:
            starts.append(round(now - NOON, 3))
            heapq.heappush(under_way, (now + takes, zones.started(now)))
            assert len(under_way) <= decision.parallel
            continue
        if under_way and (decision.again_at is None or under_way[0][0] <= decision.again_at):
            now, ticket = heapq.heappop(under_way)
            zones.finished(now, ticket, outcome(now), latency=takes)
        elif decision.again_at is not None:
            assert decision.again_at > now
            now = decision.again_at
        else:
            break
    return starts


@pytest.mark.spec("A6-08")
def test_a_batch_starts_in_chunks_of_eight_with_a_pause_between() -> None:
    rules = Rules(batch_first=20)
    starts = drive(Zones(rules=rules, now=NOON), 4.0)
    assert starts == [0.0] * 8 + [1.2] * 8 + [2.4] * 4


def test_after_a_batch_comes_the_interval_it_learnt() -> None:
    starts = drive(Zones(now=NOON), 90)
    # Five good ones: 7 every 24 s, counted from the end of the batch.
    assert [starts.count(at) for at in sorted(set(starts))][:6] == [5, 7, 8, 1, 8, 4]
    assert sorted(set(starts))[:2] == [0.0, 25.0]


@pytest.mark.spec("A6-21")
def test_a_service_that_refuses_everything_is_asked_a_batch_and_then_left_alone_for_five_minutes() -> None:
    zones = Zones(now=NOON)
    starts = drive(zones, 700, outcome=lambda _: "throttled")
    assert starts == [0.0] * 5 + [301.0] * 2 + [602.0] * 2
    assert zones.state.total_failed == 9


def test_both_vocabularies_of_outcomes_are_understood() -> None:
    for word in (*Outcome, "rate_limit", "server_error", "timeout", "not_found", "parse_error", "unknown"):
        zones = Zones(now=NOON)
        drive(zones, 2, outcome=lambda _, word=word: str(word))  # type: ignore[misc]
        ended = zones.state.total_completed + zones.state.total_failed + zones.state.total_skipped
        assert ended == 5
    assert zones.state.in_flight == 0


@pytest.mark.spec("A6-28")
def test_with_nothing_to_start_it_waits_longer_each_time() -> None:
    zones, now = Zones(now=NOON), NOON
    waits = []
    for _ in range(5):
        assert zones.next(now).start
        zones.none_left(now)
        again_at = zones.next(now).again_at
        assert again_at is not None
        waits.append(again_at - now)
        now = again_at
    assert waits == [60, 120, 120, 120, 120]


def test_a_batch_ends_early_when_there_are_no_more_items() -> None:
    zones = Zones(now=NOON)
    assert zones.next(NOON).start
    ticket = zones.started(NOON)
    zones.none_left(NOON)
    assert zones.next(NOON) == zones.next(NOON + 5)
    assert zones.state.in_flight == 1
    zones.finished(NOON + 5, ticket, "ok")
    assert zones.next(NOON + 5).again_at == NOON + 35
    assert (zones.state.total_completed, zones.state.in_flight) == (1, 0)


def test_stopped_it_starts_nothing_until_it_is_started_again() -> None:
    zones = Zones(now=NOON)
    zones.apply(stop(zones.state))
    assert not zones.next(NOON).start
    assert zones.next(NOON + 9_999).again_at is None
    zones.apply(start(zones.state, zones.rules, now_ms=int(NOON * 1_000)))
    assert zones.next(NOON).again_at == NOON + 1
    assert zones.next(NOON + 1).start


@pytest.mark.spec("G5-17")
def test_a_reset_in_the_middle_of_a_batch_leaves_no_trace_of_it() -> None:
    zones = Zones(now=NOON)
    assert zones.next(NOON).start
    ticket = zones.started(NOON)
    zones.apply(reset(zones.state, zones.rules, now_ms=int(NOON * 1_000)))
    assert not zones.next(NOON).start
    zones.finished(NOON + 0.5, ticket, "ok")
    assert (zones.state.total_dispatched, zones.state.total_completed) == (0, 0)
    assert zones.next(NOON + 0.5).again_at == NOON + 1
    assert zones.next(NOON + 1).start
