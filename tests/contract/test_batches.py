"""Many rows in one unit, claims in whole batches and at a rate, leases for somebody outside, and ends of life."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.contracts.effects import Settle
from penstock.contracts.ledger import ClaimRequest, RefusedUnits, StaleUnits
from penstock.contracts.operations import Lease, Tuning
from penstock.contracts.store import Store
from penstock.model.errors import QueueFull, TooLarge
from penstock.model.message import PRIORITIES, Delivery
from penstock.model.outcome import DONE, Again, Dead, Settlement
from tests.contract.inspection import Counted, Inspect
from tests.contract.material import (
    ITEMS,
    NEW_ITEM,
    ORDERS,
    SECOND,
    T0,
    Desk,
    Sheet,
    bodies,
    message,
    read_rows,
    rules,
    sheet,
)


def batch(*settles: tuple[Delivery, Settlement | None]) -> Sheet:
    unit = sheet()
    unit.fences += [Settle(*each) for each in settles]
    return unit


def held(desk: Desk, count: int) -> list[Delivery]:
    desk.send(*(message(str(number).encode()) for number in range(count)))
    return desk.claim(count)


def whole(limit: int = 100, *, batch: int = 10, wait_seconds: float = 5) -> ClaimRequest:
    return ClaimRequest(ORDERS, limit, 60 * SECOND, batch, int(wait_seconds * SECOND))


def pulled(limit: int = 10, *, lease_seconds: float = 30, **more: Any) -> ClaimRequest:
    return ClaimRequest(ORDERS, limit, int(lease_seconds * SECOND), pull=True, **more)


# -- one unit, many settlements -------------------------------------------------------------------------------


@pytest.mark.spec("A1-07")
def test_one_unit_settles_every_row_in_its_own_way_with_what_it_wrote(
    desk: Desk, store: Store, inspect: Inspect
) -> None:
    desk.open_shop()
    done, again, later, dead, kept = held(desk, 5)
    unit = batch((done, DONE), (again, Again(30)), (later, Again(5, charged=False)), (dead, Dead("no")), (kept, None))
    unit.write(NEW_ITEM, id=1, name="with all of them")
    desk.commit(unit)

    rows = {row.body: row for row in inspect.messages()}
    assert {body: (row.due - T0, row.attempts, row.worker) for body, row in rows.items()} == {
        again.body: (30 * SECOND, 1, None),
        later.body: (5 * SECOND, 0, None),
        kept.body: (60 * SECOND, 0, desk.me),
    }
    assert [letter.body for letter in inspect.dead()] == [dead.body]
    assert inspect.counted() == {ORDERS: Counted(sent=5, acked=1, dead=1)}
    assert read_rows(store, ITEMS) == [(1, "with all of them")]
    desk.settle(kept)


@pytest.mark.fault("F03", "F29")
@pytest.mark.parametrize("place", [0, 3, 9])
@pytest.mark.parametrize("settlement", [DONE, Again(30), Dead("no"), None])
def test_one_stale_row_of_ten_leaves_the_whole_unit_out_and_no_other_unit(
    desk: Desk, store: Store, inspect: Inspect, settlement: Settlement | None, place: int
) -> None:
    desk.open_shop()
    ten = held(desk, 10)
    desk.settle(ten[place], Again(0, charged=False))
    fresh = desk.claim_one()
    before = inspect.messages()
    unit = batch(*((delivery, settlement if index == place else DONE) for index, delivery in enumerate(ten)))
    unit.write(NEW_ITEM, id=1, name="never")
    other = sheet(message(queue="other"))

    with pytest.raises(StaleUnits) as refused:
        desk.commit(unit, other)

    assert refused.value.stale == [unit]
    assert inspect.messages() == before
    assert read_rows(store, ITEMS) == []
    desk.commit(
        batch(*((delivery, DONE) for index, delivery in enumerate(ten) if index != place), (fresh, DONE)), other
    )
    assert inspect.counted()[ORDERS].acked == 10


def test_rows_of_several_claims_fit_into_one_unit_and_one_row_beside_it(desk: Desk, inspect: Inspect) -> None:
    desk.send(*(message() for _ in range(9)))
    claims = [desk.claim(3), desk.claim(2), desk.claim(4)]
    unit = batch(*((delivery, DONE) for claim in claims[1:] for delivery in claim))
    unit.fences.append(Settle(claims[0][0], DONE))

    desk.commit(unit, batch((claims[0][1], DONE)), sheet(delivery=claims[0][2], settlement=DONE))

    assert inspect.messages() == []
    assert inspect.counted()[ORDERS].acked == 9


# -- whole batches --------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-11")
@pytest.mark.parametrize(
    "ready, limit, taken",
    [(9, 100, 0), (10, 100, 10), (19, 100, 10), (25, 100, 20), (25, 20, 20), (25, 15, 10), (25, 4, 4)],
)
def test_a_claim_takes_whole_batches_and_never_more_than_its_limit(
    desk: Desk, ready: int, limit: int, taken: int
) -> None:
    desk.send(*(message(priority=PRIORITIES[number % 3]) for number in range(ready)))

    assert len(desk.commit(wants=[whole(limit)]).claimed) == taken


@pytest.mark.spec("A1-11")
def test_the_rest_is_taken_once_the_first_of_it_has_waited(desk: Desk) -> None:
    desk.send(message(due=T0 - 3 * SECOND), message(), message(due=T0 + 60 * SECOND))

    committed = desk.commit(wants=[whole()])
    assert (committed.claimed, committed.next_due) == ([], {ORDERS: T0 + 2 * SECOND})
    desk.later(1.999999)
    assert desk.commit(wants=[whole()]).claimed == []
    desk.later(0.000001)
    committed = desk.commit(wants=[whole()])
    assert len(committed.claimed) == 2
    assert committed.next_due == {ORDERS: T0 + 60 * SECOND}


@pytest.mark.spec("A1-11")
def test_the_next_look_is_when_the_batch_is_full_if_that_is_sooner(desk: Desk) -> None:
    desk.send(message(), *(message(due=T0 + (number + 1) * SECOND, priority=number % 3) for number in range(5)))

    assert desk.commit(wants=[whole(batch=3, wait_seconds=60)]).next_due == {ORDERS: T0 + 2 * SECOND}
    desk.later(2)
    assert len(desk.commit(wants=[whole(batch=3, wait_seconds=60)]).claimed) == 3


# -- rates ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A1-22")
def test_two_writers_together_start_no_more_than_the_rate(desk: Desk, neighbour: Desk) -> None:
    for each in (desk, neighbour):
        each.workers.register_queues([replace(rules(), rate=5.0)])
    desk.send(*(message() for _ in range(50)))
    starts: list[int] = []
    for _ in range(400):
        for each in (desk, neighbour):
            each.later(0.01)
            starts += [each.now] * len(each.claim(limit=7))

    assert len(starts) == 20
    assert all(sum(start <= other < start + SECOND for other in starts) <= 5 for start in starts)


@pytest.mark.spec("A1-22")
def test_a_tuned_rate_holds_until_it_is_left_to_the_app(desk: Desk) -> None:
    desk.send(*(message() for _ in range(50)))
    operations = desk.writer.operations

    assert operations.tune(ORDERS, Tuning(None, 2.0))
    assert len(desk.claim()) == 1
    assert desk.commit(wants=[pulled()]).next_due == {ORDERS: T0 + SECOND // 2}
    operations.tune(ORDERS, Tuning(3, 2.0))
    assert desk.commit(wants=[pulled()]).parallel == {ORDERS: 3}
    assert desk.claim() == []
    operations.tune(ORDERS, Tuning(None, None))
    assert len(desk.claim(20)) == 20
    assert not operations.tune("nowhere", Tuning(None, None))


# -- somebody outside -----------------------------------------------------------------------------------------


def test_pulled_rows_belong_to_no_worker_and_return_charged_when_their_lease_lapses(
    desk: Desk, inspect: Inspect
) -> None:
    desk.send(message(b"a"), message(b"b"))
    first, second = desk.commit(wants=[pulled(lease_seconds=30)]).claimed
    assert desk.writer.operations.leased([Lease(first.seq, first.token), Lease(second.seq, 1)]) == [first]
    assert desk.claim() == []
    desk.settle(first)
    desk.later(31)
    desk.sweep()

    (row,) = inspect.messages()
    assert (row.body, row.worker, row.attempts, row.crashes, row.error_class) == (b"b", None, 1, 0, "LeaseLapsed")
    with pytest.raises(StaleUnits):
        desk.settle(second)


def test_a_pulled_row_that_is_never_acknowledged_is_dead_after_its_retries(desk: Desk, inspect: Inspect) -> None:
    desk.send(message())
    for number in range(1, 5):
        (delivery,) = desk.commit(wants=[pulled()]).claimed
        assert delivery.attempt == number
        desk.later(31)
        desk.sweep()

    assert inspect.messages() == []
    assert [(letter.reason, letter.attempts) for letter in inspect.dead()] == [("exhausted", 4)]


def test_the_same_request_is_given_the_same_leases_and_another_one_others(desk: Desk) -> None:
    desk.send(*(message() for _ in range(6)))
    first = desk.commit(wants=[pulled(2, request="one")]).claimed

    assert desk.commit(wants=[pulled(2, request="one")]).claimed == first
    desk.settle(first[0])
    assert desk.commit(wants=[pulled(5, request="one")]).claimed == first[1:]
    assert not set(desk.commit(wants=[pulled(2, request="two")]).claimed) & set(first)


# -- purged, expired, refused ---------------------------------------------------------------------------------


@pytest.mark.spec("A1-29")
def test_a_purge_takes_what_waits_in_portions_and_counts_it(desk: Desk, inspect: Inspect) -> None:
    desk.send(*(message(priority=number % 3, due=T0 + number * SECOND) for number in range(20)))
    desk.send(message(queue="other"))
    desk.claim(1)

    purge = desk.writer.operations.purge
    assert [purge(ORDERS, limit=8, now=T0) for _ in range(4)] == [8, 8, 3, 0]
    assert inspect.counted() == {ORDERS: Counted(sent=20, purged=19), "other": Counted(sent=1)}


@pytest.mark.spec("A1-29")
def test_a_purge_of_one_id_takes_it_from_its_queue_alone_and_only_while_it_waits(desk: Desk, inspect: Inspect) -> None:
    first, second = message(), message(due=T0 + SECOND)
    desk.send(first, second, first._replace(queue="other"))
    (held,) = desk.claim(1)

    purge = desk.writer.operations.purge
    assert held.id == first.id
    assert [purge(ORDERS, limit=1, now=T0, id=id) for id in (first.id, second.id, second.id)] == [0, 1, 0]
    assert inspect.counted() == {ORDERS: Counted(sent=2, purged=1), "other": Counted(sent=1)}


@pytest.mark.spec("A1-16")
def test_what_has_expired_is_never_claimed_and_counted_once(desk: Desk, inspect: Inspect) -> None:
    desk.send(*(message(expires=T0 + 10 * SECOND) for _ in range(2_500)), message(b"young", expires=T0 + 99 * SECOND))
    running = desk.claim(1)
    desk.later(10)
    claimed: list[Delivery] = []
    for _ in range(4):
        claimed += desk.claim(limit=100)

    assert bodies(claimed) == [b"young"]
    assert inspect.counted()[ORDERS] == Counted(sent=2_501, expired=2_499)
    desk.settle(running[0], Again(0))
    assert desk.claim() == []
    expired = desk.writer.operations.expire(now=desk.now, limit=10)
    assert (expired.messages, expired.dead, expired.next_expiry) == (0, 0, None)
    desk.settle(claimed[0], Again(0))
    assert desk.writer.operations.expire(now=desk.now, limit=10).next_expiry == T0 + 99 * SECOND
    desk.later(89)
    assert desk.writer.operations.expire(now=desk.now, limit=10).messages == 1


@pytest.mark.spec("A1-17")
@pytest.mark.parametrize("bound", ["messages_max", "bytes_max", "per_second_max"])
def test_units_that_do_not_fit_are_named_and_those_that_fit_go_in_without_them(
    desk: Desk, neighbour: Desk, inspect: Inspect, bound: str
) -> None:
    bounds: dict[str, Any] = {bound: 5}
    for each in (desk, neighbour):
        each.workers.register_queues([replace(rules(), **bounds)])
    fits, does_not, fits_too, never = (sheet(*(message(b"x") for _ in range(count))) for count in (2, 3, 1, 6))
    desk.send(message(b"x"), message(b"x"))

    with pytest.raises(RefusedUnits) as refused:
        neighbour.commit(fits, does_not, fits_too, never)

    assert [(unit, type(error)) for unit, error in refused.value.refused] == [(does_not, QueueFull), (never, TooLarge)]
    assert inspect.counted() == {ORDERS: Counted(sent=2)}
    neighbour.commit(fits, fits_too)
    with pytest.raises(RefusedUnits):
        desk.send(message(b"x"))
    delivery = desk.claim_one()
    if bound == "per_second_max":
        desk.later(1)
    desk.commit(sheet(message(b"x"), delivery=delivery, settlement=DONE))
    assert inspect.counted() == {ORDERS: Counted(sent=6, acked=1)}
