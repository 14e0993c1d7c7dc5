"""Each zone of the success rate does what it says at its very edges, and nothing leaves the rails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.zones_state import Rules, adapt
from penstock.model.errors import BadConfig

RULES = Rules()


@pytest.mark.spec("A6-04", "B3-03")
def test_the_constants_of_the_rails() -> None:
    assert (RULES.batch_min, RULES.batch_max) == (2, 50)
    assert (RULES.interval_min_ms, RULES.interval_max_ms) == (10_000, 120_000)
    assert (RULES.cooldown_ms, RULES.window_minutes) == (300_000, 5)
    assert (RULES.parallel, RULES.chunk_pause_ms) == (8, 200)


@pytest.mark.spec("A6-14", "G5-25", "F-32")
def test_below_a_fifth_it_stops_and_starts_over_from_the_slowest() -> None:
    assert adapt(40, 20_000, 0.19, RULES) == (2, 120_000, "critical_reset", 300_000)
    assert adapt(40, 20_000, 0.0, RULES).action == "critical_reset"
    assert adapt(40, 20_000, 0.20, RULES).action == "halve"


@pytest.mark.spec("A6-15", "G5-25")
@pytest.mark.parametrize(
    "before, after", [((6, 30_000), (3, 45_000)), ((5, 30_000), (2, 45_000)), ((2, 90_000), (2, 120_000))]
)
@pytest.mark.parametrize("rate", [0.20, 0.35, 0.49999])
def test_below_a_half_it_halves(before: tuple[int, int], after: tuple[int, int], rate: float) -> None:
    assert adapt(*before, rate, RULES) == (*after, "halve", 0)


@pytest.mark.spec("A6-16", "G5-25")
@pytest.mark.parametrize("rate", [0.50, 0.65, 0.78, 0.80])
def test_between_a_half_and_four_fifths_nothing_changes(rate: float) -> None:
    assert adapt(17, 23_456, rate, RULES) == (17, 23_456, "hold", 0)


@pytest.mark.spec("A6-17", "G5-25")
@pytest.mark.parametrize("rate", [0.80001, 0.9, 0.95])
def test_above_four_fifths_it_grows_gently(rate: float) -> None:
    assert adapt(5, 30_000, rate, RULES) == (6, 28_500, "gentle_ramp", 0)
    assert adapt(50, 10_000, rate, RULES) == (50, 10_000, "gentle_ramp", 0)


@pytest.mark.spec("A6-17")
def test_ten_and_a_tenth_are_eleven() -> None:
    assert adapt(10, 30_000, 0.9, RULES).batch_size == 11
    assert adapt(20, 30_000, 0.9, RULES).batch_size == 22


@pytest.mark.spec("A6-18", "G5-04", "G5-25")
def test_above_nineteen_twentieths_it_climbs_from_the_slowest_to_the_fastest_in_thirteen_steps() -> None:
    steps = []
    batch, interval = 2, 120_000
    for _ in range(13):
        batch, interval, action, _ = adapt(batch, interval, 0.951, RULES)
        assert action == "aggressive_ramp"
        steps.append((batch, interval))
    assert steps == [
        (3, 96_000),
        (4, 76_800),
        (5, 61_440),
        (7, 49_152),
        (9, 39_321),
        (12, 31_456),
        (15, 25_164),
        (19, 20_131),
        (24, 16_104),
        (30, 12_883),
        (38, 10_306),
        (48, 10_000),
        (50, 10_000),
    ]


@pytest.mark.spec("A6-19")
@pytest.mark.parametrize(
    "rate, action",
    [(0.1, "critical_reset"), (0.3, "halve"), (0.6, "hold"), (0.9, "gentle_ramp"), (1.0, "aggressive_ramp")],
)
def test_each_zone_has_its_action(rate: float, action: str) -> None:
    assert adapt(10, 30_000, rate, RULES).action == action


@pytest.mark.spec("A6-20")
def test_a_step_back_is_larger_than_a_step_forward() -> None:
    lower = adapt(40, 20_000, 0.4, RULES)
    again = adapt(lower.batch_size, lower.interval_ms, 1.0, RULES)
    assert (lower.batch_size, again.batch_size) == (20, 25)


@pytest.mark.spec("A6-04", "B3-03")
@given(
    st.integers(2, 50),
    st.integers(10_000, 120_000),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=60),
)
def test_no_outcomes_lead_off_the_rails(batch: int, interval: int, outcomes: list[tuple[int, int]]) -> None:
    for completed, failed in outcomes:
        rate = completed / (completed + failed) if completed + failed else 1.0
        batch, interval, _, _ = adapt(batch, interval, rate, RULES)
        assert 2 <= batch <= 50
        assert 10_000 <= interval <= 120_000


@pytest.mark.parametrize(
    "rails",
    [
        {"batch_min": 0},
        {"batch_min": 60},
        {"batch_first": 60},
        {"interval_min_ms": 200_000},
        {"interval_first_ms": 5_000},
        {"look_back_minutes": 4},
        {"parallel": 0},
        {"target_per_day": -1},
    ],
)
def test_rails_that_make_no_sense_are_refused(rails: dict[str, int]) -> None:
    with pytest.raises(BadConfig, match="It has to be from"):
        Rules(**rails)  # type: ignore[arg-type]
