"""Readers see what is committed, all of it and nothing else, and hold nothing back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.contracts.effects import Transaction
from penstock.contracts.store import Reader, Store
from penstock.model.allowance import Allowance
from penstock.model.errors import BadStatement, StatementFailed
from penstock.storage.postgres.store import PostgresStore
from tests.contract.conftest import at_a_desk
from tests.contract.material import ITEMS, NEW_ITEM, Desk, read_rows, sheet
from tests.postgres import empty_database


@pytest.fixture
def shop(desk: Desk) -> Desk:
    desk.open_shop()
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": number, "name": f"item {number}"} for number in range(5)])
    desk.commit(unit)
    return desk


@pytest.fixture
def reader(shop: Desk, store: Store) -> Iterator[Reader]:
    reader = store.open_reader()
    yield reader
    reader.close()


def test_a_read_gives_columns_and_rows(reader: Reader) -> None:
    found = reader.read("select id, name as title from shop where id < :most order by id", {"most": 2}, rows_max=10)

    assert found.columns == ("id", "title")
    assert found.values == [(0, "item 0"), (1, "item 1")]
    assert found.measure.executions == 1


def test_a_read_without_rows_still_knows_its_columns(reader: Reader) -> None:
    found = reader.read("select id, name as title from shop where id = 404", {}, rows_max=10)

    assert (found.columns, found.values) == (("id", "title"), [])


@pytest.mark.parametrize("rows_max, given", [(0, 1), (3, 4), (4, 5), (5, 5), (100, 5)])
def test_a_read_gives_one_row_more_than_asked_so_that_one_can_tell(reader: Reader, rows_max: int, given: int) -> None:
    assert len(reader.read(ITEMS, {}, rows_max=rows_max).values) == given


def test_a_reader_opened_before_a_commit_sees_it_afterwards(shop: Desk, reader: Reader) -> None:
    assert len(reader.read(ITEMS, {}, rows_max=10).values) == 5
    unit = sheet()
    unit.write(NEW_ITEM, id=9, name="new")

    shop.commit(unit)

    assert len(reader.read(ITEMS, {}, rows_max=10).values) == 6


def test_a_reader_never_sees_what_is_not_committed(shop: Desk, reader: Reader) -> None:
    seen: list[int] = []

    def look_from_outside(tx: Transaction) -> None:
        seen.append(len(reader.read(ITEMS, {}, rows_max=10).values))

    unit = sheet()
    unit.write(NEW_ITEM, id=9, name="new")
    unit.atomically(look_from_outside)
    unit.write(NEW_ITEM, id=10, name="newer")
    shop.commit(unit)

    assert seen == [5]
    assert len(reader.read(ITEMS, {}, rows_max=10).values) == 7


def test_a_reader_sees_a_commit_whole_or_not_at_all(shop: Desk, reader: Reader) -> None:
    total = "select sum(stock) from shop"
    for _ in range(20):
        unit = sheet()
        unit.write("update shop set stock = stock + 1 where id = 1")
        unit.write("update shop set stock = stock - 1 where id = 2")
        shop.commit(unit)
        assert reader.read(total, {}, rows_max=1).values == [(0,)]


@pytest.mark.parametrize("rows_max", [0, 2, 100])
def test_a_reader_holds_no_snapshot_between_two_reads(shop: Desk, reader: Reader, rows_max: int) -> None:
    """One left in the middle of its rows would see the old ones, and keep the log from being reused."""
    reader.read(ITEMS, {}, rows_max=rows_max)
    unit = sheet()
    unit.write("delete from shop")
    shop.commit(unit)

    assert reader.read(ITEMS, {}, rows_max=100).values == []


def test_a_failed_read_holds_no_snapshot_either(shop: Desk, reader: Reader) -> None:
    with pytest.raises(StatementFailed):
        reader.read("select id, abs(-9223372036854775807 - 1) from shop where id = 1", {}, rows_max=10)
    unit = sheet()
    unit.write("delete from shop")
    shop.commit(unit)

    assert reader.read(ITEMS, {}, rows_max=100).values == []


def test_a_reader_cannot_write(shop: Desk, reader: Reader, store: Store) -> None:
    with pytest.raises(StatementFailed, match=r"(?i)read.?only"):
        reader.read("delete from shop", {}, rows_max=10)

    assert len(read_rows(store, ITEMS)) == 5


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("select id from nowhere", {}, "nowhere"),
    ("select title from shop", {}, "title"),
    ("selec 1", {}, "selec"),
]


@pytest.mark.parametrize("sql, bound, named", BAD)
def test_a_query_the_database_refuses_is_named(reader: Reader, sql: str, bound: dict[str, Any], named: str) -> None:
    with pytest.raises(StatementFailed) as refused:
        reader.read(sql, bound, rows_max=10)

    assert named in str(refused.value)
    assert sql in str(refused.value)
    assert len(reader.read(ITEMS, {}, rows_max=10).values) == 5


def test_engine_tables_can_be_read(reader: Reader) -> None:
    assert reader.read("select count(*) from dead_messages", {}, rows_max=1).values == [(0,)]


PERSISTENT = [
    "select set_config('search_path', 'pg_catalog', false)",
    "select set_config('statement_timeout', '1', false)",
    "select set_config('default_transaction_read_only', 'off', false)",
]


@pytest.mark.parametrize("sql", PERSISTENT)
@pytest.mark.parametrize("made", ["postgres"], indirect=True)
def test_a_setting_that_a_query_changes_ends_with_it(reader: Reader, sql: str) -> None:
    name = sql.split("'")[1]
    show = f"select current_setting('{name}')"
    before = reader.read(show, {}, rows_max=1).values

    reader.read(sql, {}, rows_max=1)

    assert reader.read(show, {}, rows_max=1).values == before
    assert len(reader.read(ITEMS, {}, rows_max=10).values) == 5


DETOURS = [
    "with gone as (delete from shop returning id) select id from gone",
    "select nextval('penstock.penstock_messages_seq_seq')",
    "select set_config('transaction_read_only', 'off', true)",
    "do $$ begin delete from shop; end $$",
    "copy shop to program 'true'",
    "create temp table mine (id integer)",
]


@pytest.mark.parametrize("sql", DETOURS)
@pytest.mark.parametrize("made", ["postgres"], indirect=True)
def test_a_reader_writes_by_no_detour(reader: Reader, store: Store, sql: str) -> None:
    """Handed over as it stands, past the check of the text."""
    with pytest.raises((StatementFailed, BadStatement)):
        reader.read(sql, {}, rows_max=10)

    assert len(read_rows(store, ITEMS)) == 5


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_client_changes_no_setting_of_a_reader(reader: Reader) -> None:
    """SQLite runs some pragmas while it compiles them, even to explain them."""
    before = reader.read("select cache_size from pragma_cache_size", {}, rows_max=1).values

    with pytest.raises(StatementFailed, match="not authorized"):
        reader.ask([("pragma cache_size = 5", {})], Allowance(10, 1_000, 1.0))

    assert reader.read("select cache_size from pragma_cache_size", {}, rows_max=1).values == before


def test_postgres_measures_a_query_five_times_then_every_sixteenth_and_takes_the_mean_between() -> None:
    store = PostgresStore(empty_database())
    with at_a_desk(store) as desk:
        desk.open_shop()
        unit = sheet()
        unit.write_many(NEW_ITEM, [{"id": number, "name": "lamp"} for number in range(10)])
        desk.commit(unit)
        reader = store.open_reader()

        def read() -> int:
            return reader.read("select name from shop", {}, rows_max=100).measure.rows_read

        first = [read() for _ in range(5)]
        unit = sheet()
        unit.write("delete from shop where id > 1")
        desk.commit(unit)
        then = [read() for _ in range(12)]
        reader.close()

    assert first == [10] * 5
    assert then == [10] * 10 + [2, 9]  # of six executions with 52 rows
