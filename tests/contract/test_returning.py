"""What a dead worker held comes back: who is suspected, who is charged, who goes free, and when a row is given up."""

from __future__ import annotations

import pytest

from penstock.contracts.ledger import StaleUnits
from penstock.contracts.workers import Returned
from penstock.model.outcome import Again, Failure, Held
from tests.contract.inspection import Counted, Inspect
from tests.contract.material import LEASE_SECONDS, ORDERS, SECOND, T0, Desk, message, rules, want

# -- a dead worker ------------------------------------------------------------------------------------------------


@pytest.mark.fault("F01")
def test_what_had_not_started_goes_back_untouched(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.given_one()

    returned = neighbour.workers.return_rows(desk.me, started=[], now=T0)

    assert returned == Returned(released=1)
    (row,) = inspect.messages()
    assert (row.worker, row.due, row.attempts, row.crashes) == (None, T0, 0, 0)


@pytest.mark.fault("F01")
def test_what_may_have_started_has_a_crash_and_no_attempt(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.send(message(b"running"), message(b"waiting"))
    running, waiting = desk.claim()

    returned = neighbour.workers.return_rows(desk.me, started=[running.seq], now=T0)

    assert returned == Returned(released=1, suspected=1)
    assert {row.body: (row.attempts, row.crashes) for row in inspect.messages()} == {
        b"running": (0, 1),
        b"waiting": (0, 0),
    }
    assert {delivery.body: delivery.crashes for delivery in neighbour.claim()} == {b"running": 1, b"waiting": 0}
    assert waiting.crashes == 0


def test_everything_is_suspected_where_the_started_ones_are_unknown(desk: Desk, neighbour: Desk) -> None:
    desk.send(message(), message(), message())
    desk.claim()

    assert neighbour.workers.return_rows(desk.me, started=None, now=T0) == Returned(suspected=3)


@pytest.mark.fault("F07")
def test_only_a_handler_that_overran_is_charged(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.send(message(b"endless"), message(b"beside"))
    endless, beside = desk.claim()

    returned = neighbour.workers.return_rows(desk.me, started=[endless.seq, beside.seq], charged=[endless.seq], now=T0)

    assert returned == Returned(released=1, charged=1)
    rows = {row.body: row for row in inspect.messages()}
    assert (rows[b"endless"].attempts, rows[b"endless"].crashes, rows[b"endless"].due) == (1, 0, T0 + 30 * SECOND)
    assert rows[b"endless"].error_class == "HandlerTimeout"
    assert (rows[b"beside"].attempts, rows[b"beside"].crashes, rows[b"beside"].due) == (0, 0, T0)


@pytest.mark.fault("F06")
def test_a_message_that_kills_its_workers_becomes_a_dead_letter(desk: Desk, inspect: Inspect) -> None:
    desk.workers.register_queues([rules(crashes_max=3)])
    desk.send(message(b"poison"))
    for _ in range(2):
        desk.claim_one()
        desk_dies(desk)
    assert desk.claim_one().crashes == 2

    returned = desk_dies(desk)

    assert returned == Returned(dead=1)
    (letter,) = inspect.dead()
    assert (letter.reason, letter.error_class, letter.attempts, letter.crashes) == ("worker_died", "WorkerDied", 0, 3)
    assert inspect.counted()[ORDERS] == Counted(sent=1, dead=1)


@pytest.mark.fault("F07")
def test_retries_run_out_by_overrunning(desk: Desk, inspect: Inspect) -> None:
    desk.workers.register_queues([rules(retries=1)])
    delivery = desk.given_one()
    assert desk_dies(desk, charged=[delivery.seq]) == Returned(charged=1)
    desk.later(30)
    delivery = desk.claim_one()

    assert desk_dies(desk, charged=[delivery.seq]) == Returned(dead=1)

    (letter,) = inspect.dead()
    assert (letter.reason, letter.error_class, letter.attempts, letter.crashes) == ("exhausted", "HandlerTimeout", 2, 0)


def test_crashes_and_attempts_are_counted_apart(desk: Desk, inspect: Inspect) -> None:
    desk.given_one()
    desk_dies(desk)
    desk.settle(desk.claim_one(), Again(0.0, failure=Failure("Boom", "no")))
    desk.claim_one()
    desk_dies(desk)

    (row,) = inspect.messages()
    assert (row.attempts, row.crashes) == (1, 2)


def test_a_queue_that_is_not_registered_has_the_default_rules(desk: Desk) -> None:
    desk.send(message(queue="stray"))
    for _ in range(3):
        desk.claim_one("stray")
        returned = desk_dies(desk)

    assert returned == Returned(dead=1)


def test_each_queue_follows_its_own_rules(desk: Desk, inspect: Inspect) -> None:
    desk.workers.register_queues([rules("fragile", crashes_max=1), rules("sturdy", crashes_max=100)])
    desk.send(message(queue="fragile"), message(queue="sturdy"))
    desk.commit(wants=[want("fragile"), want("sturdy")])

    assert desk_dies(desk) == Returned(suspected=1, dead=1)
    assert [letter.queue for letter in inspect.dead()] == ["fragile"]


@pytest.mark.fault("F03")
def test_a_worker_taken_for_dead_can_commit_nothing_of_what_it_held(desk: Desk, neighbour: Desk) -> None:
    desk.send(message(), message())
    held = desk.claim()
    neighbour.workers.return_rows(desk.me, started=None, now=T0)

    for delivery in held:
        with pytest.raises(StaleUnits):
            neighbour.settle(delivery)


def test_rows_of_others_stay_with_them(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.send(message(), message())
    mine, theirs = desk.claim_one(), neighbour.claim_one()

    neighbour.workers.return_rows(desk.me, started=None, now=T0)

    holders = {row.seq: row.worker for row in inspect.messages()}
    assert holders == {mine.seq: None, theirs.seq: neighbour.me}


def test_more_rows_than_one_page_come_back_in_one_go(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    for _ in range(11):
        desk.send(*(message() for _ in range(1_000)))
    desk.claim(11_000)

    returned = neighbour.workers.return_rows(desk.me, started=[], now=T0)

    assert returned == Returned(released=11_000)
    assert all(row.worker is None for row in inspect.messages())


# -- leaving ------------------------------------------------------------------------------------------------------


def test_a_worker_that_leaves_keeps_its_counts_in_the_sum(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.send(message(), message())
    desk.settle(desk.claim_one())
    neighbour.send(message())
    before = inspect.counted()

    neighbour.workers.retire(desk.me, now=T0)

    assert inspect.counted() == before == {ORDERS: Counted(sent=3, acked=1)}
    assert inspect.counters_of(desk.me) == 0
    assert [row.id for row in neighbour.workers.listed()] == [neighbour.me]


def test_several_workers_leave_and_the_sums_stay(desk: Desk, inspect: Inspect) -> None:
    for _ in range(3):
        leaving = Desk(desk.store)
        leaving.send(message(), message(queue="other"))
        leaving.workers.retire(leaving.me, now=T0)
        leaving.close()

    assert inspect.counted() == {ORDERS: Counted(sent=3), "other": Counted(sent=3)}


def test_leaving_gives_back_what_is_still_held(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.given_one()

    neighbour.workers.retire(desk.me, now=T0)

    (row,) = inspect.messages()
    assert (row.worker, row.attempts, row.crashes) == (None, 0, 0)


def test_workers_are_listed_with_when_they_came(desk: Desk, neighbour: Desk) -> None:
    listed = desk.workers.listed()

    assert [row.id for row in listed] == [desk.me, neighbour.me]
    assert all(row.started_at == T0 and row.pid > 0 and row.host for row in listed)


# -- leases that lapse --------------------------------------------------------------------------------------------


def test_a_lease_is_swept_only_once_it_has_lapsed(desk: Desk, inspect: Inspect) -> None:
    desk.given_one()
    desk.now = T0 + LEASE_SECONDS * SECOND - 1
    assert desk.sweep().swept == 0
    assert inspect.messages()[0].worker == desk.me

    desk.now += 1

    assert desk.sweep().swept == 1
    (row,) = inspect.messages()
    assert (row.worker, row.due, row.crashes) == (None, desk.now, 1)


def test_a_sweep_leaves_alone_what_has_not_lapsed(desk: Desk, inspect: Inspect) -> None:
    desk.send(message(b"short", queue="short"), message(b"long", queue="long"))
    desk.commit(wants=[want("short", lease_seconds=5), want("long", lease_seconds=50)])
    desk.later(10)

    committed = desk.sweep()

    assert {row.body: row.worker for row in inspect.messages()} == {b"short": None, b"long": desk.me}
    assert committed.next_lapse == T0 + 50 * SECOND


def test_without_a_sweep_a_lapsed_lease_stays(desk: Desk, inspect: Inspect) -> None:
    desk.given_one()
    desk.later(10 * LEASE_SECONDS)

    assert desk.claim() == []
    assert inspect.messages()[0].worker == desk.me


def test_what_is_held_on_to_lapses_as_much_later(desk: Desk) -> None:
    delivery = desk.given_one()
    desk.later(LEASE_SECONDS - 1)
    desk.settle(delivery, Held(LEASE_SECONDS))
    desk.later(LEASE_SECONDS - 1)
    assert desk.sweep().swept == 0

    desk.settle(delivery)


def test_a_row_that_another_worker_claimed_cannot_be_kept(desk: Desk, neighbour: Desk) -> None:
    old = desk.given_one()
    neighbour.later(LEASE_SECONDS)
    (new,) = neighbour.commit(wants=[want()], sweep=True).claimed

    with pytest.raises(StaleUnits):
        desk.settle(old, Held(LEASE_SECONDS))
    neighbour.settle(new)


@pytest.mark.fault("F03")
def test_a_lapsed_row_is_swept_and_claimed_in_one_commit_and_its_old_holder_is_refused(
    desk: Desk, neighbour: Desk
) -> None:
    old = desk.given_one()
    neighbour.later(LEASE_SECONDS)

    (new,) = neighbour.commit(wants=[want()], sweep=True).claimed

    with pytest.raises(StaleUnits):
        desk.settle(old)
    neighbour.settle(new)


def test_a_lapse_that_is_one_crash_too_many_is_a_dead_letter(desk: Desk, inspect: Inspect) -> None:
    desk.workers.register_queues([rules(crashes_max=1)])
    desk.given_one()
    desk.later(LEASE_SECONDS)

    desk.sweep()

    assert [letter.reason for letter in inspect.dead()] == ["worker_died"]
    assert inspect.counted() == {ORDERS: Counted(sent=1, dead=1)}


def test_a_lease_that_lapsed_can_still_be_settled_until_another_worker_claims_it(desk: Desk, inspect: Inspect) -> None:
    """Only the token decides: no time is compared, so a worker that is late but alone loses nothing."""
    delivery = desk.given_one()
    desk.later(10 * LEASE_SECONDS)

    desk.settle(delivery)

    assert inspect.messages() == []


def desk_dies(desk: Desk, charged: list[int] | None = None) -> Returned:
    """Gives back what this desk holds as if it had died, and lets it come back as a new worker."""
    returned = desk.workers.return_rows(desk.me, started=None, charged=charged or [], now=desk.now)
    desk.writer.close()
    reborn = Desk(desk.store, now=desk.now)
    desk.writer, desk.ledger, desk.workers, desk.upkeep, desk.me = (
        reborn.writer,
        reborn.ledger,
        reborn.workers,
        reborn.upkeep,
        reborn.me,
    )
    return returned
