"""The cooldown gate is shut for its length, and no wrong clock keeps it shut for longer."""

from __future__ import annotations

import pytest

from penstock.control.zones_state import Cooldown

NOW = 1_800_000_000_000
FIVE_MINUTES = 300_000


@pytest.mark.spec("A6-23")
def test_a_gate_is_shut_for_its_length_and_says_how_long_still() -> None:
    gate = Cooldown.trigger(NOW, FIVE_MINUTES)
    assert (gate.started_at, gate.duration_ms, gate.until) == (NOW, FIVE_MINUTES, NOW + FIVE_MINUTES)
    assert gate.is_active(NOW)
    assert gate.remaining_ms(NOW) == 300_000
    assert gate.remaining_ms(NOW + 299_001) == 999
    assert gate.is_active(NOW + FIVE_MINUTES - 1)
    assert not gate.is_active(NOW + FIVE_MINUTES)
    assert gate.remaining_ms(NOW + 900_000) == 0


def test_a_gate_that_was_never_shut_is_open() -> None:
    assert not Cooldown().is_active(0)
    assert not Cooldown().is_active(NOW)


@pytest.mark.spec("A6-23", "G1-13")
def test_a_clock_set_back_does_not_lengthen_it() -> None:
    gate = Cooldown.trigger(NOW, FIVE_MINUTES)
    an_hour_back = NOW + 60_000 - 3_600_000

    assert gate.remaining_ms(an_hour_back) == FIVE_MINUTES
    seen = gate.seen(an_hour_back)
    assert seen.is_active(an_hour_back + FIVE_MINUTES - 1)
    assert not seen.is_active(an_hour_back + FIVE_MINUTES)


def test_a_clock_that_goes_on_leaves_it_as_it_is() -> None:
    gate = Cooldown.trigger(NOW, FIVE_MINUTES)
    assert gate.seen(NOW) == gate == gate.seen(NOW + 1)
