"""On SQLite: users' statements cannot touch the engine's tables, end the transaction or leave their connection, by no
detour through a trigger, a view or a constraint that is checked late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.contracts.effects import Transaction
from penstock.model.errors import BadMigration, PenstockError, StatementFailed
from penstock.model.migration import Migration, read
from penstock.runtime.groups import CommitGroup, commit_group
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.contract.material import ITEMS, NEW_ITEM, Desk, Sheet, message, migration, read_rows, sheet


@pytest.fixture
def inspect(tmp_path: Path) -> SqliteInspect:
    return SqliteInspect(tmp_path / "guarded.db")


@pytest.fixture
def desk(tmp_path: Path, inspect: SqliteInspect) -> Iterator[Desk]:
    with at_a_desk(SqliteStore(tmp_path / "guarded.db", synchronous="off", reserve_bytes=100_000)) as desk:
        desk.open_shop()
        desk.send(message(b"precious"))
        yield desk
    check_conservation(inspect)
    assert inspect.is_sound()


ENGINE_WRITES = [
    "delete from penstock_messages",
    "update penstock_messages set queue = 'stolen'",
    "insert into penstock_tokens (one, last) values (1, 0) on conflict (one) do update set last = 0",
    "replace into penstock_tokens (one, last) values (1, 0)",
    'update "penstock_workers" set number = 0',
    "delete from [PENSTOCK_MESSAGES]",
    "delete from main.penstock_messages",
    "with doomed as (select 1) delete from penstock_messages",
]


@pytest.mark.parametrize("sql", ENGINE_WRITES)
def test_the_engines_tables_are_not_written(desk: Desk, inspect: SqliteInspect, sql: str) -> None:
    unit = sheet()
    unit.write(sql)

    with pytest.raises(StatementFailed, match="not authorized"):
        desk.commit(unit)

    assert [row.body for row in inspect.messages()] == [b"precious"]


CONTROL = [
    "commit",
    "COMMIT",
    "end",
    "rollback",
    "begin",
    "begin immediate",
    "savepoint a",
    "release a",
    "rollback to a",
    "attach ':memory:' as other",
    "detach other",
    "pragma synchronous = off",
    "pragma query_only = on",
    "pragma user_version = 99",
    "pragma writable_schema = on",
    "pragma defer_foreign_keys = on",
]


@pytest.mark.parametrize("sql", CONTROL)
def test_the_transaction_and_the_connection_are_the_engines(desk: Desk, inspect: SqliteInspect, sql: str) -> None:
    unit = sheet(message(b"sent"))
    unit.write(NEW_ITEM, id=1, name="before")
    unit.write(sql)

    with pytest.raises(StatementFailed, match="not authorized"):
        desk.commit(unit)

    assert read_rows(desk.store, ITEMS) == []
    assert [row.body for row in inspect.messages()] == [b"precious"]


@pytest.mark.parametrize("sql", ["vacuum", "vacuum into 'copy.db'", "reindex", "analyze"])
def test_what_cannot_run_in_a_commit_fails_the_unit_alone(desk: Desk, sql: str) -> None:
    unit = sheet()
    unit.write(NEW_ITEM, id=1, name="before")
    unit.write(sql)
    unit.write("insert into nowhere (id) values (1)")

    with pytest.raises(StatementFailed):
        desk.commit(unit)

    assert read_rows(desk.store, ITEMS) == []


DETOURS = {
    "trigger": """
        create table door (id integer);
        create trigger thief after insert on door begin delete from main_messages; end""",
    "trigger on a view": """
        create view door as select 1 as id;
        create trigger thief instead of insert on door begin delete from main_messages; end""",
    "trigger in a trigger": """
        create table door (id integer);
        create table hall (id integer);
        create trigger thief after insert on hall begin delete from main_messages; end;
        create trigger usher after insert on door begin insert into hall (id) values (new.id); end""",
}


@pytest.mark.parametrize("detour", DETOURS)
def test_a_detour_made_in_a_migration_does_not_reach_the_engines_tables(
    desk: Desk, inspect: SqliteInspect, detour: str
) -> None:
    """The lint of migrations refuses the name; behind it the database itself does, when the trigger fires."""
    text = DETOURS[detour]
    made = migration(text, "0002_detour.sql")
    named = tuple(statement.replace("main_messages", "penstock_messages") for statement in made.statements)
    try:
        desk.upkeep.migrate([Migration(made.name, made.checksum, named)], now=desk.now)
    except BadMigration:
        return
    unit = sheet()
    unit.write("insert into door (id) values (1)")

    with pytest.raises(StatementFailed, match=r"not authorized|prohibited"):
        desk.commit(unit)

    assert [row.body for row in inspect.messages()] == [b"precious"]


DEFINITIONS = [
    "drop table penstock_messages",
    "alter table penstock_messages add column mine text",
    "alter table penstock_messages rename to mine",
    "create index mine on penstock_messages (body)",
    "drop index penstock_messages_waiting",
    "create trigger mine after insert on penstock_messages begin select 1; end",
    "create temp trigger mine after insert on penstock_messages begin select 1; end",
    "create trigger penstock_mine after insert on shop begin delete from penstock_messages; end",
    "create temp trigger penstock_mine after insert on shop begin delete from penstock_messages; end",
    "create table penstock_mine (id integer)",
    "create view penstock_mine as select 1",
    "create temp table penstock_messages (id integer)",
    "create temp view penstock_messages as select 1",
    "delete from penstock_messages",
    "update penstock_tokens set last = 0",
    "commit",
    "pragma user_version = 9",
    "attach ':memory:' as other",
]


@pytest.mark.parametrize("sql", DEFINITIONS)
def test_a_migration_cannot_change_the_engines_schema(desk: Desk, inspect: SqliteInspect, sql: str) -> None:
    """Handed over as it stands, past the lint that refuses most of these by their text."""
    with pytest.raises(BadMigration, match="0002_evil") as refused:
        desk.upkeep.migrate([Migration("0002_evil", "x", ("create table fine (id integer)", sql))], now=desk.now)

    assert "Nothing of this file was applied" in str(refused.value)
    assert [row.body for row in inspect.messages()] == [b"precious"]
    unit = sheet(message(b"sent"))
    unit.write(NEW_ITEM, id=1, name="still works")
    desk.commit(unit)
    assert [row.body for row in inspect.messages()] == [b"precious", b"sent"]
    with pytest.raises(StatementFailed, match="no such table"):
        read_rows(desk.store, "select id from fine")


def test_a_kept_counts_trigger_cannot_be_dropped(desk: Desk, inspect: SqliteInspect) -> None:
    desk.upkeep.keep_counts(["shop"])

    # By its text: the guard lets a trigger go, since a table that is dropped takes its triggers along.
    with pytest.raises(BadMigration, match="penstock_count_shop_added"):
        read("0002_evil.sql", "-- penstock: allow drop\ndrop trigger penstock_count_shop_added;")

    unit = sheet()
    unit.write(NEW_ITEM, id=1, name="counted")
    desk.commit(unit)
    assert inspect.kept_count("shop") == 1


def test_a_table_with_a_kept_count_can_be_dropped(desk: Desk) -> None:
    desk.upkeep.keep_counts(["shop"])

    dropped = desk.upkeep.migrate([Migration("0002_gone", "x", ("drop table shop",))], now=desk.now)

    assert dropped == ["0002_gone"]


# -- statements that end the transaction by themselves, or are refused only at the commit ----------------------------


@pytest.mark.parametrize("clause", ["or rollback", "or abort", "or fail"])
def test_a_conflict_that_rolls_back_takes_only_its_own_unit_with_it(
    desk: Desk, inspect: SqliteInspect, clause: str
) -> None:
    first = sheet()
    first.write(NEW_ITEM, id=1, name="first")
    desk.commit(first)
    clash, beside = sheet(message(b"clash")), sheet(message(b"beside"))
    clash.write(f"insert {clause} into shop (id, name) values (1, 'second')")
    beside.write(NEW_ITEM, id=2, name="beside")

    result = commit_group(desk.ledger, CommitGroup([clash, beside], [], now=desk.now))

    assert (result.saved, [unit for unit, _ in result.failed], result.trouble) == ([beside], [clash], None)
    assert read_rows(desk.store, ITEMS) == [(1, "first"), (2, "beside")]
    assert [row.body for row in inspect.messages()] == [b"precious", b"beside"]


def swallow_and_go_on(tx: Transaction) -> None:
    try:
        tx.write("insert or rollback into shop (id, name) values (1, 'clash')")
    except Exception:
        tx.write(NEW_ITEM, id=3, name="outside any transaction")


def swallow_and_stop(tx: Transaction) -> None:
    try:
        tx.write("insert or rollback into shop (id, name) values (1, 'clash')")
    except Exception:
        return


@pytest.mark.parametrize("function", [swallow_and_go_on, swallow_and_stop])
def test_a_function_that_swallows_a_rollback_saves_nothing(
    desk: Desk, inspect: SqliteInspect, function: Callable[[Transaction], None]
) -> None:
    first = sheet()
    first.write(NEW_ITEM, id=1, name="first")
    desk.commit(first)
    unit, beside = sheet(message(b"never")), sheet(message(b"beside"))
    unit.atomically(function)

    result = commit_group(desk.ledger, CommitGroup([unit, beside], [], now=desk.now))

    assert (result.saved, result.trouble) == ([beside], None)
    ((failed, error),) = result.failed
    assert failed is unit
    assert isinstance(error, StatementFailed)
    assert read_rows(desk.store, ITEMS) == [(1, "first")]
    assert [row.body for row in inspect.messages()] == [b"precious", b"beside"]


def test_a_constraint_checked_at_the_commit_fails_its_unit_alone(desk: Desk, inspect: SqliteInspect) -> None:
    desk.upkeep.migrate(
        [
            migration(
                "create table sale (item integer not null references shop (id) deferrable initially deferred)",
                "0002_sale.sql",
            )
        ],
        now=desk.now,
    )
    orphan, beside = sheet(message(b"orphan")), sheet(message(b"beside"))
    orphan.write("insert into sale (item) values (404)")

    result = commit_group(desk.ledger, CommitGroup([orphan, beside], [], now=desk.now))

    assert (result.saved, result.trouble) == ([beside], None)
    ((failed, error),) = result.failed
    assert failed is orphan
    assert isinstance(error, PenstockError)
    assert "FOREIGN KEY" in str(error)
    assert [row.body for row in inspect.messages()] == [b"precious", b"beside"]


@pytest.mark.parametrize("many", [False, True])
def test_a_statement_that_returns_rows_is_run_to_its_end(desk: Desk, many: bool) -> None:
    unit = sheet()
    sql = "insert into shop (id, name) values (:id, 'a'), (:id + 10, 'b') returning id, name"
    call = unit.write_many(sql, [{"id": 1}, {"id": 2}, {"id": 3}]) if many else unit.write(sql, 2, id=1)

    desk.commit(unit)

    assert call.changes == (6 if many else 2)
    assert len(read_rows(desk.store, ITEMS)) == call.changes


def test_a_user_s_text_never_shares_a_prepared_statement_with_the_engine(desk: Desk) -> None:
    """The guard is asked when a text is prepared, so the same text prepared by the engine would slip past it."""
    for sql in ("commit", "rollback", "begin immediate", "pragma data_version", "pragma user_version"):
        desk.commit()
        desk.upkeep.look_around()
        unit: Sheet = sheet()
        unit.write(sql)
        with pytest.raises(StatementFailed, match="not authorized"):
            desk.commit(unit)
