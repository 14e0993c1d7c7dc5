"""Tick by tick: when the zones work, what the outcomes change, and that the articles' own mistakes are not repeated."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.zones_state import Rules, ZonesState, changed, fresh, load, measured, success_rate
from penstock.control.zones_tick import Step, Tally, begin, idle, reset, settle, start, stop, tune, wake
from penstock.model.errors import BadParameter

NOON = 1_794_744_000_000  # a whole minute
PLAIN = Rules(plain_window=True)


@dataclass
class Run:
    """A controller on a clock of its own."""

    rules: Rules = field(default_factory=Rules)
    now: int = NOON
    actions: list[str] = field(default_factory=list)
    next_at: int | None = NOON

    def __post_init__(self) -> None:
        self.state = fresh(self.rules, now_ms=self.now)

    @property
    def pace(self) -> tuple[int, int]:
        return self.state.current_batch_size, self.state.current_interval_ms

    def set(self, batch: int, interval: int) -> None:
        self.state = changed(self.state, current_batch_size=batch, current_interval_ms=interval)

    def ends(self, completed: int = 0, failed: int = 0, *, skipped: int = 0, limited: int = 0, takes: int = 0) -> Step:
        """One tick now, whatever the alarm says, with these outcomes."""
        woken = wake(self.state, self.rules, now_ms=self.now)
        self.state, tick = begin(woken.state, completed + failed + skipped, now_ms=self.now)
        self.now += takes
        step = settle(self.state, self.rules, tick, Tally(completed, failed, skipped, limited), now_ms=self.now)
        self.state, self.next_at = step.state, step.next_at
        self.actions.append(step.action)
        return step

    def ticks(self, count: int, *, succeed: bool, takes: int = 0, limited: bool = False) -> None:
        """So many ticks at their alarms, each with a full batch."""
        for _ in range(count):
            assert self.next_at is not None
            self.now = max(self.now, self.next_at)
            size = self.state.current_batch_size
            if succeed:
                self.ends(size, takes=takes)
            else:
                self.ends(0, size, limited=size if limited else 0, takes=takes)


# -- the order of a tick ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A6-05")
def test_a_stopped_one_does_nothing_and_sets_no_alarm() -> None:
    stopped = stop(fresh(Rules(), now_ms=NOON)).state
    assert wake(stopped, Rules(), now_ms=NOON + 1) == (stopped, "stopped", 0, None)


@pytest.mark.spec("A6-05", "A6-21", "G5-03")
def test_a_cooling_one_does_no_work_and_wakes_at_the_very_end_of_its_cooldown() -> None:
    run = Run()
    step = run.ends(0, 5)
    assert step.action == "critical_reset"
    assert step.next_at == NOON + 300_000

    cooling = wake(run.state, run.rules, now_ms=NOON + 120_000)
    assert (cooling.kind, cooling.limit, cooling.next_at) == ("cooling", 0, NOON + 300_000)
    assert wake(run.state, run.rules, now_ms=NOON + 299_999).kind == "cooling"
    assert wake(run.state, run.rules, now_ms=NOON + 300_000)[1:] == ("work", 2, None)


@pytest.mark.spec("A6-05")
def test_work_asks_for_a_batch_and_comes_again_after_the_interval() -> None:
    run = Run()
    assert wake(run.state, run.rules, now_ms=NOON).limit == 5
    assert run.ends(3, takes=2_000).next_at == NOON + 2_000 + 30_000


@pytest.mark.spec("G5-16")
def test_a_tick_without_work_is_a_sign_of_life_and_no_work() -> None:
    run = Run()
    run.ends(0, 5)
    cooling = wake(run.state, run.rules, now_ms=NOON + 60_000).state
    assert (cooling.last_tick_at, cooling.last_work_at) == (NOON + 60_000, NOON)
    nothing = idle(fresh(Rules(), now_ms=NOON), Rules(), now_ms=NOON + 60_000).state
    assert (nothing.last_tick_at, nothing.last_work_at) == (NOON + 60_000, 0)
    assert len(idle(run.state, run.rules, now_ms=NOON + 3_600_000).state.metrics) <= len(run.state.metrics)


@pytest.mark.spec("A6-28", "G2-21")
def test_with_nothing_to_do_it_looks_more_rarely_and_work_brings_back_what_it_learnt() -> None:
    run = Run()
    run.set(50, 10_000)
    waits = []
    for _ in range(10):
        step = idle(run.state, run.rules, now_ms=run.now)
        assert step.next_at is not None
        waits.append(step.next_at - run.now)
        run.state, run.now = step.state, step.next_at
    assert waits == [20_000, 40_000, 80_000] + [120_000] * 7
    assert run.pace == (50, 10_000)

    step = run.ends(3)
    assert step.next_at == run.now + 10_000
    assert idle(run.state, run.rules, now_ms=run.now).next_at == run.now + 20_000


def test_an_idle_pause_may_be_longer_than_the_rail() -> None:
    rules = Rules(idle_max_ms=600_000)
    state = changed(fresh(rules, now_ms=NOON), idle_streak=1_000)
    assert idle(state, rules, now_ms=NOON).next_at == NOON + 600_000


# -- how much it takes to change the pace -------------------------------------------------------------------------------


@pytest.mark.spec("A6-13", "F-31")
def test_four_failures_change_nothing_and_five_do() -> None:
    run = Run()
    run.ends(0, 4)
    assert (run.actions, run.pace) == (["hold"], (5, 30_000))
    run.ends(0, 1)
    assert (run.actions, run.pace) == (["hold", "critical_reset"], (2, 120_000))


@pytest.mark.spec("A6-25", "G5-10")
def test_items_that_are_missing_neither_count_nor_change_anything() -> None:
    run = Run()
    step = run.ends(skipped=10)
    assert step.action == "hold"
    assert success_rate(measured(run.state, run.rules, run.now)) == 1.0
    assert run.state.total_skipped == 10
    assert run.state.metrics == {}


def test_a_tick_that_taught_nothing_does_not_speed_up() -> None:
    run = Run()
    run.ends(10)
    run.ends(skipped=10)
    assert run.actions == ["aggressive_ramp", "hold"]


@pytest.mark.spec("A6-13", "G5-06")
def test_slow_items_at_the_smallest_batch_recover() -> None:
    run, plain = Run(), Run(rules=PLAIN)
    for each in (run, plain):
        each.set(2, 120_000)
        each.ticks(12, succeed=True, takes=60_000)
    assert run.state.current_batch_size >= 5
    assert plain.pace == (2, 120_000)  # as the articles have it: two every three minutes are never five in five


@pytest.mark.spec("A6-13")
def test_the_sample_reaches_back_thirty_minutes_and_no_further() -> None:
    run = Run()
    run.ends(0, 3)
    run.now = NOON + 29 * 60_000
    assert run.ends(0, 2).action == "critical_reset"

    late = Run()
    late.ends(0, 3)
    late.now = NOON + 31 * 60_000
    assert late.ends(0, 2).action == "hold"


def test_the_sample_reaches_back_only_as_far_as_it_must() -> None:
    run = Run()
    run.ends(0, 4)
    run.now += 10 * 60_000
    assert run.ends(5).action == "aggressive_ramp"


@pytest.mark.spec("G5-24")
def test_an_outcome_of_4_minutes_59_seconds_ago_counts() -> None:
    for second in range(60):
        plain = Run(rules=PLAIN, now=NOON + second * 1_000)
        plain.ends(0, 4)
        plain.now += 299_000
        assert plain.ends(0, 1).action == "critical_reset"


# -- leaving a cooldown --------------------------------------------------------------------------------------------------


@pytest.mark.spec("A6-22", "G5-01")
def test_started_during_a_cooldown_it_forgets_the_failures_that_led_to_it() -> None:
    run, plain = Run(), Run(rules=PLAIN)
    for each in (run, plain):
        each.ends(0, 50)
        step = start(each.state, each.rules, now_ms=each.now + 10_000)
        assert step.next_at == each.now + 11_000
        each.state, each.now = step.state, each.now + 11_000
        each.ends(2)
    assert run.actions == ["critical_reset", "hold"]
    assert run.state.cooldown_until == 0
    assert plain.actions == ["critical_reset", "critical_reset"]  # 2 of 52: the articles' own loop


@pytest.mark.spec("A6-22", "G5-02")
def test_a_cooldown_shorter_than_the_window_does_not_trip_again() -> None:
    run, plain = Run(rules=Rules(cooldown_ms=180_000)), Run(rules=Rules(cooldown_ms=180_000, plain_window=True))
    for each in (run, plain):
        each.ends(0, 50)
        each.ticks(1, succeed=True)
    assert run.actions == ["critical_reset", "hold"]
    assert plain.actions == ["critical_reset", "critical_reset"]


@pytest.mark.spec("A6-22")
def test_outcomes_of_one_minute_are_distinguished_by_the_epoch_within_it() -> None:
    run = Run(rules=Rules(cooldown_ms=1_000), now=NOON + 1_000)
    run.ends(0, 50)
    run.now += 2_000
    run.ends(4, 1)
    assert measured(run.state, run.rules, run.now).outcomes == 5
    assert run.actions == ["critical_reset", "hold"]


@pytest.mark.spec("G5-05", "F-32")
def test_back_from_a_cooldown_a_first_batch_that_all_fails_goes_back_to_it() -> None:
    run = Run()
    run.ends(0, 5)
    run.ticks(1, succeed=False)
    assert run.actions == ["critical_reset", "critical_reset"]
    assert run.next_at == run.now + 300_000

    half = Run()
    half.ends(0, 5)
    half.now += 300_000
    assert half.ends(1, 1).action == "hold"
    half.now += 120_000
    assert half.ends(0, 2).action == "hold"  # probation is over, and four outcomes are no sample


@pytest.mark.spec("G5-05")
def test_a_first_batch_of_missing_items_says_nothing_about_the_service() -> None:
    run = Run()
    run.ends(0, 5)
    run.now += 300_000
    assert run.ends(skipped=2).action == "hold"
    assert run.ends(0, 2).action == "critical_reset"


@pytest.mark.spec("G5-04")
def test_the_first_change_after_a_cooldown_comes_with_the_third_tick_and_full_speed_after_nine_minutes() -> None:
    run = Run()
    run.ends(0, 5)
    run.ticks(3, succeed=True)
    assert run.actions[1:] == ["hold", "hold", "aggressive_ramp"]
    began = run.now
    run.ticks(12, succeed=True)
    assert run.pace == (50, 10_000)
    assert 7 * 60_000 < run.now - began < 9 * 60_000


# -- walls and bursts -------------------------------------------------------------------------------------------------------


def fast(rules: Rules | None = None) -> Run:
    """150 recent successes at full speed."""
    run = Run(rules=rules or Rules())
    for _ in range(3):
        run.set(50, 10_000)
        run.ends(50)
        run.now += 10_000
    run.actions.clear()
    run.next_at = run.now
    return run


@pytest.mark.spec("G5-07")
def test_a_wall_is_noticed_with_the_first_batch_and_a_second_one_stops() -> None:
    run, plain = fast(), fast(PLAIN)
    run.ticks(2, succeed=False, limited=True)
    assert run.actions == ["halve", "critical_reset"]
    plain.ticks(4, succeed=False, limited=True)
    assert plain.actions == ["hold", "hold", "hold", "halve"]


@pytest.mark.spec("G5-07")
def test_a_wall_means_nine_in_ten_and_five_at_least() -> None:
    assert fast().ends(5, 45, limited=45).action == "halve"
    assert fast().ends(6, 44, limited=44).action == "hold"
    assert fast().ends(0, 5, limited=5).action == "halve"
    assert fast().ends(0, 44, skipped=6, limited=44).action == "hold"  # six were answered, if only with "not found"
    assert fast().ends(0, 4, limited=4).action == "aggressive_ramp"
    assert fast().ends(0, 45, limited=0).action == "hold"  # server errors are no wall: the window judges them


@pytest.mark.spec("G5-07")
def test_a_second_wall_counts_also_when_the_first_made_the_batch_small() -> None:
    run = fast()
    run.set(6, 10_000)
    run.ticks(2, succeed=False, limited=True)
    assert run.actions == ["halve", "critical_reset"]


@pytest.mark.spec("G5-08")
def test_one_burst_of_failures_lowers_the_pace_twice_at_most() -> None:
    run, plain = Run(), Run(rules=PLAIN)
    for each in (run, plain):
        each.set(25, 10_000)
        each.ends(20)
        each.now += 10_000
        each.ends(0, 75)
        each.ticks(5, succeed=True)
    assert sum(action in ("halve", "critical_reset") for action in run.actions) <= 2
    assert run.state.current_batch_size > 12
    assert sum(action == "halve" for action in plain.actions) > 2
    assert plain.state.current_batch_size == 2


# -- counters, verbs, target --------------------------------------------------------------------------------------------


@pytest.mark.spec("G5-31")
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 4), max_size=30))
def test_what_was_dispatched_has_ended_or_is_in_flight(ticks: list[tuple[int, int, int, int]]) -> None:
    run = Run()
    for completed, failed, skipped, cut in ticks:
        state, tick = begin(run.state, completed + failed + skipped + cut, now_ms=run.now)
        assert state.in_flight == tick.items
        run.state = settle(state, run.rules, tick, Tally(completed, failed, skipped), now_ms=run.now).state
        run.now += 7_000
    state = run.state
    assert state.in_flight == 0
    assert state.total_dispatched == state.total_completed + state.total_failed + state.total_skipped
    assert state.total_failed == sum(failed for _, failed, _, _ in ticks)


@pytest.mark.spec("A6-10", "F-30")
@given(st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=60))
def test_however_it_ticks_there_are_at_most_seven_minutes_kept(ticks: list[tuple[int, int, int]]) -> None:
    run = Run()
    for wait, completed, failed in ticks:
        run.now += wait
        run.ends(completed, failed)
        assert len(run.state.metrics) <= 7


@pytest.mark.spec("A6-03", "G5-09")
def test_a_reset_after_a_hundred_items_gives_zeros_and_shares_nothing() -> None:
    run = Run()
    run.ends(90, 10)
    step = reset(run.state, run.rules, now_ms=run.now)
    assert step.next_at == run.now + 1_000
    assert changed(step.state, generation=0) == fresh(Rules(), now_ms=run.now)
    assert ZonesState().metrics is not ZonesState().metrics


@pytest.mark.spec("G5-17")
def test_what_a_tick_brings_after_a_reset_is_dropped() -> None:
    run = Run()
    state, tick = begin(run.state, 5, now_ms=run.now)
    new = reset(state, run.rules, now_ms=run.now).state
    assert settle(new, run.rules, tick, Tally(5), now_ms=run.now + 1) == (new, "discarded", None)
    assert (new.total_dispatched, new.total_completed) == (0, 0)


@pytest.mark.spec("G5-17")
def test_a_reset_can_leave_a_stopped_one_stopped() -> None:
    stopped = stop(fresh(Rules(), now_ms=NOON)).state
    assert reset(stopped, Rules(), now_ms=NOON).state.running
    kept = reset(stopped, Rules(), now_ms=NOON, keep_stopped=True)
    assert (kept.state.running, kept.next_at) == (False, None)


def test_stopped_during_a_tick_it_counts_what_ended_and_sets_no_alarm() -> None:
    state, tick = begin(fresh(Rules(), now_ms=NOON), 5, now_ms=NOON)
    step = settle(stop(state).state, Rules(), tick, Tally(5), now_ms=NOON + 1)
    assert (step.next_at, step.state.total_completed) == (None, 5)


@pytest.mark.spec("G5-18")
def test_tuning_stays_on_the_rails_and_takes_effect_at_once() -> None:
    state = fresh(Rules(), now_ms=NOON)
    step = tune(state, Rules(), now_ms=NOON, batch_size=500, interval_ms=1, pending_at=NOON + 90_000)
    assert (step.state.current_batch_size, step.state.current_interval_ms) == (50, 10_000)
    assert step.next_at == NOON + 10_000
    slower = tune(state, Rules(), now_ms=NOON, interval_ms=120_000, pending_at=NOON + 5_000)
    assert slower.next_at == NOON + 5_000


@pytest.mark.spec("G5-18")
@pytest.mark.parametrize("value", ["abc", "20", float("nan"), float("inf"), 5.5, True, [5]])
def test_tuning_takes_whole_numbers_only(value: object) -> None:
    with pytest.raises(BadParameter):
        tune(fresh(Rules(), now_ms=NOON), Rules(), now_ms=NOON, batch_size=value)
    with pytest.raises(BadParameter):
        tune(fresh(Rules(), now_ms=NOON), Rules(), now_ms=NOON, interval_ms=value)


def test_tuning_does_not_cut_a_cooldown_short() -> None:
    run = Run()
    run.ends(0, 5)
    assert tune(run.state, run.rules, now_ms=NOON, interval_ms=10_000, pending_at=run.next_at).next_at == run.next_at


@pytest.mark.spec("G5-30")
@pytest.mark.parametrize("target", [1_000, 20_000, 100_000])
@pytest.mark.parametrize("takes", [0, 8_000])
def test_a_target_for_the_day_is_held(target: int, takes: int) -> None:
    run = Run(rules=Rules(target_per_day=target))
    while run.now < NOON + 86_400_000:
        run.ticks(1, succeed=True, takes=takes)
    assert run.state.total_completed == pytest.approx(target, rel=0.1)


@pytest.mark.spec("G5-30")
def test_where_the_target_sets_the_pace_batches_do_not_grow_into_lumps() -> None:
    run = Run(rules=Rules(target_per_day=1_000))
    run.ticks(20, succeed=True)
    assert run.pace == (5, 30_000)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5), st.booleans()), max_size=40))
def test_no_course_of_events_leads_off_the_rails_or_loses_the_alarm(ticks: list[tuple[int, int, int, bool]]) -> None:
    run = Run()
    for completed, failed, skipped, limited in ticks:
        assert run.next_at is not None
        run.now = run.next_at
        run.ends(completed, failed, skipped=skipped, limited=failed if limited else 0)
        assert 2 <= run.state.current_batch_size <= 50
        assert 10_000 <= run.state.current_interval_ms <= 120_000
        assert run.next_at is not None
        assert run.now < run.next_at <= run.now + 300_000


def test_a_clock_set_back_neither_keeps_it_cool_nor_deaf() -> None:
    run = Run()
    run.ends(0, 50)
    back = NOON - 3_600_000
    assert wake(run.state, run.rules, now_ms=back).next_at == back + 300_000

    run.state, run.now = wake(run.state, run.rules, now_ms=back).state, back + 300_000
    run.ends(2)
    run.ends(3)
    assert run.actions[-1] == "aggressive_ramp"
    assert max(run.state.metrics) <= run.now


def test_a_clock_set_back_does_not_hide_what_happens_from_then_on() -> None:
    run = Run()
    run.ends(2, 3)
    assert run.actions == ["halve"]
    run.now = NOON - 3_600_000
    assert run.ends(0, 5).action == "critical_reset"


@pytest.mark.spec("A6-22")
def test_a_cooldown_saved_without_an_epoch_ends_with_a_fresh_window_too() -> None:
    saved = {
        "cooldown_until": NOON + 60_000,
        "metrics": {str(NOON): {"dispatched": 50, "completed": 0, "failed": 50}},
    }
    run = Run(now=NOON + 60_000)
    run.state = load(saved, run.rules, now_ms=NOON + 1)
    assert run.ends(2).action == "hold"
