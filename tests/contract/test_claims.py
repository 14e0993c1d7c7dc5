"""Claiming: what is due is taken in order, within its limits, with a lease and a token that was never there before."""

from __future__ import annotations

import psycopg
import pytest

from penstock.contracts.ledger import StaleUnits
from penstock.model.message import PRIORITY_HIGH, PRIORITY_LOW, PRIORITY_NORMAL
from penstock.model.outcome import Again
from penstock.model.queue import QueueSettings
from penstock.storage.postgres.store import PostgresStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import Inspect
from tests.contract.material import (
    LEASE_SECONDS,
    ORDERS,
    SECOND,
    T0,
    Desk,
    bodies,
    done,
    message,
    rules,
    sheet,
    want,
)
from tests.postgres import empty_database


def test_a_message_arrives_as_it_was_sent(desk: Desk) -> None:
    sent = message(b'{"total": 7}')
    desk.send(sent)

    delivery = desk.claim_one()

    assert (delivery.id, delivery.body, delivery.queue, delivery.type) == (sent.id, sent.body, sent.queue, sent.type)
    assert (delivery.source, delivery.correlation_id, delivery.causation_id) == ("tests", sent.id, None)
    assert (delivery.sent_at, delivery.checksum, delivery.hops, delivery.attempt) == (T0, sent.checksum, 0, 1)


def test_the_earliest_due_comes_first_whatever_the_order_of_sending(desk: Desk) -> None:
    desk.send(*(message(str(ago).encode(), due=T0 - ago * SECOND) for ago in (2, 9, 4, 1, 7)))

    order = [desk.claim_one().body for _ in range(5)]

    assert order == [b"9", b"7", b"4", b"2", b"1"]


def test_one_claim_takes_the_earliest_due_in_their_order(desk: Desk) -> None:
    desk.send(*(message(str(ago).encode(), due=T0 - ago * SECOND) for ago in (2, 9, 4, 1, 7)))

    assert bodies(desk.claim(limit=3)) == [b"9", b"7", b"4"]


def test_what_is_due_at_one_moment_comes_in_the_order_of_sending(desk: Desk) -> None:
    desk.send(*(message(str(number).encode()) for number in range(100, 160)))

    assert bodies(desk.claim(60)) == [str(number).encode() for number in range(100, 160)]


def test_a_higher_priority_comes_before_an_earlier_due_time(desk: Desk) -> None:
    desk.send(
        message(b"low", priority=PRIORITY_LOW, due=T0 - 30 * SECOND),
        message(b"normal", priority=PRIORITY_NORMAL, due=T0 - 20 * SECOND),
        message(b"high", priority=PRIORITY_HIGH, due=T0 - 10 * SECOND),
    )

    assert bodies(desk.claim()) == [b"high", b"normal", b"low"]


def test_one_claim_in_ten_starts_at_the_lowest_priority(desk: Desk) -> None:
    for _ in range(40):
        desk.send(message(b"high", priority=PRIORITY_HIGH), message(b"low", priority=PRIORITY_LOW))

    firsts = [desk.claim_one().body for _ in range(40)]

    assert firsts.count(b"low") == 4
    assert b"low" in firsts[:10]
    assert b"low" in firsts[10:20]


def test_a_claim_takes_no_more_than_its_limit(desk: Desk) -> None:
    desk.send(*(message() for _ in range(20)))

    assert len(desk.claim(limit=7)) == 7
    assert len(desk.claim(limit=100)) == 13
    assert desk.claim(limit=1) == []


def test_the_limit_holds_over_all_priorities_of_a_queue(desk: Desk) -> None:
    desk.send(*(message(priority=priority) for priority in (0, 1, 2) for _ in range(3)))

    assert len(desk.claim(limit=5)) == 5


def test_one_commit_claims_for_several_queues_each_with_its_own_limit(desk: Desk) -> None:
    desk.send(*(message(queue=queue) for queue in ("red", "green", "blue") for _ in range(5)))

    claimed = desk.commit(wants=[want("red", 1), want("blue", 3)]).claimed

    assert sorted(delivery.queue for delivery in claimed) == ["blue"] * 3 + ["red"]


