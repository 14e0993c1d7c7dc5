"""Users' statements: in order, all of a unit or nothing, refused by name and line, and blind to nothing they wrote."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.contracts.effects import Transaction
from penstock.contracts.store import Store
from penstock.model.errors import BadParameter, BadStatement, LostUpdate, NotYetCommitted, StatementFailed
from penstock.model.outcome import DONE
from tests.contract.inspection import Inspect
from tests.contract.material import ITEMS, NEW_ITEM, Desk, Sheet, message, migration, read_rows, sheet

STOCK = "select stock from shop where id = 1"
RENAME = "update shop set name = :name where id = :id"
ADD_WORD = "update shop set name = name || :word where id = 1"


@pytest.fixture
def shop(desk: Desk) -> Desk:
    desk.open_shop()
    return desk


def test_a_write_is_there_once_its_unit_has_committed(shop: Desk, store: Store) -> None:
    unit = sheet()
    call = unit.write(NEW_ITEM, id=1, name="lamp")
    with pytest.raises(NotYetCommitted):
        _ = call.changes

    shop.commit(unit)

    assert call.changes == 1
    assert read_rows(store, ITEMS) == [(1, "lamp")]


@pytest.mark.parametrize("value", [None, 0, -1, 2**63 - 1, -(2**63), 1.5, "", "ü € 🎈", b"", b"\x00\xff"])
def test_a_value_comes_back_as_it_was_bound(desk: Desk, store: Store, value: Any) -> None:
    binary = "blob" if store.dialect == "sqlite" else "bytea"
    column = {int: "bigint", float: "double precision", bytes: binary}.get(type(value), "text")
    statement = f"create table kept (v {column})"
    desk.upkeep.migrate([migration(statement)], now=desk.now)
    unit = sheet()
    unit.write("insert into kept (v) values (:v)", v=value)

    desk.commit(unit)

    assert read_rows(store, "select v from kept") == [(value,)]


def test_statements_run_in_the_order_of_the_calls_within_and_across_units(shop: Desk, store: Store) -> None:
    first, second, third = sheet(), sheet(), sheet()
    first.write(NEW_ITEM, id=1, name="")
    for unit, words in ((first, "ab"), (second, "cd"), (third, "ef")):
        for word in words:
            unit.write(ADD_WORD, word=word)

    shop.commit(first, second, third)

    assert read_rows(store, ITEMS) == [(1, "abcdef")]


def test_different_kinds_of_calls_keep_their_order(shop: Desk, store: Store) -> None:
    unit = sheet()
    unit.write(NEW_ITEM, id=1, name="a")
    unit.write_many(ADD_WORD, [{"word": "b"}, {"word": "c"}])
    unit.atomically(lambda tx: tx.write(ADD_WORD, word="d"))
    unit.write(ADD_WORD, word="e")

    shop.commit(unit)

    assert read_rows(store, ITEMS) == [(1, "abcde")]


@pytest.mark.spec("A8-02")
def test_changes_are_those_of_the_statement(shop: Desk) -> None:
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": number, "name": "x"} for number in range(5)])
    many = unit.write("update shop set stock = 3 where id < :id", id=4)
    none = unit.write("delete from shop where id = :id", id=99)
    again = unit.write("insert into shop (id, name) values (1, 'y') on conflict (id) do nothing")

    shop.commit(unit)

    assert (many.changes, none.changes, again.changes) == (4, 0, 0)


def test_calls_of_one_statement_in_a_row_each_know_what_they_changed(shop: Desk) -> None:
    unit = sheet()
    three = unit.write_many(NEW_ITEM, [{"id": number, "name": "a"} for number in range(3)])
    one = unit.write(NEW_ITEM, id=3, name="b")
    two = unit.write_many(NEW_ITEM, [{"id": number, "name": "c"} for number in (4, 5)])

    shop.commit(unit)

    assert (three.changes, one.changes, two.changes) == (3, 1, 2)


# -- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows, refused", [(0, True), (1, False)])
def test_expect_refuses_a_lost_update(shop: Desk, store: Store, rows: int, refused: bool) -> None:
    unit = sheet()
    for number in range(rows):
        unit.write(NEW_ITEM, id=number, name="old")
    unit.write("insert into shop (id, name) values (100, 'beside')")
    unit.write("update shop set name = 'new' where name = :old", 1, old="old")

    if not refused:
        shop.commit(unit)
        return
    with pytest.raises(LostUpdate) as error:
        shop.commit(unit)

    assert (error.value.facts["expected"], error.value.facts["changed"]) == (1, 0)
    assert "update shop" in str(error.value)
    assert read_rows(store, ITEMS) == []


def test_expect_also_refuses_too_many(shop: Desk) -> None:
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": number, "name": "x"} for number in range(3)])
    unit.write("update shop set stock = 1 where id > :id", 1, id=0)

    with pytest.raises(LostUpdate, match="expected to change 1 rows, changed 2"):
        shop.commit(unit)


BAD = [
    ("insert into nowhere (id) values (:id)", {"id": 1}, "nowhere"),
    ("insert into shop (id, name) values (:id, null)", {"id": 1}, "name"),
    ("insert into shop (id, title) values (:id, 'x')", {"id": 1}, "title"),
    ("update shop sett name = :id", {"id": 1}, "sett"),
]


@pytest.mark.spec("A8-03")
@pytest.mark.parametrize("sql, bound, named", BAD)
def test_a_failing_seventh_statement_rolls_its_whole_unit_back_and_names_sql_and_line(
    shop: Desk, store: Store, inspect: Inspect, sql: str, bound: dict[str, Any], named: str
) -> None:
    delivery = shop.given_one()
    unit = sheet(message(queue="next"), delivery=delivery, settlement=DONE, once="key")
    for number in range(6):
        unit.write(NEW_ITEM, id=number, name="before")
    unit.write(sql, **bound)

    with pytest.raises(StatementFailed) as error:
        shop.commit(unit)

    assert named in str(error.value)
    assert sql.split()[0] in str(error.value)
    assert error.value.facts["sql"] == sql
    assert any("test_users_writes.py" in note for note in error.value.__notes__)
    assert read_rows(store, ITEMS) == []
    assert inspect.once_keys() == []
    (row,) = inspect.messages()
    assert (row.seq, row.token) == (delivery.seq, delivery.token)


def test_a_duplicate_key_is_the_statements_failure(shop: Desk, store: Store) -> None:
    unit = sheet()
    unit.write(NEW_ITEM, id=1, name="one")
    unit.write(NEW_ITEM, id=1, name="two")

    with pytest.raises(StatementFailed, match=r"(?i)unique"):
        shop.commit(unit)

    assert read_rows(store, ITEMS) == []


def test_the_writer_goes_on_after_a_refusal(shop: Desk, store: Store) -> None:
    for number in range(3):
        broken = sheet()
        broken.write("insert into nowhere (id) values (1)")
        with pytest.raises(StatementFailed):
            shop.commit(broken)
        good = sheet()
        good.write(NEW_ITEM, id=number, name="x")
        shop.commit(good)

    assert len(read_rows(store, ITEMS)) == 3


# -- many rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_one_statement_for_many_rows(shop: Desk, store: Store, count: int) -> None:
    unit = sheet()
    call = unit.write_many(NEW_ITEM, [{"id": number, "name": str(number)} for number in range(count)])

    shop.commit(unit)

    assert call.changes == count
    assert len(read_rows(store, ITEMS)) == count


def test_a_bad_row_among_many_takes_all_of_them_back(shop: Desk, store: Store) -> None:
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": number % 5, "name": "x"} for number in range(6)])

    with pytest.raises(StatementFailed, match=r"(?i)unique"):
        shop.commit(unit)

    assert read_rows(store, ITEMS) == []


def test_changes_of_many_rows_are_their_own_where_a_count_is_kept(shop: Desk) -> None:
    shop.upkeep.keep_counts(["shop"])
    unit = sheet()
    call = unit.write_many(NEW_ITEM, [{"id": number, "name": "x"} for number in range(4)])

    shop.commit(unit)

    assert call.changes == 4


# -- atomically ---------------------------------------------------------------------------------------------------


def test_atomically_reads_what_its_unit_wrote_before(shop: Desk) -> None:
    unit = sheet()
    unit.write(NEW_ITEM, id=1, name="lamp")
    call = unit.atomically(lambda tx: (tx.value("select name from shop where id = :id", id=1), tx.column(ITEMS)))
    with pytest.raises(NotYetCommitted):
        _ = call.result

    shop.commit(unit)

    assert call.result == ("lamp", [1])


@pytest.mark.spec("A8-01")
def test_every_way_of_reading_inside_a_commit(shop: Desk) -> None:
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    nobody = "select id from shop where id = :id"
    call = unit.atomically(
        lambda tx: [
            [row.name for row in tx.rows(ITEMS)],
            tx.first(ITEMS)["id"],
            tx.value("select count(*) from shop"),
            tx.column("select name from shop order by id desc"),
            tx.rows(nobody, id=9),
            tx.first(nobody, {"id": 9}),
            tx.value(nobody, id=9),
            tx.column(nobody, id=9),
            tx.write("update shop set stock = 5"),
        ]
    )

    shop.commit(unit)

    assert call.result == [["a", "b"], 1, 2, ["b", "a"], [], None, None, [], 2]


def test_atomically_decides_inside_the_commit(shop: Desk, store: Store) -> None:
    unit = sheet()
    unit.write("insert into shop (id, name, stock) values (1, 'lamp', 3)")
    shop.commit(unit)

    def take_two(tx: Transaction) -> bool:
        if tx.value(STOCK) < 2:
            return False
        tx.write("update shop set stock = stock - 2 where id = 1")
        return True

    units = [sheet(), sheet()]
    calls = [unit.atomically(take_two) for unit in units]
    shop.commit(*units)

    assert [call.result for call in calls] == [True, False]
    assert read_rows(store, STOCK) == [(1,)]


@pytest.mark.spec("A8-23")
def test_an_error_inside_atomically_is_the_units_and_takes_everything_back(shop: Desk, store: Store) -> None:
    def refuse(tx: Transaction) -> None:
        tx.write(NEW_ITEM, id=2, name="inside")
        raise ValueError("not for sale")

    unit = sheet()
    unit.write(NEW_ITEM, id=1, name="before")
    unit.atomically(refuse)

    with pytest.raises(ValueError, match="not for sale") as error:
        shop.commit(unit)

    assert any("test_users_writes.py" in note for note in error.value.__notes__)
    assert read_rows(store, ITEMS) == []


def test_a_refused_statement_inside_atomically_says_what_it_was(shop: Desk) -> None:
    unit = sheet()
    unit.atomically(lambda tx: tx.write("insert into nowhere (id) values (1)"))

    with pytest.raises(StatementFailed, match="nowhere"):
        shop.commit(unit)


@pytest.mark.parametrize(
    "sql, refusal",
    [("commit", BadStatement), ("select 1", BadStatement), ("delete from shop where id = :id", BadParameter)],
)
def test_atomically_checks_its_statements_as_a_write_does(shop: Desk, sql: str, refusal: type[Exception]) -> None:
    unit = sheet()
    unit.atomically(lambda tx: tx.write(sql))

    with pytest.raises(refusal):
        shop.commit(unit)


def test_the_transaction_ends_with_its_function(shop: Desk, store: Store) -> None:
    """What keeps it for later must not write outside a commit."""
    kept: list[Transaction] = []
    unit = sheet()
    unit.atomically(kept.append)
    shop.commit(unit)

    with pytest.raises(Exception, match="unit of work"):
        kept[0].write(NEW_ITEM, id=1, name="late")

    assert read_rows(store, ITEMS) == []


def test_the_same_statement_of_two_tasks_is_measured_for_each(shop: Desk) -> None:
    units = [Sheet(task) for task in ("a", "b", "a")]
    for number, unit in enumerate(units, 1):
        unit.write(NEW_ITEM, id=number, name="lamp")

    committed = shop.commit(*units)

    assert [task for task, _ in committed.measures if task in ("a", "b")] == ["a", "b", "a"]


def test_a_measure_says_how_often_a_statement_was_executed_and_how_many_rows_it_wrote(shop: Desk) -> None:
    unit = Sheet("task")
    unit.write(NEW_ITEM, id=1, name="lamp")
    unit.write_many(RENAME, [{"id": 1, "name": name} for name in "abc"])
    unit.atomically(lambda tx: [tx.write(ADD_WORD, word=word) for word in "de"])

    committed = shop.commit(unit)

    found = [(each.sql, each.executions, each.rows_written) for task, each in committed.measures if task == "task"]
    assert found == [(NEW_ITEM, 1, 1), (RENAME, 3, 3), (ADD_WORD, 1, 1), (ADD_WORD, 1, 1)]


def test_an_update_is_measured_by_the_rows_it_reads_however_often_it_ran(shop: Desk) -> None:
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": number, "name": "lamp"} for number in range(1, 11)])
    shop.commit(unit)

    reads: list[int] = []
    for _ in range(40):
        unit = Sheet("task")
        unit.write("update shop set stock = stock + 1 where name = 'lamp'")
        reads += [each.rows_read for task, each in shop.commit(unit).measures if task == "task"]

    assert len(reads) == 40
    assert min(reads) >= 10
    assert max(reads) <= 60
