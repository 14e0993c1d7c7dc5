"""Upkeep: migrations once and whole, counts that are kept, usage that adds up, and records that go in portions."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.contracts.effects import Transaction
from penstock.contracts.store import Store
from penstock.model.errors import BadMigration, StatementFailed
from penstock.model.migration import Migration, plan
from penstock.model.times import day_of, month_of
from penstock.model.usage import Measure
from penstock.storage.postgres.store import PostgresStore
from tests.contract.conftest import Made, at_a_desk
from tests.contract.inspection import Inspect
from tests.contract.material import ITEMS, NEW_ITEM, SECOND, SHOP, T0, Desk, message, migration, read_rows, sheet
from tests.extent import patient
from tests.postgres import empty_database, look

DAY = 86_400 * SECOND
PRICES = migration("alter table shop add column price integer; update shop set price = 5", "0002_prices.sql")

# -- migrations ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("A8-09")
def test_migrations_are_applied_in_order_and_once(desk: Desk, store: Store) -> None:
    assert desk.upkeep.migrate([SHOP, PRICES], now=T0) == ["0001_shop", "0002_prices"]
    assert desk.upkeep.migrate([SHOP, PRICES], now=T0) == []

    assert desk.upkeep.applied() == [(SHOP.name, SHOP.checksum), (PRICES.name, PRICES.checksum)]
    assert read_rows(store, "select id, name, stock, price from shop") == []


@pytest.mark.spec("A8-09")
def test_an_edited_file_is_reported(desk: Desk) -> None:
    desk.upkeep.migrate([SHOP], now=T0)
    edited = migration("create table shop (id integer primary key)")

    with pytest.raises(BadMigration, match="edited after it was applied"):
        plan([edited], desk.upkeep.applied())


def test_a_file_that_fails_is_rolled_back_whole_and_those_before_it_stay(desk: Desk, store: Store) -> None:
    broken = migration(
        "create table half (id integer); insert into half (id) values (1); insert into nowhere (id) values (1)",
        "0002_broken.sql",
    )

    with pytest.raises(BadMigration) as refused:
        desk.upkeep.migrate([SHOP, broken], now=T0)

    assert "0002_broken" in str(refused.value)
    assert "nowhere" in str(refused.value)
    assert [name for name, _ in desk.upkeep.applied()] == ["0001_shop"]
    assert read_rows(store, ITEMS) == []
    with pytest.raises(StatementFailed, match="half"):
        read_rows(store, "select id from half")


def test_a_failed_file_can_be_put_right(desk: Desk) -> None:
    with pytest.raises(BadMigration):
        desk.upkeep.migrate([SHOP, migration("insert into shop (id) values (1)", "0002_seed.sql")], now=T0)

    right = migration("insert into shop (id, name) values (1, 'lamp')", "0002_seed.sql")

    assert desk.upkeep.migrate([SHOP, right], now=T0) == ["0002_seed"]


def test_a_constraint_checked_at_the_end_of_a_file_is_its_failure_too(desk: Desk) -> None:
    late = migration(
        "create table sale (item integer not null references shop (id) deferrable initially deferred); "
        "insert into sale (item) values (404)",
        "0002_sale.sql",
    )

    with pytest.raises(BadMigration, match="0002_sale"):
        desk.upkeep.migrate([SHOP, late], now=T0)

    assert [name for name, _ in desk.upkeep.applied()] == ["0001_shop"]


def test_two_who_migrate_at_the_same_time_apply_each_file_once(made: Made, desk: Desk) -> None:
    desk.upkeep.migrate([SHOP], now=T0)
    files = [
        migration(f"insert into shop (id, name) values ({number}, 'x')", f"{number:04}_item.sql")
        for number in range(2, 22)
    ]
    start = threading.Barrier(2)
    done: list[str] = []
    failures: list[Exception] = []

    def work(store: Store) -> None:
        try:
            with at_a_desk(store) as each:
                start.wait()
                done.extend(each.upkeep.migrate([SHOP, *files], now=T0))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(store,)) for store in (made.store, made.another)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not failures
    assert sorted(done) == [each.name for each in files]
    assert len(read_rows(made.store, ITEMS)) == 20


# -- counts that are kept -----------------------------------------------------------------------------------------


@pytest.fixture
def counted(desk: Desk) -> Desk:
    desk.open_shop()
    unit = sheet()
    unit.write_many(NEW_ITEM, [{"id": number, "name": "old"} for number in range(3)])
    desk.commit(unit)
    desk.upkeep.keep_counts(["shop"])
    return desk


def rows_of(store: Store) -> int:
    return int(read_rows(store, "select count(*) from shop")[0][0])


@pytest.mark.spec("A8-21")
def test_a_kept_count_begins_with_what_is_there(counted: Desk, inspect: Inspect) -> None:
    assert inspect.kept_count("shop") == 3


def test_keeping_a_count_twice_changes_nothing(counted: Desk, inspect: Inspect) -> None:
    counted.upkeep.keep_counts(["shop"])

    unit = sheet()
    unit.write(NEW_ITEM, id=9, name="new")
    counted.commit(unit)

    assert inspect.kept_count("shop") == 4


@pytest.mark.spec("A8-21")
@pytest.mark.parametrize(
    "sql",
    [
        "insert into shop (id, name) values (10, 'new'), (11, 'new')",
        "insert into shop (id, name) values (1, 'new'), (12, 'new') on conflict (id) do nothing",
        "insert into shop (id, name) values (1, 'new'), (12, 'new') on conflict (id) do update set name = excluded.name",
        "update shop set name = 'changed'",
        "delete from shop where id < 2",
        "delete from shop",
        "insert into shop (id, name) select id + 100, name from shop",
    ],
)
def test_a_kept_count_stays_right(counted: Desk, store: Store, inspect: Inspect, sql: str) -> None:
    unit = sheet()
    unit.write(sql)
    unit.atomically(lambda tx: tx.write(NEW_ITEM, id=77, name="beside"))

    counted.commit(unit)

    assert inspect.kept_count("shop") == rows_of(store)


def test_a_rollback_takes_the_count_back_too(counted: Desk, store: Store, inspect: Inspect) -> None:
    def insert_and_refuse(tx: Transaction) -> None:
        tx.write(NEW_ITEM, id=50, name="x")
        tx.write("delete from shop where id = 1")
        raise ValueError("no")

    unit = sheet()
    unit.write(NEW_ITEM, id=51, name="x")
    unit.atomically(insert_and_refuse)

    with pytest.raises(ValueError, match="no"):
        counted.commit(unit)

    assert inspect.kept_count("shop") == rows_of(store) == 3


# -- usage, size, retention ---------------------------------------------------------------------------------------


def test_usage_adds_up_by_month_task_and_statement(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    cost = Measure("select 1", 1, 10, 2, 3, 40, 0.5)
    for each in (desk, neighbour):
        each.upkeep.add_usage("2026-11", [("crawl", cost), ("crawl", cost), ("score", cost)], now=T0)
    desk.upkeep.add_usage("2026-12", [("crawl", cost)], now=T0)

    assert inspect.usage() == {
        ("2026-11", "crawl"): (4, 40, 8),
        ("2026-11", "score"): (2, 20, 4),
        ("2026-12", "crawl"): (1, 10, 2),
    }


def test_the_size_grows_with_what_is_stored(desk: Desk) -> None:
    desk.open_shop()
    before = desk.upkeep.size_bytes()
    for part in range(3):  # a server may fill the room first that what was deleted left
        unit = sheet()
        unit.write_many(NEW_ITEM, [{"id": part * 1_000 + number, "name": "x" * 1_000} for number in range(1_000)])
        desk.commit(unit)

    assert desk.upkeep.size_bytes() >= before + 1_000_000


def test_one_sample_of_the_size_a_day(desk: Desk) -> None:
    assert len(desk.upkeep.sample_size(now=T0)) == 1
    assert len(desk.upkeep.sample_size(now=T0 + SECOND)) == 1

    samples = desk.upkeep.sample_size(now=T0 + DAY)

    assert [sample.at for sample in samples] == [T0 + SECOND, T0 + DAY]
    assert all(sample.size_bytes > 0 for sample in samples)


def test_pruning_removes_no_more_than_its_limit_of_anything(desk: Desk, inspect: Inspect) -> None:
    long_ago = T0 - 500 * DAY
    desk.now = long_ago
    for number in range(30):
        desk.commit(sheet(once=f"key {number}"))
        cost = Measure(f"select {number}", 1, 0, 0, 0, 0, 0.0)
        desk.upkeep.add_usage(month_of(long_ago), [("task", cost)], now=long_ago)
        desk.upkeep.sample_size(now=long_ago + number * DAY)
    fresh = Measure("select 1", 1, 0, 0, 0, 0, 0.0)
    desk.upkeep.add_usage(month_of(T0), [("task", fresh)], now=T0)

    portions = []
    while portion := desk.upkeep.prune(now=T0, limit=7):
        portions.append(portion)

    assert max(portions) <= 7
    assert sum(portions) == 90
    assert inspect.once_keys() == []
    assert list(inspect.usage()) == [(month_of(T0), "task")]
    assert [day_of(sample.at) for sample in desk.upkeep.sample_size(now=T0)] == [day_of(T0)]


def test_pruning_leaves_alone_what_is_young(desk: Desk, inspect: Inspect) -> None:
    desk.commit(sheet(once="young"))
    desk.upkeep.sample_size(now=T0)

    assert desk.upkeep.prune(now=T0, limit=100) == 0
    assert inspect.once_keys() == ["young"]


def test_usage_sizes_and_once_keys_are_kept_for_as_long_as_they_are_needed(desk: Desk, inspect: Inspect) -> None:
    for days in (16, 14):
        desk.now = T0 - days * DAY
        desk.commit(sheet(once=f"{days} days old"))
    for days in (401, 399):
        desk.upkeep.sample_size(now=T0 - days * DAY)
    for days in (432, 370):
        used = Measure("select 1", 1, 0, 0, 0, 0, 0.0)
        desk.upkeep.add_usage(month_of(T0 - days * DAY), [("task", used)], now=T0)

    assert desk.upkeep.prune(now=T0, limit=100, dedup_seconds=20 * 86_400.0) == 2
    assert inspect.once_keys() == ["14 days old", "16 days old"]
    assert desk.upkeep.prune(now=T0, limit=100) == 1

    assert inspect.once_keys() == ["14 days old"]
    assert [sample.at for sample in desk.upkeep.sample_size(now=T0)] == [T0 - 399 * DAY, T0]
    assert list(inspect.usage()) == [(month_of(T0 - 370 * DAY), "task")]


def test_a_process_notices_that_another_one_has_committed(desk: Desk, neighbour: Desk) -> None:
    desk.send(message())
    desk.upkeep.look_around()
    assert not desk.upkeep.look_around()

    neighbour.send(message())

    assert desk.upkeep.look_around()
    assert not desk.upkeep.look_around()


def test_postgres_keeps_the_last_number_of_a_process_for_a_day_after_its_end() -> None:
    url = empty_database()
    with at_a_desk(PostgresStore(url)) as ended:
        ended.send(message())

    with at_a_desk(PostgresStore(url)) as desk:
        desk.send(message())
        ends = time.monotonic() + patient(10.0)
        while look(url, "select 1 from penstock_workers where id = %s", ended.me) and time.monotonic() < ends:
            desk.workers.retire(ended.me, now=T0)  # nothing, until the server has noticed that it is gone
        noted = numbers(url)
        desk.upkeep.prune(now=noted[ended.me] + DAY, limit=100)
        assert numbers(url).keys() == {ended.me, desk.me}

        desk.upkeep.prune(now=noted[ended.me] + DAY + SECOND, limit=100)
        assert numbers(url).keys() == {desk.me}


def numbers(url: str) -> dict[int, int]:
    return dict(look(url, "select worker, noted_at from penstock_numbers"))


def test_a_migration_is_a_value(desk: Desk) -> None:
    assert desk.upkeep.migrate([Migration("0001_nothing", "checksum", ())], now=T0) == ["0001_nothing"]
    assert desk.upkeep.applied() == [("0001_nothing", "checksum")]
