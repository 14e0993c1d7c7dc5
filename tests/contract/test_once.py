"""Keys: what is saved under one is saved once, and a repeat is left out with all that belongs to it."""

from __future__ import annotations

import pytest

from penstock.contracts.effects import OnceKey
from penstock.contracts.ledger import RepeatedUnits
from penstock.contracts.store import Store
from penstock.model.outcome import DONE
from tests.contract.inspection import Inspect
from tests.contract.material import ITEMS, NEW_ITEM, SECOND, Desk, message, read_rows, sheet

DAY = 86_400 * SECOND


def test_a_key_is_found_with_its_result_once_it_is_saved(desk: Desk) -> None:
    assert desk.ledger.find_once(OnceKey(b"", "charge")) is None

    desk.commit(sheet(once="charge", result=b'{"paid": 5}'))

    assert desk.ledger.find_once(OnceKey(b"", "charge")) == b'{"paid": 5}'


def test_a_repeated_unit_is_named_and_nothing_of_the_group_is_saved(desk: Desk, store: Store, inspect: Inspect) -> None:
    desk.open_shop()
    desk.commit(sheet(once="charge"))
    repeat = sheet(message(queue="repeat"), once="charge", result=b'"other"')
    repeat.write(NEW_ITEM, id=1, name="repeat")
    fresh = sheet(message(queue="fresh"), once="ship")

    with pytest.raises(RepeatedUnits) as refused:
        desk.commit(fresh, repeat)

    assert refused.value.repeated == [repeat]
    assert inspect.messages() == []
    assert inspect.once_keys() == ["charge"]
    assert read_rows(store, ITEMS) == []
    assert desk.ledger.find_once(OnceKey(b"", "charge")) == b"null"


def test_without_the_repeat_the_rest_of_the_group_commits(desk: Desk, inspect: Inspect) -> None:
    desk.commit(sheet(once="charge"))

    desk.commit(sheet(message(), once="ship"))

    assert inspect.once_keys() == ["charge", "ship"]


def test_every_repeat_of_a_group_is_named(desk: Desk) -> None:
    desk.commit(sheet(once="a"), sheet(once="b"))
    units = [sheet(once="a"), sheet(once="new"), sheet(once="b")]

    with pytest.raises(RepeatedUnits) as refused:
        desk.commit(*units)

    assert refused.value.repeated == [units[0], units[2]]


def test_keys_belong_to_their_scope(desk: Desk, inspect: Inspect) -> None:
    desk.commit(sheet(once="step", scope=b"message 1", result=b"1"))
    desk.commit(sheet(once="step", scope=b"message 2", result=b"2"), sheet(once="step", result=b"0"))

    assert inspect.once_keys() == ["step"] * 3
    assert [desk.ledger.find_once(OnceKey(scope, "step")) for scope in (b"", b"message 1", b"message 2")] == [
        b"0",
        b"1",
        b"2",
    ]


def test_a_key_of_a_failed_unit_is_free(desk: Desk, inspect: Inspect) -> None:
    broken = sheet(once="charge")
    broken.write("insert into nowhere (id) values (1)")
    with pytest.raises(Exception, match="nowhere"):
        desk.commit(broken)

    desk.commit(sheet(once="charge"))

    assert inspect.once_keys() == ["charge"]


def test_a_key_saved_by_another_writer_is_known(desk: Desk, neighbour: Desk) -> None:
    desk.commit(sheet(once="charge"))

    with pytest.raises(RepeatedUnits):
        neighbour.commit(sheet(once="charge"))


def test_a_keyed_unit_is_fenced_like_any_other(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one()
    desk.commit(sheet(delivery=delivery, once="midway", scope=delivery.id))
    desk.commit(sheet(delivery=delivery, settlement=DONE))

    late = sheet(delivery=delivery, once="too late", scope=delivery.id)
    with pytest.raises(Exception, match="fence"):
        desk.commit(late)

    assert inspect.once_keys() == ["midway"]


@pytest.mark.spec("A2-12")
def test_keys_are_pruned_after_fifteen_days_in_small_portions(desk: Desk, inspect: Inspect) -> None:
    for number in range(7):
        desk.commit(sheet(once=f"old {number}"))
    desk.now += 15 * DAY
    desk.commit(sheet(once="young"))
    assert desk.upkeep.prune(now=desk.now, limit=100) == 0

    desk.now += SECOND

    assert desk.upkeep.prune(now=desk.now, limit=5) == 5
    assert desk.upkeep.prune(now=desk.now, limit=5) == 2
    assert inspect.once_keys() == ["young"]
