"""`penstock move`: everything arrives, goes on there, and what cannot be moved is named before anything is written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tests.moving.conftest import NewDatabase
from tests.moving.content import content, rows
from tests.moving.estate import CURSED, HELD, READY, Estate, Sale, app_file, filled, waiting
from tests.unit.cli import Said, Terminal

OTHER = {"sqlite": "postgres", "postgres": "sqlite"}
BOTH = pytest.mark.parametrize("dialect", ["sqlite", "postgres"])


def moved(terminal: Terminal, estate: Estate, there: str, folder: Path) -> Said:
    return terminal("move", estate.database, there, "--app", app_file(estate, folder), "--json")


@BOTH
def test_everything_arrives_as_it_was(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database(dialect))
    before = content(estate.database)
    there = new_database(OTHER[dialect])

    said = moved(terminal, estate, there, tmp_path)

    assert said.code == 0, said.err
    after = content(there)
    held = [row for row in before["messages"] if row[7] not in (None, 0)]
    assert len(held) == len(HELD)
    assert content(estate.database) == before  # the old one is as it was
    for name in before:
        if name not in ("messages", "workers", "counters"):
            assert after[name] == before[name], name
    # What dead workers held is given back on arrival, and their counts are kept.
    assert [row for row in after["messages"] if row[7] not in (None, 0)] == []
    assert after["workers"] == []
    mended = {row[0] for row in held}
    assert [row for row in after["messages"] if row[0] not in mended] == [
        row for row in before["messages"] if row[0] not in mended
    ]
    assert {row[0] for row in after["messages"]} == {row[0] for row in before["messages"]}
    assert _sums(after["counters"]) == _sums(before["counters"])
    assert said.told["rows"] == sum(each["rows"] for each in said.told["tables"])


def _sums(counters: list[Any]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for queue, _, *counts in counters:
        found[queue] = [a + b for a, b in zip(found.get(queue, [0] * 6), counts, strict=True)]
    return found


@BOTH
@pytest.mark.fault("F54")
def test_work_goes_on_at_the_other_end_and_nothing_is_lost_or_doubled(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database(dialect))
    there = new_database(OTHER[dialect])
    assert moved(terminal, estate, there, tmp_path).code == 0
    tokens = max(row[6] for row in rows(estate.database, "select * from penstock_messages"))
    arrived = Estate(there)

    asyncio.run(arrived.app.run(until_idle=True))

    assert asyncio.run(arrived.sold()) == dict.fromkeys(("done one", "done with a key", *HELD, *READY), 1)
    assert waiting(there) == ["delayed", "pulled"]

    async def go_on() -> None:
        async with arrived.app:
            desk = await arrived.app.desk()
            acked = await desk.settle("outside", acks=[estate.pulled.lease_id], retries=[])
            assert acked.acked == 1, acked
            async with arrived.app.unit():
                arrived.sales.send(Sale(item="again"), unique="key")  # known, and done
                arrived.sales.send(Sale(item=CURSED[0]))
            assert await arrived.tills["main"].add() == 2
            assert await arrived.app.once("paid", _never) == 42
            assert await arrived.app.db.count("words") == 6
            async with arrived.app.unit():
                arrived.app.db.write("insert into shops (name) values ('new')")

    asyncio.run(go_on())
    asyncio.run(arrived.app.run(until_idle=True))
    assert "again" not in asyncio.run(arrived.sold())
    letters = rows(there, "select seq from penstock_dead")
    assert letters == [(1,), (2,), (3,), (4,)]  # the replayed one died again, and one that was sent here
    # No number that was drawn before comes again.
    assert rows(there, "select id from shops where name = 'new'") == [(4,)]
    assert _last_token(there) > tokens
    assert terminal("doctor", there, "--deep").code == 0


async def _never() -> int:
    raise AssertionError("it was done before the move")


def _last_token(database: str) -> int:
    query = (
        "select last_value from penstock.penstock_tokens" if "://" in database else "select last from penstock_tokens"
    )
    return int(rows(database, query)[0][0])


def test_there_and_back_is_where_it_was(terminal: Terminal, new_database: NewDatabase, tmp_path: Path) -> None:
    estate = filled(new_database("sqlite"))
    server, back = new_database("postgres"), new_database("sqlite")
    assert moved(terminal, estate, server, tmp_path).code == 0
    on_server = content(server)

    said = moved(terminal, Estate(server), back, tmp_path)

    assert said.code == 0, said.err
    assert content(back) == on_server
    assert all("estate.py" in text for (text,) in rows(back, "select traceback from penstock_dead"))
    assert rows(back, "select name, seq from sqlite_sequence where name = 'shops'") == [("shops", 3)]
    assert terminal("doctor", back, "--deep").code == 0


def test_a_file_moves_to_another_file(terminal: Terminal, new_database: NewDatabase) -> None:
    estate = filled(new_database("sqlite"))
    there = new_database("sqlite")

    assert terminal("move", estate.database, there).code == 0

    arrived = Estate(there)
    asyncio.run(arrived.app.run(until_idle=True))
    assert set(asyncio.run(arrived.sold())) >= {*HELD, *READY}


# -- refused --------------------------------------------------------------------------------------------------


@BOTH
def test_it_is_refused_while_a_worker_runs_on_either(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database(dialect))
    there = new_database(OTHER[dialect])

    async def while_open() -> Said:
        async with estate.app:
            return await asyncio.to_thread(moved, terminal, estate, there, tmp_path)

    said = asyncio.run(while_open())

    assert (said.code, said.error["code"]) == (1, "in_use")
    assert _is_untouched(there)


@BOTH
def test_a_database_with_something_in_it_is_not_moved_to(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database(OTHER[dialect]))
    there = Estate(new_database(dialect))

    async def use() -> None:
        async with there.app, there.app.unit():
            there.sales.send(Sale(item="mine"))

    asyncio.run(use())
    said = moved(terminal, estate, there.database, tmp_path)

    assert said.code == 1
    assert "not empty" in said.err or "already" in said.err
    assert waiting(there.database) == ["mine"]


def test_a_database_that_was_only_migrated_is_empty(
    terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database("sqlite"))
    there = new_database("postgres")
    with psycopg.connect(there) as connection:
        connection.execute("create table later (id bigint)")

    assert moved(terminal, estate, there, tmp_path).code == 0


@BOTH
def test_without_the_app_its_tables_cannot_be_made(dialect: str, terminal: Terminal, new_database: NewDatabase) -> None:
    estate = filled(new_database(dialect))
    there = new_database(OTHER[dialect])

    said = terminal("move", estate.database, there, "--json")

    assert said.code == 1
    assert "goods" in said.error["message"]
    assert "--app" in said.error["message"]
    assert _is_untouched(there)


def test_a_migration_that_is_pending_is_applied_first(
    terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database("sqlite"))
    more = tmp_path / "migrations"
    more.mkdir()
    for file in estate.app.migrations.glob("*.sql"):
        (more / file.name).write_text(file.read_text())
    (more / "0003_more.sql").write_text("create table more (id integer)")
    estate.app.migrations = more
    there = new_database("postgres")

    said = moved(terminal, estate, there, tmp_path)

    assert said.code == 1
    assert "0003_more" in said.error["message"]
    assert _is_untouched(there)


def test_everything_that_a_server_would_not_take_is_named_at_once(
    terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database("sqlite"))
    opened = apsw.Connection(estate.database)
    opened.execute(
        """
        update goods set price = 'cheap' where code = 'a';
        update goods set stock = 3000000000 where code = 'b';
        create table notes (text text);
        create trigger extra after delete on goods begin delete from arrivals; end;
        create view best as select code from goods;
        create virtual table searched using fts5 (text);
        alter table words add column spelt text;
        """
    )
    opened.close()
    there = new_database("postgres")

    said = moved(terminal, estate, there, tmp_path)

    assert said.code == 1
    for named in (
        "goods.price holds text values",
        "goods.stock holds 3000000000",
        "Table notes is created by no migration",
        "Trigger extra on goods",
        "View best",
        "searched is a virtual table",
        "words has no column spelt",
    ):
        assert named in said.error["message"], named
    assert _is_untouched(there)


def test_everything_that_a_file_cannot_hold_is_named_at_once(
    terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database("postgres"))
    with psycopg.connect(estate.database) as connection:
        connection.execute("create type pair as (a int, b int)")
        connection.execute("create schema apart create table notes (id int)")
        connection.execute("alter table words add column tags text[], add column twins pair")
    there = new_database("sqlite")

    said = moved(terminal, estate, there, tmp_path)

    assert said.code == 1
    for named in (
        "words.tags is of the type _text",
        "words.twins is of the type pair",
        "Table apart.notes is created by no migration",
    ):
        assert named in said.error["message"], named
    assert _is_untouched(there)


def test_what_reads_back_otherwise_is_not_kept(terminal: Terminal, new_database: NewDatabase, tmp_path: Path) -> None:
    estate = filled(new_database("sqlite"))
    opened = apsw.Connection(estate.database)
    opened.execute("update goods set amount = 12.345 where code = 'a'")  # the server keeps two digits
    opened.close()
    there = new_database("postgres")

    said = moved(terminal, estate, there, tmp_path)

    assert said.code == 1
    assert "Table goods differs after the copy: 3 rows" in said.error["message"]
    assert _is_untouched(there)


def test_no_password_is_shown(terminal: Terminal, new_database: NewDatabase) -> None:
    there = new_database("postgres").replace("postgres@", "postgres:hunter2@")
    estate = filled(new_database("sqlite"))

    said = terminal("move", estate.database, there)
    assert said.code == 1
    assert "hunter2" not in said.out + said.err


def _is_untouched(database: str) -> bool:
    if "://" not in database:
        return not list(Path(database).parent.glob(f"{Path(database).name}*"))
    return rows(database, "select 1 from pg_tables where schemaname not in ('pg_catalog', 'information_schema')") == []


def test_a_database_user_without_rights_gets_an_error_that_says_so(
    terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database("sqlite"))
    there = new_database("postgres")
    with psycopg.connect(there, autocommit=True) as connection:
        connection.execute("drop role if exists guest")
        connection.execute("create role guest login")

    said = moved(terminal, estate, there.replace("postgres@", "guest@"), tmp_path)

    assert said.code == 3
    assert "permission denied" in said.error["message"]
    assert _is_untouched(there)
