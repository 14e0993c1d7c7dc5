"""Where a refusal closes the door for long: the ceiling is found by halving, and looked for ever more rarely."""

from __future__ import annotations

import pytest

from penstock.control.ceiling import Dear


def found(limit: float, known: float, lid: float) -> tuple[float, int]:
    """Which pace it holds in the end, and how often the door was closed on the way."""
    dear, now, closed = Dear(lid=lid), 0.0, 0
    while (higher := dear.tried(known, now)) is not None:
        now = dear.probe_after
        known = higher
        if known > limit:
            known, closed = dear.refused(known), closed + 1
            dear.closed(known, now, 30.0)
    return known, closed


@pytest.mark.parametrize("limit", [1.1, 2.0, 3.9])
def test_it_comes_within_a_few_percent_of_a_limit_it_cannot_measure(limit: float) -> None:
    pace, closed = found(limit, known=1.0, lid=4.0)

    assert 0.93 * limit < pace <= limit
    assert closed <= 6


def test_the_surer_the_ceiling_the_longer_until_the_next_probe() -> None:
    dear, waits = Dear(lid=8.0), []
    for _ in range(4):
        dear.closed(2.0, 0.0, 10.0)
        waits.append(dear.probe_after)
    dear.lid = 2.05
    dear.closed(2.0, 0.0, 10.0)

    assert waits == sorted(set(waits))
    assert dear.probe_after == 500.0


def test_what_is_taken_far_above_a_pace_that_was_too_much_lifts_the_lid() -> None:
    dear = Dear(lid=2.0)
    dear.probed(1.0, 3.0)
    kept = dear.lid
    dear.probed(1.0, 4.0)

    assert kept == 2.0
    assert dear.lid == pytest.approx(3.92)
