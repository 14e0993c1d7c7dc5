"""The form in which paces are saved: a database of an earlier version holds it, and what it lacks gets these defaults."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from penstock.control.inflight import Flight
from penstock.control.limiter_state import LimiterState
from penstock.control.pace import AdaptivePace
from penstock.control.zones_state import Minute, Rules, ZonesState

RECORDED = Path(__file__).with_name("saved_paces.json")


def sent() -> LimiterState:
    state = LimiterState()
    state.flights.under_way[7] = Flight(3, 1.5, 2)
    return state


FRESH: dict[str, msgspec.Struct] = {
    "pilot": sent(),
    "zones": ZonesState(metrics={60_000: Minute(3, 2, 1)}),
    "rules": Rules(),
}


@pytest.mark.parametrize("name", FRESH)
def test_a_fresh_pace_is_saved_as_recorded_and_loads_from_nothing(name: str) -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))[name]

    assert json.loads(msgspec.json.encode(FRESH[name])) == recorded
    assert msgspec.json.decode(b"{}", type=type(FRESH[name])) == type(FRESH[name])()
    assert msgspec.convert(recorded, type(FRESH[name]), strict=False) == FRESH[name]


def test_a_pace_that_0_1_saved_keeps_the_limit_it_had_found() -> None:
    saved = json.loads(RECORDED.with_name("saved_paces_0_1.json").read_text("utf-8"))
    saved["ceiling"] |= {"known": 4.0, "rate": 3.98}

    pace = AdaptivePace(saved, rate=(0.01, 100.0), parallel=8)

    assert pace.state.limit.known == pytest.approx(4.0, rel=0.05)
    assert pace.rate_per_second == pytest.approx(3.98)
    assert AdaptivePace(pace.saved(), rate=(0.01, 100.0), parallel=8).state == pace.state


if __name__ == "__main__":
    found = {name: json.loads(msgspec.json.encode(value)) for name, value in FRESH.items()}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
