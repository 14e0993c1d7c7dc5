"""Migrations: what is applied and in which order, and what a file may not do."""

from __future__ import annotations

import apsw
import pytest

from penstock.model.errors import BadMigration
from penstock.model.migration import Migration, for_dialect, lint, plan, read
from tests.insert_lint import lint_inserts

FIRST = read("0001_apps.sql", "create table apps (track_id integer primary key);")
SECOND = read("0002_prices.sql", "alter table apps add column price real;\ncreate index by_price on apps (price);")
THIRD = read("0003_names.sql", "alter table apps add column name text;")


def applied(*migrations: Migration) -> list[tuple[str, str]]:
    return [(migration.name, migration.checksum) for migration in migrations]


# -- planning ---------------------------------------------------------------------------------------------------


def test_a_file_becomes_its_statements() -> None:
    assert (SECOND.name, SECOND.dialect) == ("0002_prices", None)
    assert SECOND.statements == ("alter table apps add column price real", "create index by_price on apps (price)")


@pytest.mark.spec("A8-09")
def test_what_is_new_is_applied_in_order_and_a_rerun_does_nothing() -> None:
    db = apsw.Connection(":memory:")
    found = [THIRD, FIRST, SECOND]

    done = applied(FIRST)
    db.execute(FIRST.statements[0])
    for migration in plan(found, done):
        for statement in migration.statements:
            db.execute(statement)
        done += applied(migration)

    assert [column[1] for column in db.pragma("table_info", "apps")] == ["track_id", "price", "name"]
    assert plan(found, done) == []


@pytest.mark.spec("A8-09")
def test_a_file_edited_after_it_was_applied_is_reported() -> None:
    edited = read("0001_apps.sql", "create table apps (track_id integer primary key, name text);")

    with pytest.raises(BadMigration, match="0001_apps was edited") as refused:
        plan([edited, SECOND], applied(FIRST))

    assert refused.value.facts["applied"] == FIRST.checksum
    assert f"(checksum {FIRST.checksum[:12]} then, {edited.checksum[:12]} now)" in str(refused.value)


def test_an_applied_file_that_is_gone_is_reported() -> None:
    with pytest.raises(BadMigration, match="0001_apps was applied, and its file is gone"):
        plan([SECOND], applied(FIRST, SECOND))


def test_a_file_that_comes_before_an_applied_one_is_reported() -> None:
    with pytest.raises(BadMigration, match="0002_prices comes before 0003_names"):
        plan([FIRST, SECOND, THIRD], applied(FIRST, THIRD))


def test_the_tenth_file_comes_after_the_ninth_without_leading_zeros() -> None:
    files = [read(f"{number}_x.sql", "select 1") for number in (10, 9, 1)]

    assert [migration.name for migration in plan(files, [])] == ["1_x", "9_x", "10_x"]
    assert [migration.name for migration in for_dialect(files, "sqlite")] == ["1_x", "9_x", "10_x"]


def test_line_ends_and_a_byte_order_mark_are_no_edit() -> None:
    text = "create table a (b);\n-- done\n"

    assert read("1_a.sql", text) == read("1_a.sql", "\ufeff" + text.replace("\n", "\r\n"))
    assert read("1_a.sql", text).checksum != read("1_a.sql", text + "\n").checksum


@pytest.mark.parametrize("name", ["1_a.txt", ".sql", "1_a", "a/1_a.sql", ""])
def test_a_file_that_is_no_migration_is_refused(name: str) -> None:
    with pytest.raises(BadMigration, match="is not a migration name"):
        read(name, "select 1")


def test_an_empty_migration_is_fine() -> None:
    assert read("1_a.postgres.sql", "-- nothing to do here\n").statements == ()


# -- twins ------------------------------------------------------------------------------------------------------


def test_each_database_gets_its_twin_and_the_common_files() -> None:
    common = read("1_a.sql", "select 1")
    sqlite = read("2_b.sqlite.sql", "select 2")
    postgres = read("2_b.postgres.sql", "select 3")

    assert for_dialect([postgres, sqlite, common], "sqlite") == [common, sqlite]
    assert for_dialect([postgres, sqlite, common], "postgres") == [common, postgres]


def test_a_twin_wins_over_the_common_file() -> None:
    common, twin = read("1_a.sql", "select 1"), read("1_a.postgres.sql", "select 2")

    assert for_dialect([common, twin], "postgres") == [twin]
    assert for_dialect([common, twin], "sqlite") == [common]


def test_a_missing_twin_is_reported_with_its_name() -> None:
    with pytest.raises(BadMigration, match=r"Add 1_a\.postgres\.sql"):
        for_dialect([read("1_a.sqlite.sql", "select 1")], "postgres")


