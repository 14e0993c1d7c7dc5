"""What ships runs on both databases: every migration and every statement of the systems and examples is put to each of them.

A statement is any text in their Python files that begins like SQL and can be read as one statement. SQLite and PostgreSQL
prepare it over the tables that the migrations of its folder make, without running it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw
import psycopg
import pytest

from penstock.connect.collector import MIGRATIONS as CONNECT
from penstock.data.migrations import found_in
from penstock.model.errors import BadStatement
from penstock.model.migration import Migration
from penstock.model.statement import one_line, scan, tokens
from penstock.storage.postgres.store import PostgresStore
from penstock.storage.sqlite.store import SqliteStore
from tests.postgres import server

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (ROOT / "examples", ROOT / "src" / "penstock_systems")
SYSTEM_WITH_CONNECTORS = ROOT / "src/penstock_systems/rentals"
APPSTORE = "src/penstock_systems/appstore/crawl"
VERBS = re.compile(r"\s*(select|insert|update|delete|with|values)\b", re.IGNORECASE)
# Both take these words, and mean different things: numbers end at two billion on one of them, and fractions after seven
# digits.
NARROW = re.compile(r"\b(integer|int|smallint|real|float4|int4)\b(?!\s*\()", re.IGNORECASE)
WIDE = "Write bigint, or double precision; `-- penstock: narrow` on a line of its own says that it is meant."


class Statement(NamedTuple):
    where: str
    sql: str


def groups() -> list[Path]:
    """Folders with code, each with the migrations that make its tables."""
    return sorted({file.parent for place in SHIPPED for file in place.rglob("*.py") if list(statements_of(file))})


def statements_of(file: Path) -> Iterator[Statement]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VERBS.match(node.value):
            try:
                scan(node.value)
            except BadStatement:
                continue  # a sentence that begins with such a word
            if {"from", "into", "set"} & {token.word for token in tokens(node.value)}:
                yield Statement(f"{file.relative_to(ROOT)}:{node.lineno}", node.value)


def folders_of(group: Path) -> list[Path]:
    for folder in (group, *group.parents):
        found = sorted(path for path in folder.glob("*migrations") if path.is_dir())
        if found or folder in SHIPPED:
            # An app of several services has a folder of migrations for each.
            return [part for path in found for part in sorted(filter(Path.is_dir, path.iterdir())) or [path]]
    return []


def migrations_of(group: Path, dialect: str) -> list[Migration]:
    # An app with connectors has their tables first.
    folders = [CONNECT, *folders_of(group)] if SYSTEM_WITH_CONNECTORS in (group, *group.parents) else folders_of(group)
    return [migration for folder in folders for migration in found_in(folder, dialect)]


# -- each database ---------------------------------------------------------------------------------------------


def refused_by_sqlite(path: Path, migrations: list[Migration], statements: list[Statement]) -> list[str]:
    SqliteStore(path, synchronous="off", reserve_bytes=100_000).open_writer(now=1).close()
    connection = apsw.Connection(str(path))
    problems = []
    for each in made_by(migrations):
        try:
            connection.execute(each.sql).fetchall()
        except apsw.Error as error:
            problems.append(f"{each.where}: SQLite: {error}: {one_line(each.sql, 80)}")
    for each in statements:
        try:
            connection.execute(f"explain {each.sql}", dict.fromkeys(scan(each.sql).names)).fetchall()
        except apsw.Error as error:
            problems.append(f"{each.where}: SQLite: {error}: {one_line(each.sql, 80)}")
    connection.close()
    return problems


def refused_by_postgres(migrations: list[Migration], statements: list[Statement]) -> list[str]:
    url = server().new_database()
    PostgresStore(url).open_writer(now=1).close()
    problems = []
    with psycopg.connect(url, autocommit=True, options="-c search_path=public,penstock") as connection:
        for each in made_by(migrations):
            try:
                connection.execute(each.sql.encode())
            except psycopg.Error as error:
                problems.append(f"{each.where}: PostgreSQL: {error.diag.message_primary}: {one_line(each.sql, 80)}")
        for each in statements:
            try:
                connection.execute(f"prepare tried as {numbered(each.sql)}".encode())
                connection.execute("deallocate tried")
            except psycopg.Error as error:
                problems.append(f"{each.where}: PostgreSQL: {error.diag.message_primary}: {one_line(each.sql, 80)}")
    return problems


def made_by(migrations: list[Migration]) -> list[Statement]:
    return [Statement(migration.name, sql) for migration in migrations for sql in migration.statements]


def numbered(sql: str) -> str:
    """With $1, $2 for names, as PostgreSQL prepares it."""
    names = scan(sql).names
    return "".join(f"${names.index(t.text[1:]) + 1}" if t.kind == "parameter" else t.text for t in tokens(sql))


@cache
def shipped_statements(group: Path) -> list[Statement]:
    return [statement for file in sorted(group.glob("*.py")) for statement in statements_of(file)]


# -- what ships ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", groups(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_statement_can_be_prepared_on_both_databases(group: Path, tmp_path: Path) -> None:
    statements = shipped_statements(group)
    problems = refused_by_sqlite(tmp_path / "both.db", migrations_of(group, "sqlite"), statements)
    problems += refused_by_postgres(migrations_of(group, "postgres"), statements)
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def test_the_statements_are_found() -> None:
    assert {path.relative_to(ROOT).as_posix() for path in groups()} >= {"examples", APPSTORE}
    assert len(shipped_statements(ROOT / APPSTORE)) >= 20


def test_no_column_is_narrower_on_one_of_them() -> None:
    problems = [
        f"{file.relative_to(ROOT)}: {found[0]}. {WIDE}"
        for place in SHIPPED
        for file in place.rglob("*migrations/*.sql")
        for found in narrow(file.name, file.read_text("utf-8"))
    ]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def narrow(name: str, text: str) -> list[re.Match[str]]:
    """A file for SQLite alone may say integer: there it is as wide as can be."""
    if name.endswith(".sqlite.sql") or "-- penstock: narrow" in text:
        return []
    return list(NARROW.finditer(re.sub(r"--[^\n]*|'[^']*'", " ", text)))


# -- the test can fail -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql, database",
    [
        ("select ifnull(title, '') from apps", "PostgreSQL"),
        ("select json_extract(title, '$.a') from apps", "PostgreSQL"),
        ("select title from apps where title glob 'a*'", "PostgreSQL"),
        ("insert or ignore into apps (id) values (:id)", "PostgreSQL"),
        (
            "insert into apps (id, title) values (:id, :t) on conflict (id) do update set title = title || :t",
            "PostgreSQL",
        ),
        ("select title from apps where not id", "PostgreSQL"),
        ("select title::text from apps", "SQLite"),
        ("select distinct on (title) title from apps", "SQLite"),
        ("select nothing from apps", "SQLite"),
    ],
)
def test_a_statement_that_only_one_of_them_takes_is_found(sql: str, database: str, tmp_path: Path) -> None:
    table = [Migration("0001_apps", "", ("create table apps (id bigint primary key, title text)",))]
    asked = [Statement("here", sql), Statement("there", "select title from apps where id = :id limit :most")]

    problems = refused_by_sqlite(tmp_path / "both.db", table, asked) + refused_by_postgres(table, asked)

    assert any(problem.startswith(f"here: {database}") for problem in problems)
    assert not any(problem.startswith("there") for problem in problems)


def test_a_narrow_column_is_found() -> None:
    assert narrow("0001_a.sql", "create table a (id integer primary key, price real)")
    assert not narrow("0001_a.sql", "create table a (id bigint primary key, price double precision) -- no integer")
    assert not narrow("0001_a.sqlite.sql", "create table a (id integer primary key)")
