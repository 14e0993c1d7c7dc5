"""The forecast: how many days are left, and when to warn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.forecast import SAMPLES_MAX, Level, Sample, forecast

GB = 1_000_000_000
DAY = 86_400 * 1_000_000
START = 20_000 * DAY


def daily(*sizes_gb: float) -> list[Sample]:
    return [Sample(START + day * DAY, round(size * GB)) for day, size in enumerate(sizes_gb)]


@pytest.mark.spec("A8-17")
def test_growth_of_900_mb_a_day_at_6_4_gb_of_10_leaves_about_4_days() -> None:
    ahead = forecast(daily(3.7, 4.6, 5.5, 6.4), cap_bytes=10 * GB)

    assert ahead.days_left == pytest.approx(4.0)
    assert ahead.growth_bytes_per_day == pytest.approx(0.9 * GB)
    assert str(ahead) == "6.4 GB of 10.0 GB (64%), growing 0.9 GB a day: full in about 4 days"


@pytest.mark.spec("A8-17")
@pytest.mark.parametrize(
    "size_gb, level",
    [
        (0, "ok"),
        (5.999, "ok"),
        (6, "warn_60"),
        (7.999, "warn_60"),
        (8, "warn_80"),
        (9.999, "warn_80"),
        (10, "over"),
        (11, "over"),
    ],
)
def test_it_warns_at_60_and_at_80_percent(size_gb: float, level: str) -> None:
    assert forecast(daily(size_gb), cap_bytes=10 * GB).level == level


def test_a_noisy_day_changes_little() -> None:
    ahead = forecast(daily(1, 2.2, 2.9, 4.1, 5), cap_bytes=10 * GB)

    assert ahead.growth_bytes_per_day == pytest.approx(0.99 * GB)


def test_only_the_last_two_weeks_count() -> None:
    shrunk_long_ago = daily(9, *[1 + 0.1 * day for day in range(SAMPLES_MAX)])

    assert forecast(shrunk_long_ago, cap_bytes=10 * GB).growth_bytes_per_day == pytest.approx(0.1 * GB)


def test_of_several_samples_on_one_day_the_last_counts_and_order_does_not() -> None:
    samples = [*daily(1, 2, 3), Sample(START + DAY // 2, 9 * GB), Sample(START + 3 * DAY // 4, GB)]

    ahead = forecast(reversed(samples), cap_bytes=10 * GB)

    assert ahead.size_bytes == 3 * GB
    assert ahead.growth_bytes_per_day < 2 * GB


@pytest.mark.parametrize(
    "sizes",
    [(), (5,), (5, 5, 5), (5, 4, 3)],
)
def test_without_growth_there_is_no_day_of_reckoning(sizes: tuple[float, ...]) -> None:
    ahead = forecast(daily(*sizes), cap_bytes=10 * GB)

    assert ahead.days_left is None
    assert "not growing" in str(ahead)


def test_two_samples_around_midnight_are_no_trend() -> None:
    samples = [Sample(START - 1_000_000, 1 * GB), Sample(START + 1_000_000, 2 * GB)]

    assert forecast(samples, cap_bytes=10 * GB).days_left is None


def test_over_the_cap_no_days_are_left() -> None:
    ahead = forecast(daily(9, 11), cap_bytes=10 * GB)

    assert (ahead.level, ahead.days_left) == (Level.OVER, 0)
    assert str(ahead).endswith("over the cap")


def test_without_a_cap_nothing_is_near() -> None:
    ahead = forecast(daily(9, 99), cap_bytes=None)

    assert (ahead.level, ahead.days_left) == (Level.OK, None)
    assert str(ahead) == "99.0 GB, without a cap"


@given(st.lists(st.tuples(st.integers(0, 400 * DAY), st.integers(0, 10**13)).map(lambda pair: Sample(*pair))))
def test_any_samples_give_a_forecast(samples: list[Sample]) -> None:
    ahead = forecast(samples, cap_bytes=10 * GB)

    assert ahead.days_left is None or ahead.days_left >= 0
    assert str(ahead)
