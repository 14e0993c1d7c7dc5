"""The command line on PostgreSQL: what it says of a server, and that no password is ever told."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from penstock.cli.reference import load
from penstock.data.query import answers, question
from penstock.model.errors import BadStatement
from tests.extent import patient
from tests.postgres import server
from tests.unit.cli import PROGRAM, SHOP, Terminal, environ, kept_elsewhere, shop_in
from tests.unit.test_cli_doctor import checks, made
from tests.unit.test_cli_status import another_process_at_work

BOTH_STORES = True
pytestmark = pytest.mark.only_on("postgres")


def execute(*statements: str) -> None:
    with psycopg.connect(os.environ["PENSTOCK_DATABASE"], autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_a_sound_server_passes_every_check(terminal: Terminal, shop: Path) -> None:
    made()

    found = checks(terminal, "shop.py", "--deep")

    assert set(found) >= {"python", "config", "database", "server", "balance", "clock", "workers"}
    assert not {"disk", "integrity", "journal", "locks", "sockets"} & set(found)
    assert found.pop("server") == ["ok", "warn"]  # servers of tests do not wait for their disk
    assert all(status == "ok" for statuses in found.values() for status in statuses)


def test_a_process_that_died_is_reported_and_so_is_a_message_that_vanished(terminal: Terminal, shop: Path) -> None:
    made()
    with another_process_at_work(shop):
        assert checks(terminal)["workers"] == ["ok"]
    execute("delete from penstock.penstock_messages")

    found = checks(terminal, "--deep")

    assert found["workers"] == ["warn"]
    assert found["balance"] == ["fail"]


def test_an_old_transaction_is_reported(terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setattr("penstock.cli.doctor.SNAPSHOT_SECONDS_WARNED", 0.0)
    with psycopg.connect(os.environ["PENSTOCK_DATABASE"]) as connection:
        connection.execute("select 1")

        assert checks(terminal)["snapshot"] == ["warn"]


def test_a_newer_schema_is_refused_with_a_sentence(terminal: Terminal, shop: Path) -> None:
    made()
    execute("update penstock.penstock_facts set value = value || '99' where name = 'schema'")
    try:
        for command in ("status", "cost"):
            said = terminal(command)
            assert (said.code, re.search(r"schema \d+99\b", said.err) is not None) == (3, True)
        assert checks(terminal)["database"] == ["fail"]
    finally:
        execute("update penstock.penstock_facts set value = replace(value, '99', '') where name = 'schema'")


def test_a_server_without_our_tables_says_what_comes_next(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE", server().new_database())

    said = terminal("status")
    assert said.code == 3
    assert "has none of Penstock's tables" in said.err
    assert "penstock run" in said.err
    assert checks(terminal, "shop.py")["database"] == ["warn"]
    assert terminal("migrate", "shop.py", "--check", "--json").told["pending"] == ["0001_sold"]


def test_a_migration_may_have_a_twin_for_the_server(terminal: Terminal, shop: Path) -> None:
    (shop / "migrations" / "0002_more.sqlite.sql").write_text(
        "create table more (id integer primary key autoincrement)"
    )
    (shop / "migrations" / "0002_more.postgres.sql").write_text("create table more (id bigserial primary key)")

    assert terminal("migrate", "shop.py", "--json").told["applied_now"] == ["0001_sold", "0002_more"]


def test_workers_run_with_a_password_that_no_other_process_reads(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server lets everybody in, so any password will do; what matters is that it comes through and is not told."""
    address = os.environ["PENSTOCK_DATABASE"]
    monkeypatch.setenv("PENSTOCK_DATABASE", address.replace("postgres@", "postgres:hunter2@"))
    made()

    ran = subprocess.run(
        [PROGRAM, "run", "shop.py", "--until-idle"],
        cwd=shop,
        env=environ(**kept_elsewhere()),
        capture_output=True,
        text=True,
        timeout=patient(60),
    )

    assert ran.returncode == 0, ran.stderr
    assert address in ran.stderr
    said = [terminal(*command) for command in (("status",), ("doctor",), ("migrate", "shop.py"), ("cost", "--json"))]
    assert "hunter2" not in "".join([ran.stdout, ran.stderr, *(each.out + each.err for each in said)])
    assert terminal("queues", "list", "--json").told["queues"][0]["acked"] == 1


def test_the_server_lists_where_an_object_lives_and_shows_its_state(terminal: Terminal, shop: Path) -> None:
    shop_in(shop, SHOP + COUNTER)
    app = load("shop.py")

    async def count() -> None:
        async with app:
            await app.counters["main"].add()  # type: ignore[attr-defined]

    asyncio.run(count())

    assert terminal("objects", "show", "Counter", "main", "--json").told["state"] == {"count": 1}


def test_sql_over_http_is_refused_with_a_sentence(shop: Path) -> None:
    app = load("shop.py")

    async def ask() -> None:
        async with app:
            await answers(await app._opened(), [question("select item from sold", (), app.limits)])

    with pytest.raises(BadStatement, match="works only on SQLite"):
        asyncio.run(ask())


COUNTER = """

class Counter(ps.Object):
    count: int = 0

    async def add(self) -> None:
        self.count += 1


app.counters = app.object(Counter)
"""
