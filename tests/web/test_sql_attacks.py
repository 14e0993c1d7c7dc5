"""Attacks by SQL over HTTP: the database itself keeps clients from the engine's tables, from writing with a token that
only reads, and from taking more time, memory or bytes than a request may have."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import apsw
import pytest

import penstock as ps
from penstock.data import query
from penstock.model.allowance import Allowance
from penstock.model.errors import BadStatement, StatementFailed, TooLarge
from penstock.model.limits import LOCAL
from penstock.model.statement import Statement, pieces
from penstock.runtime import lanes
from penstock.testing import TestApp
from tests.postgres import empty_database
from tests.web.outside import Answer, outside

MARK = "\ufeff"  # a byte order mark, which SQLite takes for a space
WITHIN = "with a (x, y) as (values (1, 'pwned')) "
SEQUENCES = "insert into sqlite_sequence (name, seq) values ('pens' || 'tock_dead', 9223372036854775807)"
SECRET = "4111-1111"


async def everything(shop: TestApp) -> list[Any]:
    db = shop.app.db
    return [
        await db.column("select sql from sqlite_schema order by type, name"),
        [tuple(row) for row in await db.rows("select name, seq from sqlite_sequence order by name")],
        [tuple(row) for row in await db.rows("select id, name from items order by id")],
        [tuple(row) for row in await db.rows("select seq, body from penstock_messages order by seq")],
    ]


def refused(answer: Answer) -> None:
    assert answer.status in (400, 403, 413), answer.told
    assert SECRET not in str(answer.told)
    assert "store_unavailable" not in answer.words


@pytest.fixture
def kept_on_postgres(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TestApp:
    monkeypatch.setattr(TestApp, "new_database", empty_database)
    app = ps.App("shop", migrations=tmp_path)
    app.queue("jobs")
    return TestApp(app)


READS = [
    "select * from Bpenstock_messages",
    "select body from main.Bpenstock_messages",
    "with dead_messages as (select * from Bpenstock_messages) select * from dead_messages",
    f"{WITHIN} Breplace Binto items (id, name) select x, y from a",
    f"{WITHIN} Binsert Binto items (id, name) select x, y from a",
    f"{WITHIN} Binsert Binto sqlite_sequence (name, seq) select 'pens' || 'tock_dead', 9223372036854775807 from a",
    "select * from sqlite_sequence",
    "select * from sqlite_stat1",
    "select file from pragma_database_list",
    "select * from pragma_table_info('pens' || 'tock_queues')",
    "select name from pragma_table_list",
    "select * from pragma_function_list",
    "select sql from sqlite_schema",
    "select sql from sqlite_master",
    "select count(*) from sqlite_temp_schema",
    "select name from dbstat",
    "select instr(zeroblob(700000), cast(zeroblob(350000) || x'01' as blob))",
    "select trim(hex(zeroblob(400000)), hex(zeroblob(400000)) || 'a')",
    "select hex(zeroblob(400000)) like hex(zeroblob(20000)) || '1'",
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 60) "
    "select sum(length(hex(randomblob(20000000)))) from c",
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 100) select zeroblob(200000000) from c",
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 100) select zeroblob(1000000) from c",
    "select zeroblob(500000000)",
    "select json_pretty('[1,2]', hex(zeroblob(10000000)))",
]


@pytest.mark.parametrize("form", ["alone", "batch", "script"])
@pytest.mark.parametrize("sql", READS)
async def test_a_token_that_reads_reaches_no_engine_table_and_writes_nothing(
    shop: TestApp, sql: str, form: str
) -> None:
    attack = sql.replace("B", MARK)
    async with outside(shop) as client:
        await client.push({"card": SECRET})
        before = await everything(shop)
        asked: dict[str, dict[str, Any]] = {
            "alone": {"sql": attack},
            "batch": {"batch": [{"sql": "select 1"}, {"sql": attack}]},
            "script": {"sql": f"select 1; {attack}"},
        }

        refused(await client.send("/d1/database/shop/raw", asked[form], token="d1-read"))

        assert await everything(shop) == before


WRITES = [
    "drop view Bdead_messages",
    "create view Bdead_messages as select 'forged' as id",
    "drop view dead_messages",
    "create table Btemp.t (a, b)",
    "create Btemp table t (a, b)",
    "create table fk (a integer references Bpenstock_messages (seq))",
    "create view v1 as select * from Bpenstock_messages",
    "create table copied as select * from Bpenstock_messages",
    "create table copied as select sql from sqlite_schema",
    "delete from Bpenstock_queues",
    "update Bpenstock_queues set paused = 1",
    "create index i on Bpenstock_queues (name)",
    "alter table items rename to Bpenstock_items",
    "update sqlite_sequence set seq = 9223372036854775807",
    SEQUENCES,
    "insert into items (name) select sql from sqlite_schema",
    "insert into items (name) select file from pragma_database_list",
    "update items set name = instr(zeroblob(1000000), cast(zeroblob(500000) || x'01' as blob))",
    "create table slow (a, b, c as (instr(a, b)))",
    "create table slow (a, b check (instr(a, b) = 0))",
    "create table slow (a, b default (instr(zeroblob(8000000), zeroblob(4000000) || x'01')))",
    "alter table items add column slow as (instr(name, name))",
    'alter table items add column slow as ("instr" /* */ (name, name))',
    "create index slow on items (instr(name, name))",
    "insert into items (name) select hex(randomblob(20000000))",
]


@pytest.mark.parametrize("sql", WRITES)
async def test_a_token_that_writes_leaves_the_engine_as_it_was(shop: TestApp, sql: str) -> None:
    async with outside(shop) as client:
        await client.d1("insert into items (name) values ('lamp')")
        await client.push({"card": SECRET})
        before = await everything(shop)

        refused(await client.d1(sql.replace("B", MARK), token="d1-write"))
        refused(await client.d1(sql.replace("B", MARK)))

        assert await everything(shop) == before
        (pulled,) = await client.pull()
        assert (await client.ack(pulled["lease_id"]))["ackCount"] == 1


def unchecked(sql: str, values: Any, limits: Any) -> query.Question:
    """Takes any statement for what its first word says, as if the check of the text could be passed."""
    writes = sql.split()[0] in ("insert", "update", "delete", "create", "drop", "alter")
    return query.Question(sql, Statement(sql, sql.split()[0], (), writes), {}, len(sql))


HIDDEN = "length(hex(zeroblob(3900000 + a)))"


@pytest.mark.parametrize("column", ["c{} as ({})", "c{} check ({} > 0)"])
async def test_what_a_table_computes_counts_as_part_of_the_statement(shop: TestApp, column: str) -> None:
    """No interrupt stops the straight-line code that computes it."""
    columns = ", ".join(column.format(number, HIDDEN) for number in range(100))
    async with outside(shop) as client:
        assert (await client.d1(f"create table computes (a, {columns})")).status == 200

        answer = await client.d1("insert into computes (a) values (1)")

        assert (answer.status, answer.error["name"]) == (413, "message_too_large")
        assert (await client.d1("insert into computes (a) values (-3899999)")).status == 200


UNCHECKED = [
    "select body from penstock_messages",
    "select count(*) from penstock_messages",
    "select count(*) from main.penstock_messages",
    "with dead_messages as (select body from penstock_messages) select * from dead_messages",
    "with penstock_count_x as (select body from penstock_messages) select * from penstock_count_x",
    "select 1 from items where exists (select 1 from penstock_messages)",
    "select * from (select body from penstock_messages) as dead_messages",
    "select (select body from penstock_messages) from dead_messages",
    "select id from dead_messages union all select body from penstock_messages",
    "with api_calls_ledger as (select token from penstock_messages) select * from api_calls_ledger",
    "with a as (select 1) insert into items (name) select 'pwned'",
    "with a as (select 1) delete from items",
    "with a as (select 1) update sqlite_sequence set seq = 9223372036854775807",
    "pragma database_list",
    "attach ':memory:' as other",
    "begin",
    "commit",
    "analyze",
    "drop view dead_messages",
    "create table temp.t (a)",
    "create temp view items as select 1",
    "create trigger t after insert on items begin delete from items; end",
    "create virtual table v using fts5 (a)",
    "create table fk (a integer references penstock_messages (seq))",
    "create view v1 as select body from penstock_messages",
    "create view v1 as with a as (select body from penstock_messages) select * from a",
    "create view v1 as select body from nothing, 'PENSTOCK_messages'",
    "alter table items add column fk integer references penstock_messages (seq)",
    "alter table items add column slow as (json_pretty(name, name))",
    "create table copied as select body from penstock_messages",
    "create table penstock_mine (a)",
    "create view api_calls_ledger as select 1",
    "alter table items rename to penstock_items",
    "insert into penstock_queues (name) values ('x')",
    "update penstock_queues set paused = 1",
    "delete from dead_messages",
]


@pytest.mark.parametrize("sql", UNCHECKED)
async def test_the_database_refuses_what_the_check_of_the_text_lets_pass(
    shop: TestApp, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.data.query.question", unchecked)
    async with outside(shop) as client:
        await client.push({"card": SECRET})
        before = await everything(shop)

        refused(await client.d1(sql))

        assert await everything(shop) == before


async def test_a_statement_the_app_ran_before_is_still_refused_to_a_client(
    shop: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite asks only when it prepares a text: one from a cache of prepared statements would pass."""
    monkeypatch.setattr("penstock.data.query.question", unchecked)
    sql = "select body from penstock_messages"
    async with outside(shop) as client:
        for _ in range(8):  # more than there are connections
            await shop.app.db.rows(sql)

        for _ in range(8):
            refused(await client.d1(sql))


