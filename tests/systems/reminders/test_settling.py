"""The rules by which a fire ends: pure functions of the results of its channels."""

from __future__ import annotations

import itertools

import pytest

from penstock_systems.reminders.settings import CHANNEL_SECONDS, CLAIM_ROWS, Settings
from penstock_systems.reminders.settling import (
    Policy,
    Regular,
    Result,
    Settlement,
    Standing,
    backoff_ms,
    is_dead,
    settle,
)

MINUTE, DAY = 60_000, 86_400_000
NOW = 1_772_438_400_000
DELAYS = (1 * MINUTE, 5 * MINUTE, 30 * MINUTE)
POLICY = Policy(3, DELAYS)
SENT = Result("sent")
FAILED = Result("failed", "answered 500")
ONCE = Standing(is_recurring=False, error_count=0, occurrence_at=NOW)
DAILY = Standing(is_recurring=True, error_count=0, occurrence_at=NOW)


def ended(row: Standing, next_in: int | None = DAY, policy: Policy = POLICY, **results: Result) -> Settlement:
    following = None if next_in is None or not row.is_recurring else Regular(NOW + next_in, 0)
    return settle(row, results, now=NOW, policy=policy, next_regular=lambda: following)


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-11")
def test_full_success_full_failure_and_partial_success_are_distinguished() -> None:
    told = {}
    for email, webhook in itertools.product((SENT, FAILED), repeat=2):
        found = ended(ONCE, email=email, webhook=webhook)
        told[email.status, webhook.status] = (found.is_done, found.error_count, found.last_error)

    assert told == {
        ("sent", "sent"): (True, 0, None),
        ("sent", "failed"): (False, 0, "partial: webhook"),
        ("failed", "sent"): (False, 0, "partial: email"),
        ("failed", "failed"): (False, 1, "email: answered 500; webhook: answered 500"),
    }


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-13")
def test_after_full_success_a_recurring_row_advances_and_another_is_done() -> None:
    tired = DAILY._replace(error_count=2)
    found = ended(tired, email=SENT, webhook=SENT)
    assert (found.next_fire_at, found.advances, found.error_count, found.last_error) == (NOW + DAY, True, 0, None)
    assert found.is_delivered
    assert ended(ONCE, email=SENT) == Settlement(None, 0, None, is_delivered=True, is_done=True)


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-14", "G3-03", "G3-04", "F-41")
def test_partial_success_counts_as_delivered_and_raises_no_counter() -> None:
    recurring = ended(DAILY._replace(error_count=2), email=SENT, webhook=FAILED)
    assert (recurring.next_fire_at, recurring.error_count, recurring.last_error) == (NOW + DAY, 0, "partial: webhook")
    assert recurring.gives_up == ("webhook",)

    once = ended(ONCE._replace(error_count=2), email=SENT, webhook=FAILED)
    assert (once.next_fire_at, once.error_count, once.is_done, once.parks) == (NOW + MINUTE, 0, False, False)
    again = ended(ONCE, email=SENT, webhook=FAILED._replace(attempt=2))
    assert again.next_fire_at == NOW + 5 * MINUTE
    over = ended(ONCE, email=SENT, webhook=FAILED._replace(attempt=3))
    assert (over.parks, over.gives_up, over.dead) == (True, ("webhook",), "partial: webhook (webhook: answered 500)")


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-15", "F-41")
def test_after_full_failure_the_row_backs_off_by_its_count() -> None:
    assert [backoff_ms(count, DELAYS) for count in (0, 1, 2, 9)] == [MINUTE, 5 * MINUTE, 30 * MINUTE, 30 * MINUTE]
    patient = Policy(20, DELAYS)
    for count, delay in ((0, 1), (1, 5), (2, 30), (9, 30)):
        found = ended(ONCE._replace(error_count=count), policy=patient, email=FAILED)
        assert (found.error_count, found.next_fire_at) == (count + 1, NOW + delay * MINUTE)
        assert found.last_error == "email: answered 500"


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-16", "G3-01")
def test_the_count_decides_when_a_row_is_dead() -> None:
    assert [is_dead(count, 3) for count in (2, 3)] == [False, True]

    def delays(policy: Policy) -> list[int | None]:
        found, row = [], ONCE
        for _ in range(5):
            settlement = ended(row, policy=policy, email=FAILED)
            found.append(None if settlement.next_fire_at is None else (settlement.next_fire_at - NOW) // MINUTE)
            row = row._replace(error_count=settlement.error_count)
            if settlement.parks:
                break
        return found

    assert delays(POLICY) == [1, 5, None]
    assert delays(Policy(4, DELAYS)) == [1, 5, 30, None]
    assert Settings().unreachable == ("30m",)
    assert Settings(retries=4).unreachable == ()


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-18", "G3-02")
def test_a_recurring_row_that_is_given_up_continues_with_its_next_occurrence() -> None:
    found = ended(DAILY._replace(error_count=2), email=FAILED)
    assert (found.next_fire_at, found.error_count, found.advances, found.parks) == (NOW + DAY, 0, True, False)
    assert found.dead == "email: answered 500"


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("C-20", "G3-13")
def test_a_retry_is_never_later_than_the_next_occurrence() -> None:
    minutely = DAILY._replace(error_count=1)
    found = ended(minutely, next_in=MINUTE, policy=Policy(20, DELAYS), email=FAILED)
    assert (found.next_fire_at, found.error_count, found.advances) == (NOW + MINUTE, 2, True)


@pytest.mark.only_on("sqlite")
def test_a_failure_that_is_final_is_not_retried_and_throttling_is_not_charged() -> None:
    assert ended(ONCE, email=FAILED._replace(is_permanent=True)).parks
    slow = ended(ONCE, email=FAILED._replace(is_throttled=True, retry_after_ms=90_000))
    assert (slow.next_fire_at, slow.error_count) == (NOW + 90_000, 0)
    endless = ended(ONCE._replace(occurrence_at=NOW - DAY), email=FAILED._replace(is_throttled=True))
    assert endless.error_count == 1


@pytest.mark.only_on("sqlite")
def test_a_channel_on_hold_is_neither_a_success_nor_a_failure() -> None:
    found = ended(ONCE, email=Result("held"), webhook=SENT)
    assert (found.is_done, found.last_error, found.is_delivered) == (True, "held: email", True)
    alone = ended(ONCE, email=Result("held"))
    assert (alone.is_done, alone.is_delivered) == (True, False)


@pytest.mark.only_on("sqlite")
def test_nagging_repeats_a_delivered_fire_until_it_is_acknowledged_or_the_next_occurrence() -> None:
    nagging = DAILY._replace(nag_every_ms=10 * MINUTE, nag_left=2)
    found = ended(nagging, email=SENT)
    assert (found.next_fire_at, found.extra, found.nag_left, found.advances) == (NOW + 10 * MINUTE, "nag", 1, True)
    for stopped in (nagging._replace(is_acked=True), nagging._replace(nag_left=0)):
        assert ended(stopped, email=SENT).next_fire_at == NOW + DAY
    assert ended(nagging, next_in=5 * MINUTE, email=SENT).next_fire_at == NOW + 5 * MINUTE
    assert ended(nagging, email=FAILED).next_fire_at == NOW + MINUTE


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A15-25")
def test_the_numbers_of_the_source_are_the_defaults() -> None:
    assert (CHANNEL_SECONDS, CLAIM_ROWS, Settings().retries) == (10.0, 100, 3)
    assert Settings().backoff_ms == DELAYS
