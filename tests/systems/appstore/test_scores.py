"""The formulas, value by value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from penstock_systems.appstore import scores


@pytest.mark.spec("B4-04", "G2-44")
@pytest.mark.parametrize(
    "rating_count, average, velocity, expected",
    [
        (0, None, None, 0.0),
        (0, 5.0, None, 30.0),
        (9, 0.0, 0.0, 50 / 6),
        (999, 4.5, 25.0, 25.0 + 27.0 + 5.0),
        (8_421, 4.6, 12.0, 62.7118),
        (999_999, 5.0, 100.0, 100.0),
        (50_000_000, 5.0, 4_000.0, 100.0),
        (999, 4.5, -25.0, 52.0),
        (-3, -1.0, None, 0.0),
    ],
)
def test_competitiveness_is_ratings_stars_and_velocity(
    rating_count: int, average: float | None, velocity: float | None, expected: float
) -> None:
    assert scores.competitiveness(rating_count, average, velocity) == pytest.approx(expected, abs=5e-5)


@pytest.mark.spec("B4-05", "G2-44")
@pytest.mark.parametrize(
    "counts, expected",
    [
        ([], 0.0),
        ([0] * 10, 0.0),
        ([999_999] * 10, 100.0),
        ([10**9] * 10, 100.0),
        ([999_999], 100 / sum(1 / rank for rank in range(1, 11))),
        ([99, 9], 100 * (2 + 1 / 2) / (6 * 7_381 / 2_520)),
        ([9, 99], 100 * (1 + 2 / 2) / (6 * 7_381 / 2_520)),
    ],
)
def test_demand_adds_up_the_first_ten_by_their_rank(counts: Sequence[int], expected: float) -> None:
    assert scores.demand(counts) == pytest.approx(expected, abs=5e-5)


def test_demand_does_not_look_below_the_tenth_rank() -> None:
    assert scores.demand([50] * 10) == scores.demand([50] * 10 + [10**6] * 15)


@pytest.mark.spec("B4-06", "G2-44")
@pytest.mark.parametrize(
    "counts, expected",
    [
        ([], 0.0),
        ([5_000], 0.0),
        ([5_000, 0, 0], 0.0),
        ([7] * 10, 90.0),
        ([3, 1], 37.5),
        ([0, 0, 0, 0], 75.0),
        ([-4, 7, 7], 50.0),
    ],
)
def test_fragmentation_is_what_no_single_app_holds(counts: Sequence[int], expected: float) -> None:
    assert scores.fragmentation(counts) == pytest.approx(expected)


@pytest.mark.spec("B5-03")
@pytest.mark.parametrize(
    "demand, competitiveness, fragmentation, expected",
    [(0, 100, 0, 0.0), (100, 0, 100, 100.0), (80, 40, 90, 75.5), (60.5, 33.25, 71.0, 65.3125)],
)
def test_opportunity_weighs_demand_ease_and_dispersion(
    demand: float, competitiveness: float, fragmentation: float, expected: float
) -> None:
    assert scores.opportunity(demand, competitiveness, fragmentation) == pytest.approx(expected)


@pytest.mark.parametrize("counts", [[2**63 - 1] * 50, [1] * 5_000, list(range(1_000))])
def test_no_score_leaves_its_scale(counts: list[int]) -> None:
    for score in (scores.demand(counts), scores.fragmentation(counts), scores.competitiveness(counts[0], 5.0, 1e12)):
        assert 0 <= score <= 100
        assert math.isfinite(score)