def test_two_files_of_one_name_are_refused() -> None:
    twins = [read("1_a.sqlite.sql", "select 1"), read("1_a.postgres.sql", "select 1")]

    with pytest.raises(BadMigration, match="one name"):
        plan(twins, [])
    with pytest.raises(BadMigration, match="two migrations 1_a"):
        for_dialect([twins[0], twins[0]], "sqlite")


# -- what a file may not do ---------------------------------------------------------------------------------------

REMOVALS = [
    "drop table apps",
    "DROP TABLE IF EXISTS apps",
    "alter table apps drop column price",
    "alter table apps drop price",
    "alter table only public.apps add column x int, drop column if exists price",
    "alter table apps rename to old_apps",
    "alter table apps rename column price to cost",
    "alter table apps rename price to cost",
    "drop schema market cascade",
]


@pytest.mark.spec("A8-10")
@pytest.mark.parametrize("sql", REMOVALS)
def test_removing_or_renaming_is_refused_unless_the_file_allows_it(sql: str) -> None:
    script = f"create table other (a);\n\n-- why\n{sql};\n"

    with pytest.raises(BadMigration, match=r"line 4: .*removes or renames"):
        read("1_a.sql", script)
    assert len(read("1_a.sql", script + "-- penstock: allow drop\n").statements) == 2
    assert len(read("1_a.sql", "--  Penstock:  allow drop\n" + script).statements) == 2


@pytest.mark.spec("A8-10")
@pytest.mark.parametrize(
    "no_permission", ["select '-- penstock: allow drop';", "/* -- penstock: allow drop */", "-- penstock: allow drops"]
)
def test_only_a_comment_line_allows_it(no_permission: str) -> None:
    assert [problem.line for problem in lint(f"{no_permission}\ndrop table apps;")] == [2]


@pytest.mark.parametrize(
    "sql",
    [
        "drop index by_price",
        "drop view cheap",
        "drop trigger keep",
        "alter table apps add column drop text",
        "alter table apps add rename text",
        "alter table apps drop constraint positive",
        "alter table apps alter column price drop not null",
        "insert into log values ('drop table apps')",
        "create trigger keep after insert on apps begin update apps set a = 1; end",
    ],
)
def test_what_removes_no_data_is_allowed(sql: str) -> None:
    assert lint(sql) == []


@pytest.mark.parametrize(
    "sql, message",
    [
        ("begin;\ncreate table a (b);\ncommit;", "`begin` is not allowed"),
        ("pragma foreign_keys = off;", "`pragma` is not allowed"),
        ("create table penstock_extra (a);", "uses penstock_extra"),
        ("create trigger t after insert on a begin delete from penstock_messages; end;", "uses penstock_messages"),
        ("alter table 'penstock_messages' add column a;", "uses penstock_messages"),
        ("insert into a values (:value);", "no values for :value"),
        ("insert into a values (?);", "cannot be a parameter"),
        ("create table a (b);\ninsert into a values ('open);", "line 2"),
    ],
)
def test_what_cannot_run_in_a_migration_is_refused(sql: str, message: str) -> None:
    with pytest.raises(BadMigration, match=message):
        read("1_a.sql", sql)


def test_every_problem_is_listed_with_its_line() -> None:
    assert [problem.line for problem in lint("begin;\ndrop table a;\n\ncommit;")] == [1, 2, 4]
    assert [problem.line for problem in lint("select 1;\n\0")] == [1]  # a file that cannot be read at all


@pytest.mark.spec("A8-11")
@pytest.mark.parametrize(
    "sql, lines",
    [
        ("insert into a values (1)", [1]),
        ("insert into a (b)\nselect b from c", [1]),
        ("insert into a values ('on conflict do nothing')", [1]),
        ("insert into a values (1) on conflict do nothing", []),
        ("insert into a values (1) on conflict (b) do update set c = 1", []),
        ("insert or ignore into a values (1)", []),
        ("replace into a values (1)", []),
        ("select 'insert into a'", []),
        ("-- penstock: plain insert\ninsert into a values (1)", []),
        ("insert into a values (1); -- penstock: plain insert\ninsert into b values (1);", [2]),
        ("insert into a -- penstock: plain insert\nvalues (1);\ninsert into b values (1);", [3]),
        ("with x as (select 1)\ninsert into a select * from x", [2]),
        ("with x as (insert into b values (1) returning a)\ninsert into a select a from x on conflict do nothing", [1]),
        (
            "create trigger t after insert on a begin\ninsert into b values (1);\ninsert or ignore into c values (1);\nend",
            [2],
        ),
        ("insert into a values ('open)", [1]),
    ],
)
def test_an_insert_states_what_happens_when_the_row_is_there(sql: str, lines: list[int]) -> None:
    assert [problem.line for problem in lint_inserts(sql)] == lines