@pytest.mark.parametrize("view", ["dead_messages", "processed_events", "pipeline_log", "api_calls_ledger"])
async def test_the_engines_views_can_be_read_and_counted_and_used_in_views(shop: TestApp, view: str) -> None:
    async with outside(shop) as client:
        for sql in (
            f"select * from {view}",
            f"select count(*) from {view} as d",
            f"with a as (select * from {view}) select count(*) from a",
            f"create view mine as select * from {view}",
            "select count(*) from mine",
            "drop view mine",
        ):
            assert (await client.d1(sql)).status == 200, sql


async def test_ordinary_statements_are_not_in_the_guards_way(shop: TestApp) -> None:
    shop.app.db.keep_count("items")
    async with outside(shop) as client:
        for sql in (
            "create table numbered (id integer primary key autoincrement, name text unique, data text)",
            "insert into numbered (name, data) values ('a', '[1, 2]'), ('pence', '[]')",
            "select trim(replace(name, '_', ' ')) as name, instr(name, 'a') from numbered where name like 'p%'",
            "select value from numbered, json_each(numbered.data)",
            "create index by_data on numbered (data)",
            "alter table numbered rename column data to list",
            "alter table numbered rename to renumbered",
            "drop table renumbered",
            "insert into items (name) values ('lamp')",
            "update items set name = upper(name) where name glob 'l*' returning name",
            f"select hex(zeroblob(1000000)) as long, '{MARK}' as mark",
        ):
            answer = await client.d1(sql)
            assert answer.status == 200, answer.told
        assert await shop.app.db.count("items") == 1


