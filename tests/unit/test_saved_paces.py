"""The form in which paces are saved: a database of an earlier version holds it, and what it lacks gets these defaults."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from penstock.control.inflight import Flight
from penstock.control.pilot import PilotState
from penstock.control.zones_state import Minute, Rules, ZonesState

RECORDED = Path(__file__).with_name("saved_paces.json")


def sent() -> PilotState:
    state = PilotState()
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


if __name__ == "__main__":
    found = {name: json.loads(msgspec.json.encode(value)) for name, value in FRESH.items()}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
