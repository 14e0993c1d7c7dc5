"""The limiter, answer by answer: it never bursts, cuts once a round trip, obeys, and knows what is not about the pace."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.budget import Budget
from penstock.control.limit import Limit
from penstock.control.limiter import Limiter
from penstock.control.limiter_state import LimiterState
from penstock.control.limiter_words import put_into_words
from penstock.control.outcome import Outcome

LATENCY = 0.2


def answered(
    limiter: Limiter, now: float, outcome: Outcome, *, item: str = "a", retry_after: float | None = None
) -> float:
    """The next one starts as soon as it may and is answered. Says when it started."""
    while not (decision := limiter.next(now)).start:
        assert decision.again_at is not None
        now = decision.again_at
    ticket = limiter.started(now)
    limiter.finished(now + LATENCY, ticket, outcome, latency=LATENCY, retry_after=retry_after, item=item)
    return now


def cruising(answers: int = 400) -> tuple[Limiter, float]:
    """A limiter that met a limit of about two a second and settled below it."""
    limiter, now = Limiter(), 0.0
    sent: list[float] = []
    for number in range(answers):
        full = len([at for at in sent if at > now - 10]) >= 20
        now = answered(limiter, now, Outcome.THROTTLED if full else Outcome.OK, item=str(number)) + LATENCY
        if not full:
            sent.append(now)
    assert limiter.state.limit.known is not None
    return limiter, now


def test_a_pilot_that_knows_nothing_starts_with_one_a_second() -> None:
    limiter = Limiter()

    assert limiter.next(0.0).start
    limiter.started(0.0)

    decision = limiter.next(0.0)
    assert not decision.start
    assert decision.again_at == pytest.approx(4.0)


def test_it_never_bursts_not_even_after_a_long_rest() -> None:
    limiter, now = cruising()
    gap = 1 / limiter.rate_per_second
    starts = []
    now += 3_600
    for number in range(10):
        starts.append(answered(limiter, now, Outcome.OK, item=f"later {number}"))
        now = starts[-1]

    assert all(after - before > 0.7 * gap for before, after in pairwise(starts))


def test_answers_without_resistance_let_it_go_faster() -> None:
    limiter, now = Limiter(), 0.0
    for number in range(60):
        now = answered(limiter, now, Outcome.OK, item=str(number))

    assert limiter.rate_per_second > 2


@pytest.mark.fault("F31")
def test_refusals_of_one_round_trip_cut_the_pace_once() -> None:
    limiter, now = cruising()
    state = limiter.state
    state.limit.low, state.limit.high, state.limit.rate, state.limit.phase = 49.0, 51.0, 50.0, "cruise"
    state.flights.base = state.flights.latency = 1.0
    state.flights.throughput = 50.0
    tickets = []
    for _ in range(5):
        while not (decision := limiter.next(now)).start:
            assert decision.again_at is not None
            now = decision.again_at
        tickets.append(limiter.started(now))

    limiter.finished(now + 1, tickets[0], Outcome.THROTTLED, latency=1.0, item="x")
    after_one = (limiter.rate_per_second, limiter.state.closure.row, limiter.state.closure.hold_until)
    for ticket in tickets[1:]:
        limiter.finished(now + 1.01, ticket, Outcome.THROTTLED, latency=1.0, item=f"x{ticket}")

    assert (limiter.rate_per_second, limiter.state.closure.row, limiter.state.closure.hold_until) == after_one


@pytest.mark.fault("F31")
@pytest.mark.parametrize("seconds", [1.0, 30.0, 3_000.0])
def test_retry_after_is_obeyed_to_the_second(seconds: float) -> None:
    limiter, now = cruising()
    at = answered(limiter, now, Outcome.THROTTLED, item="x", retry_after=seconds) + LATENCY

    decision = limiter.next(at + seconds - 0.001)
    assert not decision.start
    assert decision.again_at is not None
    # After a short one it waits a little longer of its own.
    assert at + seconds <= decision.again_at + 1e-6 <= at + max(seconds, 3) + 1e-3


def test_what_is_gone_or_unparsable_never_slows_it_down() -> None:
    limiter, other, now = Limiter(), Limiter(), 0.0
    for number in range(200):
        outcome = (Outcome.GONE, Outcome.UNPARSABLE, Outcome.OK)[number % 3]
        answered(other, now, Outcome.OK, item=str(number))
        now = answered(limiter, now, outcome, item=str(number))

    assert limiter.rate_per_second == other.rate_per_second


def test_a_lone_failure_changes_nothing_and_several_in_a_row_close_the_door() -> None:
    limiter, now = cruising()
    before = limiter.rate_per_second
    now = answered(limiter, now, Outcome.UNAVAILABLE)
    assert limiter.rate_per_second == before

    for number in range(8):
        now = answered(limiter, now, Outcome.UNAVAILABLE, item=str(number))

    assert limiter.state.closure.row >= 5
    assert limiter.state.closure.down
    assert limiter.state.closure.hold_until - now > 5


def test_a_ban_is_probed_one_request_at_a_time_and_ever_more_rarely() -> None:
    limiter, now = cruising()
    knocks = []
    for number in range(12):
        now = answered(limiter, now, Outcome.UNAVAILABLE, item=str(number))
        knocks.append(now)
    pauses = [after - before for before, after in pairwise(knocks)]

    assert pauses[-1] >= 60
    assert max(pauses) <= 241


def test_after_an_outage_it_returns_to_the_pace_it_knew() -> None:
    limiter, now = cruising()
    before = limiter.state.limit.known or 0.0
    for number in range(12):
        now = answered(limiter, now, Outcome.UNAVAILABLE, item=str(number))
    since = now
    while limiter.rate_per_second < 0.8 * before:
        now = answered(limiter, now, Outcome.OK, item=f"again {now}")

    assert now - since < 300


def test_poison_items_are_distinguished_from_refusals() -> None:
    limiter, now = cruising()
    before = limiter.state.limit.known or 0.0
    for number in range(3_000):
        poison = number % 100 == 50
        item = f"poison {number // 300}" if poison else str(number)
        now = answered(limiter, now, Outcome.THROTTLED if poison else Outcome.OK, item=item)

    assert limiter.rate_per_second > 0.9 * before


def test_an_item_refused_alone_again_and_again_is_charged() -> None:
    limiter, now = cruising()
    limiter.state.throttling.suspects.refused["bad"] = 2
    limiter.state.throttling.suspects.guilty = 0.9
    for number in range(30):
        now = answered(limiter, now, Outcome.OK, item=str(number))
    now = limiter.state.due
    ticket = limiter.started(now)

    assert limiter.finished(now + LATENCY, ticket, Outcome.THROTTLED, latency=LATENCY, item="bad")


def test_an_item_that_is_refused_anyway_says_nothing_about_a_closed_door() -> None:
    limiter, now = cruising()
    suspects = limiter.state.throttling.suspects
    suspects.guilty = 0.9
    suspects.refused.update({f"bad {number}": 2 for number in range(8)})
    for number in range(4):
        now = answered(limiter, now, Outcome.THROTTLED, item=f"good {number}")
    row, pause = limiter.state.closure.row, limiter.state.closure.pause
    assert row >= 2

    for number in range(8):
        now = answered(limiter, now, Outcome.THROTTLED, item=f"bad {number}")

    assert (limiter.state.closure.row, limiter.state.closure.pause) == (row, pause)


def test_failures_do_not_lower_the_ceiling_of_a_service_that_says_when_it_refuses() -> None:
    limiter, now = cruising()
    before = limiter.state.limit.known
    outcomes = [Outcome.UNAVAILABLE, Outcome.UNAVAILABLE, Outcome.OK, Outcome.UNAVAILABLE, Outcome.UNAVAILABLE]
    for number, outcome in enumerate(outcomes):
        now = answered(limiter, now, outcome, item=str(number))

    assert limiter.state.closure.row
    assert limiter.state.limit.known == before


def test_a_change_of_pace_is_put_into_words() -> None:
    limiter, now = cruising()
    answered(limiter, now, Outcome.THROTTLED, item="x", retry_after=60)

    assert limiter.words == "refused by the service, with Retry-After 60 s: paused for 60 s"


def test_only_a_change_of_a_fifth_and_a_pause_of_seconds_are_put_into_words() -> None:
    state, told = LimiterState(), list[str]()
    for rate, outcome in [
        (1.0, Outcome.OK),
        (1.1, Outcome.OK),
        (1.5, Outcome.OK),
        (1.4, Outcome.OK),
        (1.0, Outcome.GONE),
        (0.5, Outcome.THROTTLED),
        (0.3, Outcome.UNAVAILABLE),
    ]:
        state.closure.hold_until = 104.0
        put_into_words(state, rate, outcome, 100.0, None)
        told += [] if told[-1:] == [state.words] else [state.words]
    state.closure.hold_until = 190.0
    put_into_words(state, 0.4, Outcome.FAILED, 100.0, None)

    assert told == [
        "begins at 1.0 a second",
        "no resistance: 1.0 a second to 1.5 a second",
        "latency rises: 1.5 a second to 1.0 a second",
        "refused by the service: 1.0 a second to 30.0 a minute",
        "the service is unavailable: 30.0 a minute to 18.0 a minute",
    ]
    assert state.words == "it fails: paused for 90 s"
    put_into_words(state, 0.4, Outcome.OK, 200.0, None)
    assert state.words == "begins at 24.0 a minute"


def test_an_answer_to_an_unknown_request_is_no_error() -> None:
    assert Limiter().finished(1.0, 77, Outcome.OK, latency=0.1) is False


OUTCOMES = st.sampled_from([*[Outcome.OK] * 6, *Outcome])


@given(st.lists(st.tuples(OUTCOMES, st.integers(0, 5), st.sampled_from([None, None, 1.0, 20.0])), max_size=150))
@settings(max_examples=60)
def test_saved_and_loaded_after_every_step_it_decides_the_same(
    answers: list[tuple[Outcome, int, float | None]],
) -> None:
    limiter, moving, now = Limiter(), Limiter(), 0.0
    for outcome, item, retry_after in answers:
        moving = Limiter(msgspec.json.decode(msgspec.json.encode(moving.state), type=LimiterState))
        assert moving.next(now) == limiter.next(now)
        now = answered(limiter, now, outcome, item=str(item), retry_after=retry_after)
        while not (decision := moving.next(now)).start:
            assert decision.again_at is not None
            assert decision.again_at <= now + 1e-6
        ticket = moving.started(now)
        moving = Limiter(msgspec.json.decode(msgspec.json.encode(moving.state), type=LimiterState))
        moving.finished(now + LATENCY, ticket, outcome, latency=LATENCY, retry_after=retry_after, item=str(item))
        assert moving.state == limiter.state


@pytest.mark.spec("A6-04")
@given(
    st.lists(st.tuples(OUTCOMES, st.floats(0.001, 12.0)), max_size=200),
    st.floats(0.01, 5.0),
    st.floats(1.0, 50.0),
    st.integers(1, 16),
)
@settings(max_examples=60)
def test_bounds_are_rails_that_no_answer_can_push_it_over(
    answers: list[tuple[Outcome, float]], rate_min: float, times: float, parallel: int
) -> None:
    limiter = Limiter(LimiterState(rate_min=rate_min, rate_max=rate_min * times, parallel=parallel))
    now, under_way = 0.0, []
    for outcome, latency in answers:
        decision = limiter.next(now)
        assert decision.parallel <= parallel
        if decision.start:
            under_way.append((now, limiter.started(now), latency, outcome))
            assert len(under_way) <= parallel
        elif decision.again_at is not None and (not under_way or decision.again_at < now + latency):
            now = decision.again_at
        else:
            _, ticket, took, outcome = under_way.pop(0)
            now += 0.001
            limiter.finished(now, ticket, outcome, latency=took)
        assert rate_min <= limiter.rate_per_second <= rate_min * times * (1 + 1e-9)


def refuse(limiter: Limiter, now: float, times: int) -> float:
    """So many single refusals, each followed by answers."""
    for number in range(times):
        now = answered(limiter, now, Outcome.THROTTLED, item=f"refused {now} {number}")
        for after in range(80):
            now = answered(limiter, now, Outcome.OK, item=f"after {now} {after}")
    return now


def test_after_a_refusal_it_waits_for_the_responses_in_flight_and_returns_well_below() -> None:
    limiter, now = cruising()
    limiter.state.flights.base = limiter.state.flights.latency = 2.0
    before = limiter.rate_per_second
    tickets = []
    for _ in range(2):
        while not (decision := limiter.next(now)).start:
            assert decision.again_at is not None
            now = decision.again_at
        tickets.append(limiter.started(now))

    limiter.finished(now + 0.01, tickets[0], Outcome.THROTTLED, latency=0.01, item="x")
    waits = limiter.next(now + 1.9)
    limiter.finished(now + 2, tickets[1], Outcome.OK, latency=2.0, item="y")

    assert not waits.start
    assert limiter.rate_per_second < 0.85 * before


def test_refusals_within_each_window_are_counted_and_few_are_allowed() -> None:
    budget = Budget()

    for at in (0.0, 310.0, 650.0):
        assert budget.free_at(at) == at
        budget.spend(at)

    assert budget.count(660.0) == [1, 1, 2, 3]
    assert budget.limits(660.0) == [1, 1, 2, 4]
    assert budget.is_spent(660.0)
    assert budget.free_at(660.0) == pytest.approx(950.0)
    budget.survive(700.0)
    assert budget.limits(700.0) == [2, 2, 3, 4]


def banned(limiter: Limiter, now: float, seconds: float = 1_800.0) -> tuple[float, list[float]]:
    """Everything is refused for so long. Return the time at which it accepts again, and when it was probed."""
    probes, until = [], now + seconds
    while now < until:
        now = answered(limiter, now, Outcome.THROTTLED, item=f"ban {now}")
        probes.append(now)
    return answered(limiter, now, Outcome.OK, item="open") + LATENCY, probes


def test_during_a_ban_it_probes_at_growing_intervals_of_minutes() -> None:
    limiter, now = cruising()

    _, probes = banned(limiter, now)

    pauses = [after - before for before, after in pairwise(probes)]
    assert len(probes) <= 8
    assert all(pause >= 60 for pause in pauses[3:])


def test_one_ban_teaches_and_the_lesson_survives_a_restart_and_fades_over_days() -> None:
    limiter, now = cruising()
    now = refuse(limiter, now, 3)
    now, _ = banned(limiter, now)
    before = limiter.state.closure.counts

    loaded = msgspec.json.decode(msgspec.json.encode(limiter.state), type=LimiterState).budget
    allowed = loaded.limits(now)

    assert loaded.bans == 1
    assert all(after <= max(1, count - 1) for after, count in zip(allowed, before, strict=True))
    assert loaded.free_at(now) > now
    assert loaded.limits(now + 30 * 86_400) >= allowed


def test_it_explains_the_limit_its_next_step_and_what_a_refusal_costs() -> None:
    fresh = Limiter()
    limiter, now = cruising()

    assert "not known yet" in fresh.explain(0.0)
    told = limiter.explain(now)
    assert "The limit is about" in told
    assert "within 60 min" in told
    now, _ = banned(limiter, now)
    assert "A ban taught it" in limiter.explain(now)


def test_it_explains_a_limit_of_requests_at_once_and_how_long_a_pause_lasts() -> None:
    limiter = Limiter()
    limiter.state.flights.places = 2
    assert "works on 2 requests at once" in limiter.explain(0.0)
    limiter.state.flights.limit = 3
    assert "takes 3 requests at once" in limiter.explain(0.0)
    limiter.state.closure.hold_until = 30.0
    assert "It refuses, so the next request starts in 30 s." in limiter.explain(0.0)
    limiter.state.closure.down = True
    assert "It fails, so the next request starts in 30 s." in limiter.explain(0.0)
    assert "grows until the service refuses" in limiter.explain(30.0)


def test_a_refusal_that_says_when_to_come_back_is_never_taken_for_a_bad_item() -> None:
    limiter, now = cruising()
    limiter.state.throttling.test.usual, limiter.state.throttling.test.enough = 0.03, 6.5
    limiter.state.throttling.suspects.refused["bad"] = 2

    answered(limiter, now, Outcome.THROTTLED, item="bad", retry_after=1.0)

    assert limiter.state.closure.row == 1


def test_of_refusals_in_a_row_the_third_is_believed_whatever_their_items_are() -> None:
    limiter, now = cruising()
    limiter.state.throttling.test.usual, limiter.state.throttling.test.enough = 0.03, 6.5
    limiter.state.throttling.suspects.guilty = 0.9
    limiter.state.throttling.suspects.refused.update({f"bad {number}": 1 for number in range(3)})
    rows = []

    for number in range(3):
        now = answered(limiter, now, Outcome.THROTTLED, item=f"bad {number}")
        rows.append(limiter.state.closure.row)

    assert rows == [0, 0, 1]


def test_a_refusal_is_survived_while_later_ones_go_on() -> None:
    budget = Budget()
    for at in range(0, 100, 10):
        budget.spend(float(at))

    budget.survive(95.0)

    assert budget.limits(95.0) == [7, 8, 8, 8]


def test_the_growth_of_a_probe_is_bounded_by_the_window_until_more_is_accepted_than_it_held() -> None:
    limit = Limit(rate=1.0, phase="probe", low=1.0, high=1.2, climbed_at=0.01, window=600.0, window_size=600)
    for second in range(1, 550):
        limit.climb(second, float(second), 0.0, 0.1)
    in_window = limit.rate

    limit.climb(901, 550.0, 0.0, 0.1)

    assert 1.2 < in_window < 1.0 * math.exp(550 / 600) * 1.01
    assert limit.window == 0.0
