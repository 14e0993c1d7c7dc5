"""What a running controller says about itself, from saved state alone."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.control.outcome import Outcome
from penstock.control.pace import AdaptivePace
from penstock.control.status import MINUTE, Minute, confidence, human, noted, prune, status

NOON = 1_772_366_400_000_000 // MINUTE * MINUTE


def shown(**state: Any) -> dict[str, Any]:
    pace = AdaptivePace({}, rate=(0.01, 10.0), parallel=4)
    return status("enrichment", "pilot", state, pace, alarm=None, now=NOON)


@pytest.mark.spec("G5-20")
def test_a_slow_pace_is_not_rounded_to_nothing() -> None:
    slow = shown(minutes=[Minute(NOON - 2 * MINUTE, 2, 0)])

    assert (slow["completions_per_minute"], slow["projected_per_day"], slow["projected_per_hour"]) == (0.4, 576, 24)


@pytest.mark.spec("G5-20")
def test_a_young_one_divides_by_its_age_and_projects_from_what_was_not_rounded() -> None:
    young = shown(minutes=[Minute(NOON, 1, 0)], counting_since=NOON - 90_000_000)
    newborn = shown(minutes=[Minute(NOON, 3, 0)], counting_since=NOON)

    assert (young["completions_per_minute"], young["projected_per_day"]) == (0.7, 960)
    assert newborn["completions_per_minute"] == 3.0


@pytest.mark.spec("A6-30", "G5-19")
def test_the_lifetime_rate_is_of_those_that_ended() -> None:
    tally = {"dispatched": 100, "completed": 60, "failed": 20, "skipped": 15}
    busy = shown(tally=tally, last_tick_at=NOON - 61_000_000)

    assert busy["lifetime"]["success_rate_pct"] == 75.0
    assert busy["seconds_since_last_tick"] == 61


@pytest.mark.spec("A6-29", "A6-30")
def test_a_controller_that_has_not_worked_yet_counts_nothing_and_is_not_blamed() -> None:
    new = shown()

    assert {name: new[name] for name in new if name.startswith("total_")} == {
        "total_dispatched": 0,
        "total_completed": 0,
        "total_failed": 0,
        "total_skipped": 0,
        "total_throttled": 0,
    }
    assert new["lifetime"] == {"dispatched": 0, "completed": 0, "failed": 0, "success_rate_pct": 100.0}
    assert (new["running"], new["success_rate"], new["in_cooldown"], new["ticks"]) == (True, 100.0, False, [])
    assert [new[name] for name in ("last_tick_at", "last_work_at", "next_tick_at", "seconds_since_last_tick")] == [
        None
    ] * 4


@pytest.mark.spec("A6-12")
@pytest.mark.parametrize(
    "size, word", [(0, "none"), (1, "low"), (4, "low"), (5, "medium"), (19, "medium"), (20, "high"), (1_000, "high")]
)
def test_a_rate_says_how_far_to_trust_it(size: int, word: str) -> None:
    rolling = shown(minutes=[Minute(NOON, size, 0)] if size else [])["rolling"]

    assert confidence(size) == word
    assert (rolling["success_rate_pct"], rolling["sample_size"], rolling["confidence"]) == (100.0, size, word)


@pytest.mark.spec("G5-24", "A6-10")
def test_an_outcome_of_four_minutes_and_59_seconds_ago_counts_and_old_minutes_go() -> None:
    minutes: list[Minute] = []
    for at in (NOON - 20 * MINUTE, NOON - 299_000_000):
        noted(minutes, at, Outcome.OK)

    assert shown(minutes=minutes)["rolling"]["sample_size"] == 1
    prune(minutes, NOON)
    assert [each.at for each in minutes] == [NOON - 5 * MINUTE]


@pytest.mark.spec("A6-10")
def test_refusals_outages_and_failures_lower_the_success_rate_and_items_that_are_gone_do_not() -> None:
    minutes: list[Minute] = []
    for at, outcome in enumerate([Outcome.OK] * 5 + list(Outcome)):
        noted(minutes, NOON - 2 * MINUTE + at, outcome)

    told = shown(minutes=minutes)

    assert minutes == [Minute(NOON - 2 * MINUTE, 6, 3)]
    assert (told["success_rate"], told["success_rate_pct"], told["rolling"]["sample_size"]) == (66.7, 66.7, 9)


def test_a_cooldown_and_the_next_tick_are_shown_until_they_are_over() -> None:
    closed, now = AdaptivePace({}, rate=(0.01, 10.0), parallel=4), NOON / 1_000_000
    closed.finished(now, closed.started(now), Outcome.THROTTLED, latency=0.1, retry_after=90, item="a")

    told = status("enrichment", "pilot", {"last_work_at": NOON}, closed, alarm=NOON + MINUTE, now=NOON)
    later = status("enrichment", "pilot", {}, closed, alarm=None, now=NOON + 2 * MINUTE)

    assert (told["in_cooldown"], told["cooldown_remaining_s"]) == (True, 90)
    assert (told["last_work_at"], told["next_tick_at"]) == ("2026-03-01T12:00:00.000Z", "2026-03-01T12:01:00.000Z")
    assert (later["in_cooldown"], later["cooldown_remaining_s"], later["next_tick_at"]) == (False, 0, None)


@pytest.mark.parametrize(
    "interval, words",
    [(10_000, "10s"), (28_500, "28.5s"), (60_000, "1m"), (90_000, "1m 30s"), (120_000, "2m"), (0, "0s")],
)
def test_an_interval_is_shown_as_people_say_it(interval: int, words: str) -> None:
    assert human(interval) == words
