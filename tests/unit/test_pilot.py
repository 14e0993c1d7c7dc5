"""The pilot, answer by answer: it never bursts, cuts once a round trip, obeys, and knows what is not about the pace."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.pilot import Outcome, Pilot, PilotState

LATENCY = 0.2


def answered(pilot: Pilot, now: float, outcome: Outcome, *, item: str = "a", retry_after: float | None = None) -> float:
    """The next one starts as soon as it may and is answered. Says when it started."""
    while not (decision := pilot.next(now)).start:
        assert decision.again_at is not None
        now = decision.again_at
    ticket = pilot.started(now)
    pilot.finished(now + LATENCY, ticket, outcome, latency=LATENCY, retry_after=retry_after, item=item)
    return now


def cruising(answers: int = 400) -> tuple[Pilot, float]:
    """A pilot that met a limit of about two a second and settled below it."""
    pilot, now = Pilot(), 0.0
    sent: list[float] = []
    for number in range(answers):
        full = len([at for at in sent if at > now - 10]) >= 20
        now = answered(pilot, now, Outcome.THROTTLED if full else Outcome.OK, item=str(number)) + LATENCY
        if not full:
            sent.append(now)
    assert pilot.state.ceiling.known is not None
    return pilot, now


def test_a_pilot_that_knows_nothing_starts_with_one_a_second() -> None:
    pilot = Pilot()

    assert pilot.next(0.0).start
    pilot.started(0.0)

    decision = pilot.next(0.0)
    assert not decision.start
    assert decision.again_at == pytest.approx(1.0)


def test_it_never_bursts_not_even_after_a_long_rest() -> None:
    pilot, now = cruising()
    gap = 1 / pilot.rate_per_second
    starts = []
    now += 3_600
    for number in range(10):
        starts.append(answered(pilot, now, Outcome.OK, item=f"later {number}"))
        now = starts[-1]

    assert all(after - before > 0.7 * gap for before, after in pairwise(starts))


def test_answers_without_resistance_let_it_go_faster() -> None:
    pilot, now = Pilot(), 0.0
    for number in range(60):
        now = answered(pilot, now, Outcome.OK, item=str(number))

    assert pilot.rate_per_second > 2


@pytest.mark.fault("F31")
def test_refusals_of_one_round_trip_cut_the_pace_once() -> None:
    pilot, now = cruising()
    state = pilot.state
    state.ceiling.known, state.ceiling.rate, state.flights.base = 50.0, 50.0, 1.0
    state.ceiling.enter("cruise", state.flights.number, now)
    tickets = []
    for _ in range(5):
        while not (decision := pilot.next(now)).start:
            assert decision.again_at is not None
            now = decision.again_at
        tickets.append(pilot.started(now))

    pilot.finished(now + 1, tickets[0], Outcome.THROTTLED, latency=1.0, item="x")
    after_one = (pilot.rate_per_second, pilot.state.door.row, pilot.state.door.hold_until)
    for ticket in tickets[1:]:
        pilot.finished(now + 1.01, ticket, Outcome.THROTTLED, latency=1.0, item=f"x{ticket}")

    assert (pilot.rate_per_second, pilot.state.door.row, pilot.state.door.hold_until) == after_one


@pytest.mark.fault("F31")
@pytest.mark.parametrize("seconds", [1.0, 30.0, 3_000.0])
def test_retry_after_is_obeyed_to_the_second(seconds: float) -> None:
    pilot, now = cruising()
    at = answered(pilot, now, Outcome.THROTTLED, item="x", retry_after=seconds) + LATENCY

    decision = pilot.next(at + seconds - 0.001)
    assert not decision.start
    assert decision.again_at == pytest.approx(at + seconds)


def test_what_is_gone_or_unparsable_never_slows_it_down() -> None:
    pilot, other, now = Pilot(), Pilot(), 0.0
    for number in range(200):
        outcome = (Outcome.GONE, Outcome.UNPARSABLE, Outcome.OK)[number % 3]
        answered(other, now, Outcome.OK, item=str(number))
        now = answered(pilot, now, outcome, item=str(number))

    assert pilot.rate_per_second == other.rate_per_second


def test_a_lone_failure_changes_nothing_and_several_in_a_row_close_the_door() -> None:
    pilot, now = cruising()
    before = pilot.rate_per_second
    now = answered(pilot, now, Outcome.UNAVAILABLE)
    assert pilot.rate_per_second == before

    for number in range(8):
        now = answered(pilot, now, Outcome.UNAVAILABLE, item=str(number))

    assert pilot.state.door.closed
    assert pilot.state.door.hold_until - now > 5


def test_a_closed_door_is_knocked_at_once_at_a_time_and_ever_more_rarely() -> None:
    pilot, now = cruising()
    knocks = []
    for number in range(12):
        now = answered(pilot, now, Outcome.UNAVAILABLE, item=str(number))
        knocks.append(now)
    pauses = [after - before for before, after in pairwise(knocks)]

    assert pauses[-1] >= 60
    assert max(pauses) <= 241


def test_after_an_outage_it_returns_to_the_pace_it_knew() -> None:
    pilot, now = cruising()
    before = pilot.state.ceiling.known or 0.0
    for number in range(12):
        now = answered(pilot, now, Outcome.UNAVAILABLE, item=str(number))
    since = now
    for number in range(15):
        now = answered(pilot, now, Outcome.OK, item=f"again {number}")

    assert pilot.rate_per_second > 0.8 * before
    assert now - since < 300


def test_poison_items_are_told_from_refusals() -> None:
    pilot, now = cruising()
    before = pilot.state.ceiling.known or 0.0
    for number in range(3_000):
        poison = number % 100 == 50
        item = f"poison {number // 300}" if poison else str(number)
        now = answered(pilot, now, Outcome.THROTTLED if poison else Outcome.OK, item=item)

    assert pilot.rate_per_second > 0.9 * before


def test_an_item_refused_alone_again_and_again_is_charged() -> None:
    pilot, now = cruising()
    pilot.state.throttling.suspects.refused["bad"] = 2
    pilot.state.throttling.suspects.guilty = 0.9
    for number in range(30):
        now = answered(pilot, now, Outcome.OK, item=str(number))
    now = pilot.state.due
    ticket = pilot.started(now)

    assert pilot.finished(now + LATENCY, ticket, Outcome.THROTTLED, latency=LATENCY, item="bad")


def test_an_item_that_is_refused_anyway_says_nothing_about_a_closed_door() -> None:
    pilot, now = cruising()
    suspects = pilot.state.throttling.suspects
    suspects.guilty = 0.9
    suspects.refused.update({f"bad {number}": 2 for number in range(8)})
    for number in range(4):
        now = answered(pilot, now, Outcome.THROTTLED, item=f"good {number}")
    row, pause = pilot.state.door.row, pilot.state.door.pause
    assert row >= 2

    for number in range(8):
        now = answered(pilot, now, Outcome.THROTTLED, item=f"bad {number}")

    assert (pilot.state.door.row, pilot.state.door.pause) == (row, pause)


def test_failures_do_not_lower_the_ceiling_of_a_service_that_says_when_it_refuses() -> None:
    pilot, now = cruising()
    before = pilot.state.ceiling.known
    outcomes = [Outcome.UNAVAILABLE, Outcome.UNAVAILABLE, Outcome.OK, Outcome.UNAVAILABLE, Outcome.UNAVAILABLE]
    for number, outcome in enumerate(outcomes):
        now = answered(pilot, now, outcome, item=str(number))

    assert pilot.state.door.row
    assert pilot.state.ceiling.known == before


def test_a_change_of_pace_is_put_into_words() -> None:
    pilot, now = cruising()
    answered(pilot, now, Outcome.THROTTLED, item="x", retry_after=60)

    assert pilot.explain() == "refused by the service, with Retry-After 60 s: paused for 60 s"


def test_an_answer_to_a_request_that_nobody_knows_of_is_no_error() -> None:
    assert Pilot().finished(1.0, 77, Outcome.OK, latency=0.1) is False


OUTCOMES = st.sampled_from([*[Outcome.OK] * 6, *Outcome])


@given(st.lists(st.tuples(OUTCOMES, st.integers(0, 5), st.sampled_from([None, None, 1.0, 20.0])), max_size=150))
@settings(max_examples=60)
def test_saved_and_loaded_after_every_step_it_decides_the_same(
    answers: list[tuple[Outcome, int, float | None]],
) -> None:
    pilot, moving, now = Pilot(), Pilot(), 0.0
    for outcome, item, retry_after in answers:
        moving = Pilot(msgspec.json.decode(msgspec.json.encode(moving.state), type=PilotState))
        assert moving.next(now) == pilot.next(now)
        now = answered(pilot, now, outcome, item=str(item), retry_after=retry_after)
        while not (decision := moving.next(now)).start:
            assert decision.again_at is not None
            assert decision.again_at <= now + 1e-6
        ticket = moving.started(now)
        moving = Pilot(msgspec.json.decode(msgspec.json.encode(moving.state), type=PilotState))
        moving.finished(now + LATENCY, ticket, outcome, latency=LATENCY, retry_after=retry_after, item=str(item))
        assert moving.state == pilot.state


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
    pilot = Pilot(PilotState(rate_min=rate_min, rate_max=rate_min * times, parallel=parallel))
    now, under_way = 0.0, []
    for outcome, latency in answers:
        decision = pilot.next(now)
        assert decision.parallel <= parallel
        if decision.start:
            under_way.append((now, pilot.started(now), latency, outcome))
            assert len(under_way) <= parallel
        elif decision.again_at is not None and (not under_way or decision.again_at < now + latency):
            now = decision.again_at
        else:
            _, ticket, took, outcome = under_way.pop(0)
            now += 0.001
            pilot.finished(now, ticket, outcome, latency=took)
        assert rate_min <= pilot.rate_per_second <= rate_min * times * (1 + 1e-9)
