"""Groups on a real store: one bad unit never harms another, wherever it stands and whatever is wrong with it."""

from __future__ import annotations

from itertools import combinations

import pytest

from penstock.contracts.effects import SealedUnit, Transaction
from penstock.contracts.store import Store
from penstock.model.errors import LeaseLost, LostUpdate, StatementFailed
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, Again
from penstock.runtime.groups import CommitGroup, GroupResult, commit_group, tell
from tests.contract.inspection import Inspect
from tests.contract.material import ITEMS, NEW_ITEM, ORDERS, Desk, Sheet, message, read_rows, sheet, want


@pytest.fixture
def shop(desk: Desk) -> Desk:
    desk.open_shop()
    return desk


def units_for(desk: Desk, size: int) -> list[Sheet]:
    """So many good units: each settles a delivery, writes a row and sends a message."""
    desk.send(*(message() for _ in range(size)))
    made = []
    for number, delivery in enumerate(desk.claim(size)):
        unit = sheet(message(str(number).encode(), queue="sent"), delivery=delivery, settlement=DONE)
        unit.write(NEW_ITEM, id=number, name="good")
        made.append(unit)
    return made


def spoil(unit: Sheet) -> None:
    unit.write("insert into nowhere (id) values (1)")


def commit(desk: Desk, units: list[Sheet], *, claim: bool = False) -> GroupResult:
    result = commit_group(desk.ledger, CommitGroup([*units], [want("sent", 100)] if claim else [], now=desk.now))
    for committed in result.commits:
        tell(committed)
    return result


def numbers(units: list[SealedUnit], group: list[Sheet]) -> list[int]:
    return sorted(group.index(unit) for unit in units if isinstance(unit, Sheet))


def check_saved(desk: Desk, inspect: Inspect, saved: set[int]) -> None:
    """What was saved is there in full, and of the rest there is nothing."""
    assert {id for id, _ in read_rows(desk.store, ITEMS)} == saved
    assert {int(row.body) for row in inspect.messages() if row.queue == "sent"} == saved
    assert inspect.counted()[ORDERS].acked == len(saved)


@pytest.mark.parametrize("size, bad", [(size, bad) for size in range(1, 10) for bad in range(size)])
def test_one_bad_unit_fails_alone(shop: Desk, inspect: Inspect, size: int, bad: int) -> None:
    units = units_for(shop, size)
    spoil(units[bad])

    result = commit(shop, units, claim=True)

    ((failed, error),) = result.failed
    assert failed is units[bad]
    assert isinstance(error, StatementFailed)
    assert (numbers(result.saved, units), result.left, result.trouble) == (
        [number for number in range(size) if number != bad],
        [],
        None,
    )
    check_saved(shop, inspect, set(range(size)) - {bad})
    assert len(result.commits[-1].claimed) == size - 1, "claims ride in the last commit"


@pytest.mark.parametrize("bad", list(combinations(range(7), 2)))
def test_two_bad_units_fail_and_no_other(shop: Desk, inspect: Inspect, bad: tuple[int, int]) -> None:
    units = units_for(shop, 7)
    for number in bad:
        spoil(units[number])

    result = commit(shop, units)

    assert numbers([unit for unit, _ in result.failed], units) == list(bad)
    check_saved(shop, inspect, set(range(7)) - set(bad))


def test_all_units_of_a_group_can_be_bad(shop: Desk, inspect: Inspect) -> None:
    units = units_for(shop, 6)
    for unit in units:
        spoil(unit)

    result = commit(shop, units, claim=True)

    assert len(result.failed) == 6
    assert len(result.commits) == 1, "the claims are made all the same"
    assert inspect.counted()[ORDERS].acked == 0


def test_units_that_only_clash_with_each_other_are_distinguished(shop: Desk, store: Store) -> None:
    first, second = sheet(), sheet()
    first.write(NEW_ITEM, id=1, name="first")
    second.write(NEW_ITEM, id=1, name="second")

    result = commit(shop, [first, second])

    assert result.saved == [first]
    assert [unit for unit, _ in result.failed] == [second]
    assert read_rows(store, ITEMS) == [(1, "first")]


