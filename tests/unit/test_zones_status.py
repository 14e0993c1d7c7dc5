"""Both views of the zones add up, round last, and say the same things by the same names."""

from __future__ import annotations

import json

import msgspec
import pytest

from penstock.control.minutes import Minute
from penstock.control.zones import Rules
from penstock.control.zones_state import ZonesState, changed, fresh
from penstock.control.zones_status import Details, Status, confidence, details, human, rate_report, status

NOON = 1_794_744_000_000
MINUTE = 60_000
RULES = Rules()


def state(**fields: object) -> ZonesState:
    return changed(fresh(RULES, now_ms=NOON - 3_600_000), **fields)


@pytest.mark.spec("A6-29", "G5-19")
def test_the_flat_view_has_the_agreed_fields() -> None:
    busy = state(
        total_dispatched=120,
        total_completed=90,
        total_failed=10,
        total_skipped=15,
        metrics={NOON - MINUTE: Minute(100, 90, 10)},
        last_tick_at=NOON - 5_000,
        last_work_at=NOON - 6_000,
        cooldown_started_at=NOON - 100_000,
        cooldown_ms=300_000,
        cooldown_until=NOON + 200_000,
    )
    assert json.loads(msgspec.json.encode(status(busy, RULES, now_ms=NOON))) == {
        "running": True,
        "total_dispatched": 120,
        "total_completed": 90,
        "total_failed": 10,
        "total_skipped": 15,
        "in_flight": 5,
        "completions_per_minute": 18.0,
        "success_rate": 90.0,
        "success_rate_pct": 90.0,
        "current_batch_size": 5,
        "current_interval_ms": 30_000,
        "in_cooldown": True,
        "cooldown_remaining_s": 200,
        "last_tick_at": "2026-11-15T11:59:55.000Z",
        "last_work_at": "2026-11-15T11:59:54.000Z",
        "projected_per_day": 25_920,
    }


@pytest.mark.spec("A6-03", "A6-29")
def test_a_fresh_one_shows_its_defaults() -> None:
    shown = status(fresh(RULES, now_ms=NOON), RULES, now_ms=NOON)
    assert shown == Status(
        running=True,
        total_dispatched=0,
        total_completed=0,
        total_failed=0,
        total_skipped=0,
        in_flight=0,
        completions_per_minute=0.0,
        success_rate=100.0,
        success_rate_pct=100.0,
        current_batch_size=5,
        current_interval_ms=30_000,
        in_cooldown=False,
        cooldown_remaining_s=0,
        last_tick_at=None,
        last_work_at=None,
        projected_per_day=0,
    )


@pytest.mark.spec("A6-30", "G5-19")
def test_the_rich_view_has_the_agreed_fields_also_without_data() -> None:
    nothing = details(fresh(RULES, now_ms=NOON), RULES, now_ms=NOON)
    assert msgspec.to_builtins(nothing) == {
        "params": {"batch_size": 5, "interval_ms": 30_000, "interval_human": "30s"},
        "lifetime": {"dispatched": 0, "completed": 0, "failed": 0, "skipped": 0, "success_rate_pct": 100.0},
        "rolling": {"success_rate_pct": 100.0, "sample_size": 0, "confidence": "none", "completions_per_minute": 0.0},
        "projected_per_hour": 0,
        "projected_per_day": 0,
        "seconds_since_last_tick": None,
    }
    assert isinstance(nothing, Details)


@pytest.mark.spec("A6-30", "G5-19")
def test_the_lifetime_rate_is_of_those_that_ended() -> None:
    busy = state(
        total_dispatched=100, total_completed=60, total_failed=20, total_skipped=15, last_tick_at=NOON - 61_500
    )
    shown = details(busy, RULES, now_ms=NOON)
    assert shown.lifetime.success_rate_pct == 75.0
    assert shown.seconds_since_last_tick == 61


@pytest.mark.spec("G5-20")
def test_a_slow_pace_is_not_rounded_to_nothing() -> None:
    slow = state(metrics={NOON - 2 * MINUTE: Minute(2, 2, 0)})
    shown = status(slow, RULES, now_ms=NOON)
    assert (shown.completions_per_minute, shown.projected_per_day) == (0.4, 576)
    assert details(slow, RULES, now_ms=NOON).projected_per_hour == 24


@pytest.mark.spec("G5-20")
def test_a_young_one_divides_by_its_age_and_projects_from_what_was_not_rounded() -> None:
    young = changed(fresh(RULES, now_ms=NOON - 90_000), metrics={NOON: Minute(1, 1, 0)})
    shown = status(young, RULES, now_ms=NOON)
    assert (shown.completions_per_minute, shown.projected_per_day) == (0.7, 960)
    newborn = changed(fresh(RULES, now_ms=NOON), metrics={NOON: Minute(3, 3, 0)})
    assert status(newborn, RULES, now_ms=NOON).completions_per_minute == 3.0


@pytest.mark.spec("A6-12")
@pytest.mark.parametrize(
    "size, word", [(0, "none"), (1, "low"), (4, "low"), (5, "medium"), (19, "medium"), (20, "high"), (1_000, "high")]
)
def test_a_rate_says_how_far_to_trust_it(size: int, word: str) -> None:
    assert confidence(size) == word
    measured = state(metrics={NOON: Minute(size, size, 0)} if size else {})
    report = rate_report(measured, RULES, now_ms=NOON)
    assert (report.rate, report.sample_size, report.confidence) == (1.0, size, word)


@pytest.mark.parametrize(
    "interval, words",
    [(10_000, "10s"), (28_500, "28.5s"), (60_000, "1m"), (90_000, "1m 30s"), (120_000, "2m"), (0, "0s")],
)
def test_an_interval_is_shown_as_people_say_it(interval: int, words: str) -> None:
    assert human(interval) == words
