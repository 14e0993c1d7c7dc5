"""Windows that a service counts by the clock: when a refusal means that the window is full, and when it breaks the belief."""

from __future__ import annotations

import pytest

from penstock.control.ceiling import Ceiling
from penstock.control.inflight import Flight, Flights
from penstock.control.quotas import BROKEN_MOST, JUST_AFTER, Quota
from penstock.control.refusals import _remember

MINUTE = 60.0


def known(**more: float) -> Quota:
    """A window of 100 requests a minute, the sixth of which began with request 1,000."""
    quota = Quota(period=MINUTE, size=100, used_from=1_000, window_index=5)
    for name, value in more.items():
        setattr(quota, name, value)
    return quota


@pytest.mark.parametrize("used, size", [(97, 97), (98, 98), (104, 104)])
def test_a_refusal_of_a_full_window_corrects_its_size(used: int, size: int) -> None:
    quota = known()

    assert quota.is_filled(1_000 + used + 1, 5 * MINUTE + 30)
    assert (quota.size, quota.broken) == (size, 0)


def test_a_refusal_of_a_window_that_has_room_is_counted_and_the_third_ends_the_belief() -> None:
    quota = known()
    for refused in range(1, BROKEN_MOST + 1):
        assert not quota.is_filled(1_011, 5 * MINUTE + 30)
        assert (quota.broken, quota.period) == (refused, MINUTE)

    assert not quota.is_filled(1_011, 5 * MINUTE + 30)

    assert quota.period == 0.0


@pytest.mark.parametrize("at", [4 * MINUTE + 59, 6 * MINUTE + 1])
def test_a_refusal_in_another_window_says_nothing_about_this_one(at: float) -> None:
    quota = known()

    assert quota.is_filled(1_011, at)
    assert (quota.size, quota.broken) == (100, 0)


def test_a_window_that_took_more_than_it_holds_is_exceeded_within_itself_only() -> None:
    assert not known().is_exceeded(1_103, 5 * MINUTE + 30)
    assert known().is_exceeded(1_104, 5 * MINUTE + 30)
    assert not known().is_exceeded(1_104, 6 * MINUTE)


def test_what_is_left_of_a_window_is_spread_over_what_is_left_of_its_time() -> None:
    assert known().pace(5 * MINUTE + 30, 1_000 + 69) == pytest.approx(1.0)
    assert known().pace(5 * MINUTE + 59, 1_000 + 50) == pytest.approx(1.3 * 100 / 60), "no faster than 1.3 times even"
    assert known().pace(5 * MINUTE + 30, 1_000 + 99) == pytest.approx(0.05 * 100 / 60), "never quite still"
    assert known(probing=True).pace(5 * MINUTE + 30, 1_000 + 78) == pytest.approx(1.0), "a probe asks for 108"


def test_the_next_window_begins_just_after_the_boundary() -> None:
    assert known().until_boundary(5 * MINUTE + 30) == 6 * MINUTE + JUST_AFTER
    assert known().until_boundary(6 * MINUTE) == 7 * MINUTE + JUST_AFTER


def test_only_requests_later_than_three_latencies_give_their_place_to_others() -> None:
    def allowed(sent_at: float) -> int:
        flights = Flights(latency=1.0, base=1.0, throughput=1.0, failing=10.0)
        flights.under_way = {number: Flight(number, sent_at, number) for number in range(1, 6)}
        return flights.allowed(100.0, 1.0, 50)

    assert allowed(97.0) == 4, "1.5 times what Little's law asks for, and two more"
    assert allowed(96.9) == 9


def test_a_settled_pace_is_forgotten_after_four_refusals_below_it() -> None:
    ceiling = Ceiling(rate=4.0, known=5.0, settled=5.0)
    for _ in range(3):
        _remember(ceiling, 10, 100.0)
    assert (ceiling.settled, ceiling.missed) == (5.0, 3)

    _remember(ceiling, 10, 100.0)

    assert ceiling.settled is None