def test_the_order_of_good_units_is_kept_around_a_bad_one(shop: Desk, store: Store) -> None:
    units = [sheet() for _ in range(8)]
    units[0].write(NEW_ITEM, id=1, name="")
    for number, unit in enumerate(units):
        unit.write("update shop set name = name || :word where id = 1", word=str(number))
    spoil(units[3])

    commit(shop, units)

    assert read_rows(store, ITEMS) == [(1, "0124567")]


@pytest.mark.parametrize("position", range(8))
def test_stale_bad_and_repeated_units_mixed(shop: Desk, inspect: Inspect, position: int) -> None:
    """The four kinds go round, so that each stands once at each place."""
    shop.commit(sheet(once="before"))
    units = units_for(shop, 8)
    kinds = [*"sbrg" * 2]
    kinds = kinds[position:] + kinds[:position]
    for unit, kind in zip(units, kinds, strict=True):
        if kind == "s":
            lose(shop, next(unit.settles()).delivery)
        elif kind == "b":
            spoil(unit)
        elif kind == "r":
            unit.fences += sheet(once="before").fences

    result = commit(shop, units)

    places = {kind: [place for place, each in enumerate(kinds) if each == kind] for kind in "sbrg"}
    assert numbers(result.saved, units) == places["g"]
    assert numbers(result.repeated, units) == places["r"]
    assert {units.index(unit): type(error) for unit, error in result.failed if isinstance(unit, Sheet)} == {
        **dict.fromkeys(places["s"], LeaseLost),
        **dict.fromkeys(places["b"], StatementFailed),
    }
    assert (result.left, result.trouble) == ([], None)
    check_saved(shop, inspect, set(places["g"]))


def lose(desk: Desk, delivery: Delivery | None) -> None:
    assert delivery is not None
    desk.settle(delivery, Again(3_600.0, charged=False))


def test_two_units_with_one_key_save_it_once(shop: Desk, inspect: Inspect) -> None:
    units = [sheet(message(str(number).encode(), queue="sent"), once="key") for number in range(5)]

    result = commit(shop, units)

    assert (result.saved, result.repeated, result.failed) == (units[:1], units[1:], [])
    assert [row.body for row in inspect.messages()] == [b"0"]


def test_a_function_runs_again_after_the_group_was_halved_and_only_the_last_run_counts(
    shop: Desk, store: Store
) -> None:
    runs: list[int] = []

    def take(tx: Transaction) -> int:
        stock = int(tx.value("select stock from shop where id = 1"))
        tx.write("update shop set stock = stock - 1 where id = 1")
        runs.append(stock)
        return stock

    stocked = sheet()
    stocked.write("insert into shop (id, name, stock) values (1, 'lamp', 10)")
    shop.commit(stocked)
    units = [sheet() for _ in range(4)]
    calls = [unit.atomically(take) for unit in units]
    spoil(units[3])

    result = commit(shop, units)
    for unit in result.saved:
        unit.committed = True

    assert result.saved == units[:3]
    assert len(runs) > 3
    assert [call.result for call in calls[:3]] == [10, 9, 8]
    assert read_rows(store, "select stock from shop") == [(7,)]


def test_changes_are_those_of_the_commit_that_counted(shop: Desk) -> None:
    units = [sheet() for _ in range(3)]
    calls = [unit.write(NEW_ITEM, id=number, name="x") for number, unit in enumerate(units)]
    units[2].write("update shop set stock = 1", 99)

    result = commit(shop, units)
    for unit in result.saved:
        unit.committed = True

    assert [call.changes for call in calls[:2]] == [1, 1]
    ((_, error),) = result.failed
    assert isinstance(error, LostUpdate)


def test_an_empty_group_still_claims(shop: Desk) -> None:
    shop.send(message(queue="sent"))

    result = commit(shop, [], claim=True)

    assert [delivery.queue for delivery in result.commits[-1].claimed] == ["sent"]
