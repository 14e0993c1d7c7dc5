"""Where claims begin to look on PostgreSQL, as plain arithmetic. What it means for rows is in tests/contract."""

from __future__ import annotations

from penstock.model.message import PRIORITIES, PRIORITY_HIGH, PRIORITY_LOW, PRIORITY_NORMAL
from penstock.storage.postgres.floors import ENOUGH, EVERYTHING, Floors
from tests.contract.material import message

SECOND = 1_000_000
NOW = 1_790_000_000 * SECOND
LEASE_END = NOW + 60 * SECOND


def look(
    floors: Floors,
    *dues: int,
    now: int = NOW,
    priority: int = PRIORITY_NORMAL,
    dry: bool = False,
    seconds: float = 0.001,
    lease_end: int = LEASE_END,
) -> None:
    """One transaction with one claim."""
    floors.begin()
    everything = floors.of("orders", now) == EVERYTHING
    took = [(priority, due) for due in dues]
    floors.looked("orders", took, everything=everything, dry=dry, now=now, lease_end=lease_end, seconds=seconds)


def after_many(*, now: int = NOW, seconds: float = 0.001) -> Floors:
    floors = Floors()
    look(floors, *[now - 10 * SECOND] * ENOUGH, now=now, seconds=seconds)
    return floors


def test_a_queue_that_was_hardly_used_is_looked_at_whole() -> None:
    floors = Floors()
    look(floors, *[NOW] * (ENOUGH - 1))
    assert floors.of("orders", NOW) == EVERYTHING
    look(floors, NOW)
    assert floors.of("orders", NOW) == {PRIORITY_NORMAL: NOW - SECOND}
    assert floors.of("others", NOW) == EVERYTHING


def test_the_floor_is_a_second_below_the_newest_that_was_taken_and_never_sinks() -> None:
    floors = after_many()
    assert floors.of("orders", NOW) == {PRIORITY_NORMAL: NOW - 11 * SECOND}
    look(floors, NOW - 4 * SECOND, NOW - 5 * SECOND)
    look(floors, NOW - 7 * SECOND, priority=PRIORITY_LOW)
    assert floors.of("orders", NOW) == {PRIORITY_NORMAL: NOW - 5 * SECOND, PRIORITY_LOW: NOW - 8 * SECOND}
    assert PRIORITY_HIGH not in floors.of("orders", NOW)


def test_what_this_process_saves_late_lowers_the_floor() -> None:
    floors = after_many()
    floors.sent([message(queue="orders", due=NOW - 99 * SECOND), message(queue="others", due=0)])
    assert floors.of("orders", NOW) == {PRIORITY_NORMAL: NOW - 99 * SECOND}
    floors.sent([message(queue="orders", due=NOW)])
    assert floors.of("orders", NOW) == {PRIORITY_NORMAL: NOW - 99 * SECOND}


def test_where_nothing_is_left_the_floor_follows_the_clock() -> None:
    floors = after_many()
    look(floors, now=NOW + 300_000, dry=True)
    assert floors.of("orders", NOW + 300_000) == dict.fromkeys(PRIORITIES, NOW - 700_000)


def test_everything_is_looked_at_once_a_second_and_when_the_clock_went_back() -> None:
    floors = after_many()
    assert floors.of("orders", NOW + SECOND - 1) != EVERYTHING
    assert floors.of("orders", NOW + SECOND) == EVERYTHING
    assert floors.of("orders", NOW - 1) == EVERYTHING


def test_a_look_at_everything_that_took_long_is_repeated_later() -> None:
    floors = after_many(seconds=0.1)
    assert floors.of("orders", NOW + 5 * SECOND - 1) != EVERYTHING
    assert floors.of("orders", NOW + 5 * SECOND) == EVERYTHING


def test_a_claim_above_a_floor_is_asked_to_look_at_everything() -> None:
    floors = after_many()
    assert floors.after("orders", NOW) is None  # that was everything
    look(floors, NOW, now=NOW + 1)
    assert floors.after("orders", NOW + 1) == ([0, NOW - SECOND, 0], NOW + SECOND)
    look(floors, now=NOW + SECOND, dry=True)
    assert floors.after("orders", NOW + SECOND) is None
    assert floors.after("others", NOW) is None


def test_when_a_lease_ends_is_asked_after_a_look_at_everything_only() -> None:
    floors = after_many()
    assert floors.lapse_known() is None
    floors.lapse_is(None)
    look(floors, NOW, now=NOW + 1)
    assert floors.lapse_known() == NOW + SECOND  # its own lease ends later, but another process may have a shorter one
    look(floors, NOW, now=NOW + 2, lease_end=NOW + 500_000)
    assert floors.lapse_known() == NOW + 500_000
    look(floors, now=NOW + SECOND, dry=True)
    assert floors.lapse_known() is None


def test_after_a_rollback_everything_is_looked_at_if_anything_had_been_taken() -> None:
    floors = after_many()
    look(floors, now=NOW + 1, dry=True)
    floors.rolled_back()
    assert floors.of("orders", NOW + 2) != EVERYTHING
    look(floors, NOW, now=NOW + 3)
    floors.rolled_back()
    assert floors.of("orders", NOW + 4) == EVERYTHING
