"""Pacing: whenever somebody looks, and however much is ready, no second sees more starts than the rate."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.model.pacing import allowed, interval_micros, moved, portion

SECOND = 1_000_000
RATES = st.one_of(st.integers(1, 5_000), st.floats(0.01, 5_000))


def starts(rate: float, gaps: list[int], ready: list[int]) -> list[int]:
    """When messages start if somebody looks after each of these gaps and so many are ready then."""
    found: list[int] = []
    now, next_start = 1_790_000_000 * SECOND, 0
    for gap, waiting in zip(gaps, ready, strict=False):
        now += gap
        starting = min(waiting, allowed(rate, next_start, now))
        if starting:
            next_start = moved(rate, next_start, now, starting)
            found += [now] * starting
    return found


@pytest.mark.spec("A1-22")
@given(
    RATES,
    st.lists(st.one_of(st.integers(0, 50_000), st.integers(0, 3 * SECOND)), min_size=1, max_size=400),
    st.lists(st.integers(0, 1_000), min_size=1, max_size=400),
)
@example(5, [100_000] * 100, [1_000] * 100)
@example(150, [1] * 400, [1_000] * 400)
def test_no_second_sees_more_starts_than_the_rate(rate: float, gaps: list[int], ready: list[int]) -> None:
    found = starts(rate, gaps, ready)

    for index, start in enumerate(found):
        assert bisect_left(found, start + SECOND) - index <= max(1, ceil(rate))


@pytest.mark.spec("A1-22")
@given(RATES, st.integers(1, 1_000))
def test_who_looks_exactly_when_the_next_may_start_comes_near_the_rate(rate: float, rounds: int) -> None:
    now = next_start = 0
    started = 0
    for _ in range(rounds):
        now = max(now, next_start)
        starting = allowed(rate, next_start, now)
        assert starting >= 1
        next_start = moved(rate, next_start, now, starting)
        started += starting

    assert started >= 0.98 * rate * next_start / SECOND - 1


@given(RATES, st.integers(0, 10**9), st.integers(0, 10**9))
def test_nothing_is_allowed_before_the_next_start(rate: float, next_start: int, now: int) -> None:
    assert (allowed(rate, next_start, now) == 0) == (now < next_start)


@given(RATES, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 50))
def test_the_next_start_moves_on_from_now_and_never_back(rate: float, next_start: int, now: int, started: int) -> None:
    after = moved(rate, next_start, now, started)

    assert after > max(now, next_start)
    assert after == max(now, next_start) + started * interval_micros(rate)


@pytest.mark.parametrize(
    "rate, portions, micros",
    [(5, 1, 200_000), (1, 1, SECOND), (0.5, 1, 2 * SECOND), (100, 1, 10_000), (1_000, 10, 1_010)],
)
def test_known_rates(rate: float, portions: int, micros: int) -> None:
    assert (portion(rate), interval_micros(rate)) == (portions, micros)