def test_queues_do_not_take_from_each_other(desk: Desk) -> None:
    desk.send(message(b"a", queue="a"), message(b"ab", queue="ab"))

    assert bodies(desk.claim(queue="a")) == [b"a"]


def test_a_message_sent_in_a_commit_can_be_claimed_in_the_same_one(desk: Desk) -> None:
    committed = desk.commit(sheet(message(b"now")), wants=[want()])

    assert bodies(committed.claimed) == [b"now"]


# -- what is not due yet ------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-02")
def test_a_delayed_message_is_not_claimed_before_its_time(desk: Desk) -> None:
    desk.send(message(due=T0 + 60 * SECOND))

    assert desk.claim() == []
    desk.later(59.999999)
    assert desk.claim() == []
    desk.later(0.000001)
    assert len(desk.claim()) == 1


def test_next_due_tells_when_to_look_again(desk: Desk) -> None:
    desk.send(message(due=T0 + 9 * SECOND), message(due=T0 + 5 * SECOND, priority=PRIORITY_LOW), message())

    committed = desk.commit(wants=[want()])

    assert len(committed.claimed) == 1
    assert committed.next_due == {ORDERS: T0 + 5 * SECOND}


def test_next_due_is_none_where_nothing_waits(desk: Desk) -> None:
    assert desk.commit(wants=[want("nothing-here")]).next_due == {"nothing-here": None}


def test_a_queue_that_gave_all_that_was_wanted_has_no_next_due(desk: Desk) -> None:
    desk.send(message(), message())

    assert desk.commit(wants=[want(limit=2)]).next_due == {}