async def test_all_reads_of_a_batch_see_one_moment_off_the_writer(
    shop: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.data.query.Atomic", None)  # what a write would need
    async with outside(shop) as client:
        answer = await client.send(
            "/d1/database/shop/query", {"batch": [{"sql": "select 1 as a"}, {"sql": "select 2 as a"}]}, token="d1-read"
        )

    assert [each["results"] for each in answer.result] == [[{"a": 1}], [{"a": 2}]]


LONG = "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c where x < 0"
SORTS = (
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 1000) "
    "select x from c order by randomblob(4000000) || x"
)


@pytest.mark.parametrize("write", [False, True])
async def test_a_statement_that_takes_too_long_is_interrupted(
    shop: TestApp, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    monkeypatch.setattr("penstock.data.query.SECONDS_MAX", 0.1)
    async with outside(shop) as client:
        answer = await client.d1(f"insert into items (name) {LONG.replace('count(*)', 'x')}" if write else LONG)
        after = await client.d1("select 1")

    assert (answer.status, "longer than 0.1 s" in answer.words, after.status) == (400, True, 200)
    assert not any(thread.name == "penstock deadline" for thread in threading.enumerate())


async def test_a_statement_that_sorts_too_much_is_interrupted_before_memory_is_full(
    shop: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.data.query.SECONDS_MAX", 60.0)
    async with outside(shop) as client:
        apsw.memory_high_water(True)
        before = apsw.memory_used()

        answer = await client.d1(SORTS)

    assert (answer.status, "memory" in answer.words) == (400, True)
    assert apsw.memory_high_water() - before < 1_000_000_000


def test_the_check_of_names_takes_less_time_than_reading_the_statement() -> None:
    """A list of 20,000 numbers held up every other request for seconds, and four times as many for a minute."""
    sql = f"select 1 where 1 in ({', '.join(map(str, range(20_000)))})"
    began = thread_time()
    pieces(sql)
    reading = thread_time() - began
    began = thread_time()
    query.question(sql, (), LOCAL)
    checking = thread_time() - began

    assert checking < 20 * reading  # it reads the text three times


async def test_long_statements_are_read_in_a_thread(shop: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    in_thread: list[object] = []

    async def watched(function: Callable[[object], object], asked: object) -> object:
        in_thread.append(asked)
        return await lanes.in_thread(function, asked)

    monkeypatch.setattr("penstock.web.d1.in_thread", watched)
    numbers = ", ".join(map(str, range(3_000)))
    async with outside(shop) as client:
        for sql in ("select 1", f"select 1 where 1 in ({numbers})"):
            assert (await client.d1(sql)).status == 200
            batch = {"batch": [{"sql": sql}, {"sql": sql}]}
            assert (await client.send("/d1/database/shop/raw", batch)).status == 200

    assert len(in_thread) == 2


def test_rows_are_counted_while_they_are_fetched() -> None:
    rows = iter([(bytes(1_000),)] * 1_000)

    with pytest.raises(TooLarge, match="10,000 bytes"):
        Allowance(rows_max=100, bytes_max=10_000, seconds_max=1.0).collect("select a", rows)
    assert len(list(rows)) == 1_000 - 11


async def test_the_apps_own_statements_cannot_change_sqlites_tables_or_temporary_ones(shop: TestApp) -> None:
    for sql in ("update sqlite_sequence set seq = 9", "delete from sqlite_sequence", SEQUENCES):
        with pytest.raises(StatementFailed, match="not authorized"):
            async with shop.app.unit():
                shop.app.db.write(sql)
    with pytest.raises(BadStatement, match="U\\+FEFF"):
        await shop.app.db.rows(f"select * from {MARK}items")


async def test_on_postgres_no_statement_of_a_client_is_run(kept_on_postgres: TestApp) -> None:
    async with outside(kept_on_postgres) as client:
        for sql in ("select 1", *READS[:4], *WRITES[:4]):
            answer = await client.d1(sql.replace("B", MARK))
            assert (answer.status, answer.error["name"]) == (400, "bad_statement"), sql
