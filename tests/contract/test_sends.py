"""Sending: all of a unit or nothing, each id once while it waits, and counted exactly."""

from __future__ import annotations

import pytest

from penstock.model.message import KEYED
from penstock.model.outcome import Again
from tests.contract.inspection import Counted, Inspect
from tests.contract.material import ORDERS, T0, Desk, bodies, done, message, sheet


@pytest.mark.parametrize("count", [1, 2, 49, 50, 51, 100, 137])
def test_any_number_of_messages_goes_into_one_commit(desk: Desk, inspect: Inspect, count: int) -> None:
    sent = [message(str(number).encode()) for number in range(count)]

    desk.send(*sent)

    assert [(row.id, row.body) for row in inspect.messages()] == [(each.id, each.body) for each in sent]
    assert inspect.counted() == {ORDERS: Counted(sent=count)}


def test_several_queues_are_counted_each_for_itself(desk: Desk, inspect: Inspect) -> None:
    desk.commit(
        sheet(message(queue="a"), message(queue="b")), sheet(message(queue="b")), sheet(*(message() for _ in range(60)))
    )

    assert inspect.counted() == {"a": Counted(sent=1), "b": Counted(sent=2), ORDERS: Counted(sent=60)}


@pytest.mark.parametrize("others", [0, 3, 60])
def test_an_id_that_is_still_waiting_is_ignored_and_not_counted(desk: Desk, inspect: Inspect, others: int) -> None:
    first = message(b"first")
    desk.send(first)

    desk.send(first._replace(body=b"second"), *(message(b"other") for _ in range(others)))

    assert [row.body for row in inspect.messages()] == [b"first"] + [b"other"] * others
    assert inspect.counted() == {ORDERS: Counted(sent=1 + others)}


def test_an_id_that_is_held_is_ignored_too(desk: Desk, inspect: Inspect) -> None:
    sent = message(b"first")
    desk.send(sent)
    desk.claim_one()

    desk.send(sent)

    assert len(inspect.messages()) == 1
    assert desk.claim() == []


def test_an_id_twice_in_one_commit_is_sent_once(desk: Desk, inspect: Inspect) -> None:
    twice = message(b"twice")

    desk.commit(sheet(twice, message()), sheet(twice, message()))

    assert len(inspect.messages()) == 3
    assert inspect.counted() == {ORDERS: Counted(sent=3)}


def test_an_id_that_was_settled_can_be_sent_again(desk: Desk, inspect: Inspect) -> None:
    """Ids that can come back need a record of their own; settling leaves none."""
    sent = message()
    for _ in range(3):
        desk.send(sent)
        desk.settle(desk.claim_one())

    assert inspect.counted() == {ORDERS: Counted(sent=3, acked=3)}


@pytest.mark.spec("G4-10")
def test_one_id_on_two_queues_is_two_messages(desk: Desk, inspect: Inspect) -> None:
    id = bytes(16)

    desk.send(message(id=id), message(id=id, queue="invoices"), message(id=id))

    assert len(inspect.messages()) == 2
    assert inspect.counted() == {ORDERS: Counted(sent=1), "invoices": Counted(sent=1)}


def test_a_message_that_sends_itself_on_is_replaced(desk: Desk, inspect: Inspect) -> None:
    """Settling comes before sending, so a handler may send on under the id it consumed."""
    delivery = desk.given_one(body=b"round one")

    desk.commit(done(delivery, message(b"round two", id=delivery.id)))

    assert bodies(desk.claim()) == [b"round two"]
    assert inspect.counted() == {ORDERS: Counted(sent=2, acked=1)}


def test_a_message_that_comes_again_is_not_sent_a_second_time(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one(body=b"first")

    desk.commit(sheet(message(b"second", id=delivery.id), delivery=delivery, settlement=Again(0.0)))

    assert bodies(desk.claim()) == [b"first"]
    assert inspect.counted() == {ORDERS: Counted(sent=1)}


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe", b"x" * 1_000_000])
def test_a_body_is_bytes_and_comes_back_unchanged(desk: Desk, body: bytes) -> None:
    desk.send(message(body))

    assert desk.claim_one().body == body


def test_what_a_unit_sends_is_there_only_when_it_has_committed(desk: Desk, inspect: Inspect) -> None:
    unit = sheet(message())
    unit.write("insert into nowhere (id) values (1)")

    with pytest.raises(Exception, match="nowhere"):
        desk.commit(unit)

    assert inspect.messages() == []
    assert inspect.counted() == {}


def test_rows_wait_as_they_were_sent(desk: Desk, inspect: Inspect) -> None:
    desk.send(message(b"x", priority=2, due=T0 + 99))

    (row,) = inspect.messages()
    assert (row.priority, row.due, row.worker, row.attempts, row.crashes) == (2, T0 + 99, None, 0, 0)


@pytest.mark.spec("A2-07")
@pytest.mark.parametrize("twice", [0, 1])
@pytest.mark.parametrize("count", [1, 9, 10, 75])
def test_of_many_ids_that_can_come_back_those_that_came_back_are_ignored(
    desk: Desk, inspect: Inspect, count: int, twice: int
) -> None:
    early = [message(str(number).encode(), flags=KEYED) for number in range(count)]
    desk.send(*early)
    for delivery in desk.claim(count):
        desk.settle(delivery)
    late = [message(str(number).encode(), flags=KEYED) for number in range(count)]
    unit = sheet(*late, early[-1], message(b"other"), *late[:twice])

    desk.commit(unit)

    assert sorted(row.body for row in inspect.messages()) == sorted([*(each.body for each in late), b"other"])
    assert unit.answer.duplicates == {each.id for each in [early[-1], *late[:twice]]}
    assert inspect.counted() == {ORDERS: Counted(sent=2 * count + 1, acked=count)}
