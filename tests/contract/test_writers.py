"""Two writers on one database: they never hold the same row, and each sees what the other has committed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock.contracts.store import Store
from penstock.model.outcome import DONE, Again
from tests.contract.conftest import Made, at_a_desk
from tests.contract.inspection import Counted, Inspect, check_conservation
from tests.contract.material import ITEMS, NEW_ITEM, ORDERS, Desk, done, message, read_rows, sheet


@pytest.mark.spec("A2-10")
def test_two_writers_share_a_backlog_without_sharing_a_row(desk: Desk, neighbour: Desk, seed: int) -> None:
    desk.send(*(message() for _ in range(200)))
    random = Random(seed)
    taken: list[int] = []
    while len(taken) < 200:
        each = random.choice([desk, neighbour])
        taken += [delivery.seq for delivery in each.claim(random.randint(1, 9))]

    assert len(set(taken)) == 200


@pytest.mark.spec("A2-10")
def test_two_writers_at_the_same_time_never_claim_the_same_row(made: Made, desk: Desk) -> None:
    desk.send(*(message() for _ in range(400)))
    start = threading.Barrier(2)

    def work(store: Store, taken: list[tuple[int, int]]) -> None:
        with at_a_desk(store) as each:
            start.wait()
            while held := each.claim(7):
                taken += [(delivery.seq, delivery.token) for delivery in held]
                each.commit(*(done(delivery) for delivery in held))

    taken = side_by_side(*((lambda store=store, into=into: work(store, into), into) for store, into in pairs(made)))

    assert len(taken) == len({seq for seq, _ in taken}) == 400
    assert made.inspect.counted() == {ORDERS: Counted(sent=400, acked=400)}


def test_counters_of_two_writers_add_up_while_both_send_and_settle(made: Made, desk: Desk, seed: int) -> None:
    def work(store: Store, random: Random, into: list[int]) -> None:
        with at_a_desk(store) as each:
            for _ in range(60):
                each.send(*(message() for _ in range(random.randint(1, 3))))
                for delivery in each.claim(random.randint(1, 4)):
                    each.settle(delivery, DONE if random.random() < 0.5 else Again(0.0))
                into.append(1)

    randoms = [Random(seed), Random(seed + 1)]
    side_by_side(
        *(
            (lambda store=store, random=random, into=into: work(store, random, into), into)
            for (store, into), random in zip(pairs(made), randoms, strict=True)
        )
    )

    check_conservation(made.inspect)
    assert made.inspect.is_sound()


def test_a_writer_sees_what_another_has_committed(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.send(message(b"from one"))

    assert neighbour.claim_one().body == b"from one"
    assert [row.worker for row in inspect.messages()] == [neighbour.me]


def test_writers_have_numbers_of_their_own(desk: Desk, neighbour: Desk) -> None:
    assert desk.me != neighbour.me


def test_a_number_is_not_given_again(desk: Desk, made: Made) -> None:
    seen = {desk.me}
    for _ in range(3):
        with at_a_desk(made.another) as each:
            assert each.me not in seen
            seen.add(each.me)
            each.workers.retire(each.me, now=each.now)


def test_users_rows_of_two_writers_do_not_overwrite_each_other(desk: Desk, neighbour: Desk, store: Store) -> None:
    desk.open_shop()
    for number, each in enumerate([desk, neighbour] * 5):
        unit = sheet()
        unit.write(NEW_ITEM, id=number, name="x")
        each.commit(unit)

    assert len(read_rows(store, ITEMS)) == 10


def test_look_around_sees_anothers_commit_and_not_ones_own(desk: Desk, neighbour: Desk) -> None:
    desk.upkeep.look_around()
    desk.send(message())
    assert desk.upkeep.look_around() is False

    neighbour.send(message())

    assert desk.upkeep.look_around() is True
    assert desk.upkeep.look_around() is False


def pairs(made: Made) -> list[tuple[Store, list[Any]]]:
    return [(made.store, []), (made.another, [])]


def side_by_side(*works: tuple[Callable[[], None], list[Any]]) -> list[Any]:
    """Runs each in a thread of its own and gives back what they all noted."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work, _ in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures, failures
    return [item for _, noted in works for item in noted]
