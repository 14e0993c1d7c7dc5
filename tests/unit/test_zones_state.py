"""State survives being saved, a new version of the code, and whatever somebody wrote into it."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.zones_state import (
    Minute,
    Minutes,
    Rules,
    ZonesState,
    added,
    changed,
    fresh,
    load,
    measured,
    pruned,
    save,
    success_rate,
    window,
)

NOON = 1_794_744_000_000
MINUTE = 60_000
RULES = Rules()


def state(**fields: object) -> ZonesState:
    return changed(fresh(RULES, now_ms=NOON), **fields)


# -- minutes ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A6-10")
def test_outcomes_fall_into_the_minute_they_end_in() -> None:
    minutes = added({}, NOON + 59_999, Minute(2, 2, 0))
    minutes = added(minutes, NOON + 60_000, Minute(3, 1, 2))
    minutes = added(minutes, NOON + 61_000, Minute(1, 0, 1))
    assert minutes == {NOON: Minute(2, 2, 0), NOON + MINUTE: Minute(4, 1, 3)}
    assert window(minutes, NOON + MINUTE, 5) == Minute(6, 3, 3)


@pytest.mark.spec("A6-10", "F-31", "G5-24")
def test_the_window_takes_the_minute_it_begins_in_whole() -> None:
    minutes = added({}, NOON, Minute(1, 1, 0))
    assert window(minutes, NOON + 5 * MINUTE + 59_999, 5) == Minute(1, 1, 0)
    assert window(minutes, NOON + 6 * MINUTE, 5) == Minute()


@pytest.mark.spec("A6-10")
def test_an_hour_of_ticks_leaves_seven_buckets_at_most_and_pruning_says_how_many_went() -> None:
    minutes: Minutes = {}
    for second in range(0, 3_600, 10):
        now = NOON + second * 1_000
        minutes, removed = pruned(added(minutes, now, Minute(9, 8, 1)), now, length=5, look_back=30, enough=5)
        assert len(minutes) <= 7
        assert removed in (0, 1)
    assert len(msgspec.json.encode(minutes)) < 500

    later = NOON + 3 * 3_600_000
    assert pruned(minutes, later, length=5, look_back=30, enough=5) == ({}, len(minutes))


@pytest.mark.spec("A6-13")
def test_older_minutes_are_kept_while_the_newer_are_too_few_to_judge_by() -> None:
    minutes = {NOON + ago * MINUTE: Minute(2, 2, 0) for ago in (0, 8, 16, 24)}
    kept = pruned(minutes, NOON + 24 * MINUTE, length=5, look_back=30, enough=5)
    assert sorted(kept.minutes) == [NOON + ago * MINUTE for ago in (8, 16, 24)]


@pytest.mark.spec("A6-11")
@pytest.mark.parametrize(
    "completed, failed, rate", [(0, 0, 1.0), (1, 0, 1.0), (0, 1, 0.0), (1, 4, 0.2), (19, 1, 0.95), (1, 1, 0.5)]
)
def test_the_success_rate_is_the_share_of_those_that_ended(completed: int, failed: int, rate: float) -> None:
    with_data = state(metrics={NOON: Minute(99, completed, failed)})
    assert success_rate(measured(with_data, RULES, NOON)) == rate


# -- saving and loading ---------------------------------------------------------------------------------------------------

amounts = st.integers(0, 10**6)
minutes_of_now = st.dictionaries(
    st.integers(0, 5).map(lambda ago: NOON - ago * MINUTE), st.builds(Minute, amounts, amounts, st.integers(1, 10**6))
)


@pytest.mark.spec("A6-02", "G5-29")
@given(minutes_of_now, st.integers(2, 50), st.integers(0, NOON), st.booleans(), amounts)
def test_a_saved_state_comes_back_with_its_types(
    minutes: dict[int, Minute], batch: int, at: int, running: bool, count: int
) -> None:
    before = state(
        metrics=dict(sorted(minutes.items())),
        current_batch_size=batch,
        last_tick_at=at,
        last_work_at=at,
        window_epoch=at,
        running=running,
        total_completed=count,
        total_skipped=count,
        total_dispatched=2 * count,
    )
    after = load(save(before), RULES, now_ms=NOON)
    assert after == before
    assert all(type(start) is int for start in after.metrics)


@pytest.mark.spec("A6-02")
def test_the_saved_names_are_the_agreed_ones() -> None:
    saved = json.loads(save(state(metrics={NOON: Minute(3, 2, 1)})))
    agreed = """total_dispatched total_completed total_failed last_tick_at running current_batch_size current_interval_ms
        cooldown_until metrics total_skipped generation window_epoch idle_streak""".split()
    assert set(agreed) <= saved.keys()
    assert saved["metrics"] == {str(NOON): {"dispatched": 3, "completed": 2, "failed": 1}}


@pytest.mark.spec("A6-03")
def test_a_fresh_state_has_the_defaults() -> None:
    new = load(None, RULES, now_ms=NOON)
    assert (new.total_dispatched, new.total_completed, new.total_failed, new.last_tick_at) == (0, 0, 0, 0)
    assert (new.running, new.current_batch_size, new.current_interval_ms) == (True, 5, 30_000)
    assert (new.cooldown_until, new.metrics) == (0, {})


@pytest.mark.spec("A6-36")
def test_an_old_state_that_lacks_fields_loads() -> None:
    old = {"total_dispatched": 12, "total_completed": 10, "total_failed": 2, "current_batch_size": 7}
    loaded = load(json.dumps(old), RULES, now_ms=NOON)
    assert (loaded.total_completed, loaded.current_batch_size, loaded.current_interval_ms) == (10, 7, 30_000)


@pytest.mark.spec("A6-36")
@pytest.mark.parametrize(
    "saved, field, expected",
    [
        ({"current_batch_size": 500}, "current_batch_size", 50),
        ({"current_batch_size": -1}, "current_batch_size", 2),
        ({"current_batch_size": "7"}, "current_batch_size", 5),
        ({"current_batch_size": True}, "current_batch_size", 5),
        ({"current_batch_size": None}, "current_batch_size", 5),
        ({"current_interval_ms": 1}, "current_interval_ms", 10_000),
        ({"current_interval_ms": 10**9}, "current_interval_ms", 120_000),
        ({"current_interval_ms": 45_000.5}, "current_interval_ms", 30_000),
        ({"running": "yes"}, "running", True),
        ({"running": False}, "running", False),
        ({"total_failed": -5}, "total_failed", 0),
        ({"last_tick_at": 10**30}, "last_tick_at", NOON),
        ({"metrics": [1, 2]}, "metrics", {}),
        ({"metrics": "none"}, "metrics", {}),
        ({"metrics": {"soon": {"completed": 1}}}, "metrics", {}),
        (
            {"metrics": {str(NOON): 5, str(NOON - MINUTE): {"completed": 1}}},
            "metrics",
            {NOON - MINUTE: Minute(0, 1, 0)},
        ),
        ({"metrics": {str(NOON): {"completed": 3, "failed": -2}}}, "metrics", {NOON: Minute(0, 3, 0)}),
        ({"metrics": {str(NOON - 3_600_000): {"completed": 1}}}, "metrics", {}),
        ({"spent": "all"}, "spent", Minute()),
        ({"unheard_of": 1}, "current_batch_size", 5),
    ],
)
def test_wrong_types_are_repaired_and_values_put_back_on_the_rails(
    saved: dict[str, object], field: str, expected: object
) -> None:
    loaded = load(saved, RULES, now_ms=NOON)
    assert getattr(loaded, field) == expected
    assert type(getattr(loaded, field)) is type(expected)


@pytest.mark.spec("A6-36")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda some: st.dictionaries(st.text(), some),
        max_leaves=4,
    )
)
def test_no_saved_value_keeps_a_controller_from_starting(value: object) -> None:
    fields = ZonesState.__struct_fields__
    loaded = load(json.dumps(dict.fromkeys(fields, value)), RULES, now_ms=NOON)
    assert 2 <= loaded.current_batch_size <= 50
    assert load(json.dumps(value), RULES, now_ms=NOON).current_interval_ms == 30_000


@pytest.mark.parametrize("saved", [b"", b"{", "[]", "7", b"\xff"])
def test_what_is_no_object_counts_as_nothing_saved(saved: bytes | str) -> None:
    assert load(saved, RULES, now_ms=NOON) == fresh(RULES, now_ms=NOON)


def test_a_cooldown_goes_on_over_a_restart_and_no_longer_than_the_rules_say() -> None:
    cooling = state(cooldown_started_at=NOON - 60_000, cooldown_ms=300_000, cooldown_until=NOON + 240_000)
    assert load(save(cooling), RULES, now_ms=NOON).cooldown == cooling.cooldown
    shorter = load(save(cooling), Rules(cooldown_ms=100_000), now_ms=NOON)
    assert shorter.cooldown_until == NOON + 100_000
    only_its_end = load({"cooldown_until": NOON + 240_000}, RULES, now_ms=NOON)
    assert only_its_end.cooldown.remaining_ms(NOON) == 240_000
    absurd = load({"cooldown_until": 10**30}, RULES, now_ms=NOON)
    assert absurd.cooldown.remaining_ms(NOON) == 300_000


def test_what_was_in_flight_when_the_process_ended_is_pending_again() -> None:
    flying = state(total_dispatched=10, total_completed=5, total_failed=1, total_skipped=1)
    assert flying.in_flight == 3
    assert load(save(flying), RULES, now_ms=NOON).in_flight == 0
