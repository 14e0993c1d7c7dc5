"""Settling: done, again or dead, only while the token is still one's own, and all of a group or nothing."""

from __future__ import annotations

import pytest

from penstock.contracts.effects import Settle
from penstock.contracts.ledger import StaleUnits
from penstock.contracts.store import Store
from penstock.model.outcome import DONE, Again, Dead, Failure
from tests.contract.inspection import Counted, Inspect
from tests.contract.material import ITEMS, NEW_ITEM, ORDERS, SECOND, T0, Desk, done, message, read_rows, sheet, want


def test_done_removes_the_message_and_counts_it(desk: Desk, inspect: Inspect) -> None:
    desk.settle(desk.given_one())

    assert inspect.messages() == []
    assert inspect.counted() == {ORDERS: Counted(sent=1, acked=1)}


def test_many_deliveries_of_several_claims_are_done_in_one_commit(desk: Desk, inspect: Inspect) -> None:
    desk.send(*(message() for _ in range(30)))
    held = [*desk.claim(10), *desk.claim(5), *desk.claim(15)]

    desk.commit(*map(done, held))

    assert inspect.messages() == []
    assert inspect.counted()[ORDERS].acked == 30


def test_again_brings_the_message_back_after_its_delay_and_charges_an_attempt(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one()

    desk.settle(delivery, Again(30.0, failure=Failure("Boom", "it broke")))

    (row,) = inspect.messages()
    assert (row.due, row.worker, row.attempts, row.crashes) == (T0 + 30 * SECOND, None, 1, 0)
    assert row.error_class == "Boom"
    assert desk.claim() == []
    desk.later(30)
    assert desk.claim_one().attempt == 2


@pytest.mark.spec("A1-06")
def test_attempts_count_one_by_one_and_the_time_of_sending_never_changes(desk: Desk) -> None:
    desk.send(message())
    seen = []
    for _ in range(4):
        delivery = desk.claim_one()
        seen.append((delivery.attempt, delivery.sent_at))
        desk.settle(delivery, Again(1.0))
        desk.later(1)

    assert seen == [(1, T0), (2, T0), (3, T0), (4, T0)]


def test_again_without_charge_leaves_the_attempts_alone(desk: Desk) -> None:
    delivery = desk.given_one()

    desk.settle(delivery, Again(0.0, charged=False))

    assert desk.claim_one().attempt == 1


def test_an_error_once_recorded_stays_until_the_next(desk: Desk, inspect: Inspect) -> None:
    desk.settle(desk.given_one(), Again(0.0, failure=Failure("First", "one")))
    desk.settle(desk.claim_one(), Again(0.0, charged=False))
    assert inspect.messages()[0].error_class == "First"

    desk.settle(desk.claim_one(), Again(0.0, failure=Failure("Second", "two")))
    assert inspect.messages()[0].error_class == "Second"


@pytest.mark.spec("A3-01")
def test_dead_becomes_a_dead_letter_with_its_story(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one(body=b"poison")

    desk.settle(delivery, Dead("exhausted", Failure("Boom", "it broke for good")))

    (letter,) = inspect.dead()
    assert (letter.id, letter.body, letter.queue) == (delivery.id, b"poison", ORDERS)
    assert (letter.reason, letter.error_class, letter.error_message) == ("exhausted", "Boom", "it broke for good")
    assert (letter.attempts, letter.crashes) == (1, 0)
    assert inspect.messages() == []
    assert inspect.counted() == {ORDERS: Counted(sent=1, dead=1)}


def test_a_unit_without_settlement_keeps_the_delivery(desk: Desk, inspect: Inspect) -> None:
    """This is what saves work midway: the fence is checked, the row stays held."""
    delivery = desk.given_one()

    desk.commit(sheet(message(b"midway", queue="next"), delivery=delivery))

    held = next(row for row in inspect.messages() if row.queue == ORDERS)
    assert (held.worker, held.token) == (desk.me, delivery.token)
    desk.settle(delivery)


def test_midway_and_final_unit_of_one_delivery_fit_into_one_group(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one()

    desk.commit(
        sheet(message(queue="one"), delivery=delivery),
        sheet(message(queue="two"), delivery=delivery),
        done(delivery, message(queue="three")),
    )

    assert sorted(row.queue for row in inspect.messages()) == ["one", "three", "two"]


# -- the fence ----------------------------------------------------------------------------------------------------

SETTLEMENTS = [DONE, Again(0.0), Again(5.0, charged=False), Dead("discarded"), None]


@pytest.mark.fault("F03")
@pytest.mark.parametrize("settlement", SETTLEMENTS)
def test_a_stale_token_settles_nothing_and_saves_nothing(
    desk: Desk, store: Store, inspect: Inspect, settlement: Again | Dead | None
) -> None:
    desk.open_shop()
    stale = desk.given_one()
    desk.settle(stale, Again(0.0, charged=False))
    fresh = desk.claim_one()
    before = inspect.messages(), inspect.dead(), inspect.counted()
    unit = sheet(message(queue="never"), delivery=stale, settlement=settlement)
    unit.write(NEW_ITEM, id=1, name="never")

    with pytest.raises(StaleUnits) as refused:
        desk.commit(unit)

    assert refused.value.stale == [unit]
    assert (inspect.messages(), inspect.dead(), inspect.counted()) == before
    assert read_rows(store, ITEMS) == []
    desk.settle(fresh)


def test_stale_units_names_exactly_the_stale_ones_and_nothing_of_the_group_is_saved(
    desk: Desk, store: Store, inspect: Inspect
) -> None:
    desk.open_shop()
    desk.send(*(message() for _ in range(6)))
    held = desk.claim(6)
    for delivery in (held[1], held[4]):
        desk.settle(delivery, Again(60.0, charged=False))
    units = [done(delivery) for delivery in held]
    units[5].fences = [Settle(held[5], Again(3.0))]
    for number, unit in enumerate(units):
        unit.write(NEW_ITEM, id=number, name="x")
    outside = sheet(message(queue="outside"))

    with pytest.raises(StaleUnits) as refused:
        desk.commit(*units, outside, wants=[want()])

    assert refused.value.stale == [units[1], units[4]]
    assert read_rows(store, ITEMS) == []
    assert len(inspect.messages()) == 6
    assert inspect.counted() == {ORDERS: Counted(sent=6)}


def test_a_released_rows_old_token_is_dead_even_before_anybody_claims_it(desk: Desk) -> None:
    delivery = desk.given_one()
    desk.settle(delivery, Again(0.0, charged=False))

    with pytest.raises(StaleUnits):
        desk.settle(delivery)


def test_a_row_released_and_claimed_in_one_commit_belongs_to_the_new_claim(desk: Desk) -> None:
    old = desk.given_one()

    (new,) = desk.commit(sheet(delivery=old, settlement=Again(0.0)), wants=[want()]).claimed

    assert new.seq == old.seq
    with pytest.raises(StaleUnits):
        desk.settle(old)
    desk.settle(new)


def test_settling_twice_is_refused_the_second_time(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one()
    desk.settle(delivery)

    with pytest.raises(StaleUnits):
        desk.settle(delivery)

    assert inspect.counted()[ORDERS].acked == 1


def test_another_writer_may_settle_with_the_token_it_was_given(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    """The fence is the token and not the connection: a writer that reopened its file goes on."""
    delivery = desk.given_one()

    neighbour.settle(delivery)

    assert inspect.messages() == []


def test_a_token_of_one_row_does_not_open_another(desk: Desk) -> None:
    desk.send(message(), message())
    first, second = desk.claim(1)[0], desk.claim(1)[0]

    with pytest.raises(StaleUnits):
        desk.settle(first._replace(seq=second.seq))


def test_a_commit_of_nothing_leaves_no_trace(desk: Desk) -> None:
    """Or every look of an idle worker would make its neighbours look, and theirs would make it look again."""
    first, second = desk.commit(), desk.commit()

    assert first.is_empty
    assert second.number == first.number