def test_a_queue_with_a_rate_tells_when_the_next_may_start_to_a_claim_that_wanted_more(desk: Desk) -> None:
    desk.workers.register_queues([QueueSettings(ORDERS, rate=2.0)])
    desk.send(*(message() for _ in range(4)))

    assert desk.commit(wants=[want(limit=1)]).next_due == {}
    assert desk.commit(wants=[want()]).next_due == {ORDERS: T0 + SECOND // 2}
    desk.later(0.5)
    more = desk.commit(wants=[want()])

    assert len(more.claimed) == 1
    assert more.next_due == {ORDERS: T0 + SECOND}


def test_a_message_settled_for_later_shows_up_in_next_due(desk: Desk) -> None:
    delivery = desk.given_one()

    committed = desk.commit(sheet(delivery=delivery, settlement=Again(7.5)), wants=[want()])

    assert committed.next_due == {ORDERS: T0 + 7_500_000}


@pytest.mark.spec("A1-29")
def test_a_paused_queue_gives_nothing_and_goes_on_where_it_was(desk: Desk, inspect: Inspect) -> None:
    desk.workers.register_queues([rules("other")])
    desk.send(message(), message(queue="other"))
    inspect.pause(ORDERS)

    committed = desk.commit(wants=[want(), want("other")])
    assert [delivery.queue for delivery in committed.claimed] == ["other"]
    assert committed.next_due[ORDERS] is None

    inspect.pause(ORDERS, paused=False)
    assert len(desk.claim()) == 1


def test_registering_a_queue_again_does_not_resume_it(desk: Desk, inspect: Inspect) -> None:
    desk.send(message())
    inspect.pause(ORDERS)

    desk.workers.register_queues([rules(retries=9)])

    assert desk.claim() == []


# -- the lease and the token --------------------------------------------------------------------------------------


def test_a_claim_moves_the_due_time_to_the_end_of_the_lease(desk: Desk, inspect: Inspect) -> None:
    desk.send(message())

    delivery = desk.claim_one()

    (row,) = inspect.messages()
    assert (row.due, row.worker, row.token) == (T0 + LEASE_SECONDS * SECOND, desk.me, delivery.token)


def test_each_want_has_its_own_lease(desk: Desk, inspect: Inspect) -> None:
    desk.send(message(queue="quick"), message(queue="slow"))

    desk.commit(wants=[want("quick", lease_seconds=1), want("slow", lease_seconds=900)])

    assert {row.queue: row.due for row in inspect.messages()} == {"quick": T0 + SECOND, "slow": T0 + 900 * SECOND}


def test_next_lapse_is_the_end_of_the_earliest_lease(desk: Desk) -> None:
    desk.send(message(queue="quick"), message(queue="slow"))

    assert desk.commit(wants=[want()]).next_lapse is None
    assert desk.commit(wants=[want("slow", lease_seconds=900)]).next_lapse == T0 + 900 * SECOND
    assert desk.commit(wants=[want("quick", lease_seconds=7)]).next_lapse == T0 + 7 * SECOND


@pytest.mark.spec("A2-10")
def test_a_claimed_message_is_not_claimed_again(desk: Desk) -> None:
    desk.given_one()

    assert desk.claim() == []


@pytest.mark.fault("F03")
def test_every_claim_and_release_gives_a_token_that_was_never_there_before(desk: Desk, inspect: Inspect) -> None:
    desk.send(message())
    seen = []
    for _ in range(20):
        delivery = desk.claim_one()
        seen.append(delivery.token)
        desk.settle(delivery, Again(0.0, charged=False))
        seen.append(inspect.messages()[0].token)

    assert len(set(seen)) == len(seen)
    assert seen == sorted(seen)


@pytest.mark.fault("F03")
def test_a_row_deleted_and_sent_again_has_no_token_it_ever_had(desk: Desk) -> None:
    """The store may give a new row the place of a deleted one, so place and token together must still be new."""
    id = bytes(16)
    fences = []
    for _ in range(20):
        delivery = desk.given_one(id=id)
        fences.append((delivery.seq, delivery.token))
        desk.settle(delivery)

    assert len(set(fences)) == 20
    assert len({token for _, token in fences}) == 20
    stale = desk.given_one(id=id)
    for seq, token in fences:
        with pytest.raises(StaleUnits):
            desk.commit(done(stale._replace(seq=seq, token=token)))


def test_tokens_do_not_repeat_between_writers(desk: Desk, neighbour: Desk) -> None:
    desk.send(message())
    tokens = []
    for _ in range(10):
        for each in (desk, neighbour):
            delivery = each.claim_one()
            tokens.append(delivery.token)
            each.settle(delivery, Again(0.0, charged=False))

    assert len(set(tokens)) == 20


def test_waiting_messages_are_peeked_by_priority_and_due_time_and_those_in_a_handler_are_not(desk: Desk) -> None:
    desk.send(message(b"claimed"))
    desk.claim_one()
    desk.send(
        message(b"low", priority=PRIORITY_LOW, due=T0 - 30 * SECOND),
        message(b"later", due=T0 + SECOND),
        message(b"sooner", due=T0 - SECOND),
        message(b"high", priority=PRIORITY_HIGH, due=T0 + 5 * SECOND),
        message(b"elsewhere", queue="mails"),
    )

    peeked = desk.writer.operations.peek(ORDERS, limit=10)

    assert [(due - T0, delivery.body) for due, delivery in peeked] == [
        (5 * SECOND, b"high"),
        (-SECOND, b"sooner"),
        (SECOND, b"later"),
        (-30 * SECOND, b"low"),
    ]
    for limit in range(5):
        assert desk.writer.operations.peek(ORDERS, limit=limit) == peeked[:limit]
    assert bodies(desk.claim()) == [b"sooner", b"low"]


def test_on_postgres_a_lapsed_row_that_another_transaction_changes_is_looked_for_again_in_a_second() -> None:
    url = empty_database()
    with at_a_desk(PostgresStore(url)) as desk:
        desk.given_one()
        desk.later(LEASE_SECONDS)
        with psycopg.connect(url) as other:
            other.execute("select seq from penstock.penstock_messages for update")
            locked = desk.sweep()
        free = desk.sweep()

    assert (locked.swept, locked.next_lapse) == (0, desk.now + SECOND)
    assert (free.swept, free.next_lapse) == (1, None)
