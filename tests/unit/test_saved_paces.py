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
from penstock.model.errors import BadMessage

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


@pytest.mark.parametrize("saved", [{"limit": 5}, {"parallel": "many"}, {"flights": {"under_way": {"x": 1}}}])
def test_a_saved_pace_that_does_not_fit_is_begun_anew(saved: dict[str, object]) -> None:
    pace = AdaptivePace(saved, rate=(0.5, 100.0), parallel=8)

    assert pace.state == AdaptivePace({}, rate=(0.5, 100.0), parallel=8).state


@pytest.mark.parametrize("setting", ["rate", "parallel"])
@pytest.mark.parametrize("value", [0, -1, True, "2", None, 1e9, float("nan")])
def test_a_pace_is_tuned_by_numbers_above_zero_only(setting: str, value: object) -> None:
    pace = AdaptivePace({}, rate=(0.5, 100.0), parallel=8)

    with pytest.raises(BadMessage, match=f"{setting} is .*above 0"):
        pace.tune(10.0, {"rate": 7.0, "parallel": 3} | {setting: value})

    assert pace.state == AdaptivePace({}, rate=(0.5, 100.0), parallel=8).state


def test_a_tuned_pace_stays_within_its_least_rate_and_starts_at_once() -> None:
    pace = AdaptivePace({}, rate=(0.5, 100.0), parallel=8)
    pace.state.due = 1_000.0

    pace.tune(10.0, {"rate": 0.1, "parallel": 2.9})

    assert (pace.state.rate_max, pace.batch_size, pace.state.due) == (0.5, 2, 10.0)
    pace.tune(20.0, {"rate": 1e8, "parallel": 0.2})
    assert (pace.state.rate_max, pace.batch_size, pace.state.due) == (1e8, 1, 10.0)
    with pytest.raises(BadMessage, match="no setting batch_size, speed; it has rate and parallel"):
        pace.tune(30.0, {"speed": 1, "rate": 1, "batch_size": 2})


if __name__ == "__main__":
    found = {name: json.loads(msgspec.json.encode(value)) for name, value in FRESH.items()}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
