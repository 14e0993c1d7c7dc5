"""After an outage, a wrong clock or a late wake-up, every process decides the same about the fires that passed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.schedule import Fire, FiringDecision, Schedule, decide, meet
from penstock.model.times import to_micros

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOON = to_micros(datetime(2026, 11, 15, 12, tzinfo=UTC))


def test_a_fire_on_time_runs_at_its_time() -> None:
    decision = decide(Schedule("*/5 * * * *"), "crawl", last=NOON, now=NOON + 5 * MINUTE + 30_000)
    assert decision == FiringDecision(
        (Fire(NOON + 5 * MINUTE, NOON + 5 * MINUTE),), 0, NOON + 10 * MINUTE, NOON + 10 * MINUTE
    )


def test_before_its_time_nothing_fires() -> None:
    decision = decide(Schedule("*/5 * * * *"), "crawl", last=NOON, now=NOON + 5 * MINUTE - 1)
    assert decision == FiringDecision((), 0, NOON + 5 * MINUTE, NOON + 5 * MINUTE)


@pytest.mark.spec("A4-06")
def test_three_fires_missed_become_one_run_on_return() -> None:
    now = NOON + 17 * MINUTE
    decision = decide(Schedule("*/5 * * * *"), "crawl", last=NOON, now=now)
    assert decision.fires == (Fire(NOON + 15 * MINUTE, now, late=True),)
    assert decision.missed == 2
    assert decision.next_due == NOON + 20 * MINUTE


@pytest.mark.spec("A4-06")
def test_a_return_right_at_a_fire_makes_no_second_run() -> None:
    decision = decide(Schedule("*/5 * * * *"), "crawl", last=NOON, now=NOON + 15 * MINUTE)
    assert decision.fires == (Fire(NOON + 15 * MINUTE, NOON + 15 * MINUTE),)
    assert decision.missed == 2


@pytest.mark.fault("F11")
def test_after_three_days_down_each_rule_makes_up_for_what_it_says() -> None:
    now = NOON + 3 * DAY + 2 * MINUTE

    def back(**rules: object) -> FiringDecision:
        return decide(Schedule("*/5 * * * *", **rules), "crawl", last=NOON, now=now)  # type: ignore[arg-type]

    once, skip, some = back(), back(catch_up="skip"), back(catch_up="all", catch_up_max=7)
    assert [fire.due for fire in once.fires] == [NOON + 3 * DAY]
    assert (len(skip.fires), skip.missed) == (0, 3 * 288)
    assert [fire.due for fire in some.fires] == [NOON + 3 * DAY - ago * 5 * MINUTE for ago in range(6, -1, -1)]
    assert some.missed == 3 * 288 - 7
    assert [fire.start for fire in some.fires] == [now + turn * SECOND for turn in range(7)]
    assert once.next_due == skip.next_due == some.next_due == NOON + 3 * DAY + 5 * MINUTE


@pytest.mark.fault("F11")
def test_schedules_that_return_together_are_spread_over_their_jitter() -> None:
    now = NOON + 3 * DAY
    schedule = Schedule("0 6 * * *", jitter_seconds=600)
    starts = [decide(schedule, f"task-{number}", last=NOON, now=now).fires[0].start for number in range(200)]
    assert all(now <= start <= now + 600 * SECOND for start in starts)
    assert len({(start - now) // (60 * SECOND) for start in starts}) == 10


def test_skipping_still_runs_the_fire_that_is_on_time() -> None:
    schedule = Schedule("*/5 * * * *", catch_up="skip")
    assert len(decide(schedule, "crawl", last=NOON, now=NOON + 15 * MINUTE + 60 * SECOND).fires) == 1
    assert len(decide(schedule, "crawl", last=NOON, now=NOON + 15 * MINUTE + 60 * SECOND + 1).fires) == 0


def test_all_runs_the_missed_ones_before_the_one_on_time() -> None:
    decision = decide(Schedule("*/5 * * * *", catch_up="all"), "crawl", last=NOON, now=NOON + 15 * MINUTE)
    assert [(fire.due - NOON) // MINUTE for fire in decision.fires] == [5, 10, 15]
    assert [fire.late for fire in decision.fires] == [True, True, False]
    assert decision.missed == 0


def test_years_without_a_machine_are_not_counted_minute_by_minute() -> None:
    decision = decide(Schedule("* * * * *"), "crawl", last=NOON, now=NOON + 3 * 365 * DAY)
    assert decision.missed == 9_999
    assert decision.fires[0].due == NOON + 3 * 365 * DAY


@pytest.mark.fault("F09")
def test_after_the_clock_was_set_back_nothing_fires_twice() -> None:
    schedule, last = Schedule("*/5 * * * *"), NOON + HOUR
    for now in range(NOON, NOON + HOUR, MINUTE):
        decision = decide(schedule, "crawl", last=last, now=now)
        assert decision.fires == ()
        assert decision.next_due == last + 5 * MINUTE


@pytest.mark.fault("F09")
def test_after_the_clock_was_set_forward_one_run_makes_up_for_the_hour() -> None:
    decision = decide(Schedule("*/5 * * * *"), "crawl", last=NOON, now=NOON + HOUR)
    assert [fire.due for fire in decision.fires] == [NOON + HOUR]
    assert decision.missed == 11


def test_a_last_fire_from_a_clock_that_was_a_year_ahead_does_not_stop_the_task() -> None:
    decision = decide(Schedule("*/5 * * * *"), "crawl", last=NOON + 365 * DAY, now=NOON)
    assert decision.next_due == NOON + 5 * MINUTE


def test_jitter_is_the_same_in_every_process_and_differs_between_fires_and_names() -> None:
    schedule = Schedule("*/5 * * * *", jitter_seconds=240)
    # A fixed number: another process, another version and another machine have to draw it too.
    assert schedule.jitter_micros("crawl", NOON) == 181_738_324
    drawn = {
        schedule.jitter_micros(name, NOON + fire * 5 * MINUTE) for name in ("crawl", "score") for fire in range(50)
    }
    assert len(drawn) == 100
    assert 0 <= min(drawn) < 20 * SECOND < 220 * SECOND < max(drawn) <= 240 * SECOND


def test_a_fire_starts_only_when_its_jitter_has_passed() -> None:
    schedule = Schedule("*/5 * * * *", jitter_seconds=240)
    due = NOON + 5 * MINUTE
    start = due + schedule.jitter_micros("crawl", due)
    early = decide(schedule, "crawl", last=NOON, now=start - 1)
    assert early == FiringDecision((), 0, due, start)
    assert decide(schedule, "crawl", last=NOON, now=start).fires == (Fire(due, start),)


@given(
    st.sampled_from(["*/5 * * * *", "0 * * * *", "30 2 * * *"]),
    st.sampled_from(["once", "skip", "all"]),
    st.sampled_from([0, 100, 299]),
    st.lists(st.integers(1, 5 * HOUR), min_size=1, max_size=40),
)
def test_however_late_it_looks_every_fire_is_run_once_or_counted_as_missed(
    expression: str, catch_up: str, jitter: int, waits: list[int]
) -> None:
    schedule = Schedule(expression, zone="Europe/Berlin", jitter_seconds=jitter, catch_up=catch_up)  # type: ignore[arg-type]
    last = now = NOON
    ran: list[int] = []
    missed = 0
    for wait in waits:
        now += wait
        decision = decide(schedule, "crawl", last=last, now=now)
        ran += [fire.due for fire in decision.fires]
        missed += decision.missed
        assert decision.next_due > last
        assert decision.next_start > now
        assert all(start.start <= now or start.late for start in decision.fires[:1])
        # What the store keeps: everything before the next fire is dealt with.
        last = max((due for due in schedule.fires_between(last, decision.next_due - 1)), default=last)
    assert ran == sorted(set(ran))
    dealt_with = list(schedule.fires_between(NOON, last))
    assert len(ran) + missed == len(dealt_with)
    assert set(ran) <= set(dealt_with)
    if catch_up == "all":
        assert missed == 0


def test_a_task_of_90_seconds_on_a_60_second_cron_never_overlaps_itself() -> None:
    schedule, runs, skipped, ends = Schedule("* * * * *"), list[int](), 0, 0
    last = NOON
    for minute in range(1, 4):
        now = NOON + minute * MINUTE
        for fire in decide(schedule, "crawl", last=last, now=now).fires:
            if meet(schedule.overlap, running=int(ends > now), waiting=0) == "run":
                runs.append(fire.due)
                ends = now + 90 * SECOND
            else:
                skipped += 1
            last = fire.due
    assert [(due - NOON) // MINUTE for due in runs] == [1, 3]
    assert skipped == 1
