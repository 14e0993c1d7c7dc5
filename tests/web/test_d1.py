"""The database over HTTP: D1's shapes, one transaction a batch, and the engine's own tables out of reach."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing import TestApp
from tests.web.outside import Outside, outside

INSERT = "insert into items (name, price) values (?, ?)"


async def names(shop: TestApp) -> list[str]:
    return sorted(await shop.app.db.column("select name from items"))


async def meta(client: Outside, sql: str, *params: object) -> dict[str, Any]:
    return dict((await client.d1(sql, *params)).result[0]["meta"])


@pytest.mark.spec("A8-02")
async def test_a_result_carries_what_it_cost_and_changed(shop: TestApp) -> None:
    async with outside(shop) as client:
        inserted = await meta(client, INSERT, "lamp", 9.5)
        ignored = await meta(client, "insert or ignore into items (name) values (?1)", "lamp")
        updated = await meta(client, "update items set price = ?2 where name = ?1", "lamp", 8)
        read = await meta(client, "select * from items where name = ?", "lamp")

    assert (inserted["changes"], inserted["last_row_id"], inserted["changed_db"]) == (1, 1, True)
    assert (ignored["changes"], ignored["changed_db"]) == (0, False)
    assert (updated["changes"], updated["last_row_id"]) == (1, 0)
    assert (read["changes"], read["rows_written"], read["changed_db"]) == (0, 0, False)
    assert inserted["rows_written"] >= 1
    assert read["rows_read"] >= 1
    for each in (inserted, ignored, updated, read):
        assert each["size_after"] > 0
        assert each["duration"] == each["timings"]["sql_duration_ms"] >= 0
        assert (each["served_by_region"], each["served_by_primary"]) == ("local", True)


async def test_query_gives_objects_and_raw_gives_columns_and_rows(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.d1(INSERT, "lamp", None)
        await client.d1("update items set photo = x'00ff'")
        objects = (await client.d1("select id, name, price, photo from items")).result
        lists = (await client.d1("select id, name as id from items", shape="raw")).result
        nothing = (await client.d1("select name, price from items where id = ?", 99, shape="raw")).result

    assert objects[0]["success"] is True
    assert objects[0]["results"] == [{"id": 1, "name": "lamp", "price": None, "photo": [0, 255]}]
    assert lists[0]["results"] == {"columns": ["id", "id"], "rows": [[1, "lamp"]]}
    assert nothing[0]["results"] == {"columns": ["name", "price"], "rows": []}


async def test_values_are_bound_by_place_and_by_number(shop: TestApp) -> None:
    async with outside(shop) as client:
        placed = (await client.d1("select ? as a, ?3 as b, ? as c, '?' as d -- ?", 1, 2, "x", None)).result
        each = (await client.d1("select ?1 as a, ?1 as b, typeof(?2) as c", "x", True)).result

    assert placed[0]["results"] == [{"a": 1, "b": "x", "c": None, "d": "?"}]
    assert each[0]["results"] == [{"a": "x", "b": "x", "c": "integer"}]


@pytest.mark.spec("A8-03")
async def test_a_batch_is_one_transaction(shop: TestApp) -> None:
    async with outside(shop) as client:
        good = await client.send(
            "/d1/database/shop/query",
            {
                "batch": [
                    {"sql": INSERT, "params": ["lamp", 1]},
                    {"sql": INSERT, "params": ["bed", 2]},
                    {"sql": "select count(*) as count from items"},
                ]
            },
        )
        bad = await client.send(
            "/d1/database/shop/query",
            {"batch": [{"sql": INSERT, "params": ["sofa", 1]}, {"sql": INSERT, "params": ["lamp", 2]}]},
        )

    assert [each["meta"]["changes"] for each in good.result] == [1, 1, 0]
    assert good.result[2]["results"] == [{"count": 2}]
    assert (bad.status, bad.error["name"]) == (400, "statement_failed")
    assert "UNIQUE constraint failed: items.name" in bad.words
    assert await names(shop) == ["bed", "lamp"]


async def test_several_statements_without_values_are_one_transaction_too(shop: TestApp) -> None:
    async with outside(shop) as client:
        both = await client.d1("insert into items (name) values ('a;b'); select name from items;")
        with_values = await client.d1("insert into items (name) values (?); select 1", "c")
        half = await client.d1("insert into items (name) values ('d'); insert into items (name) values ('d')")

    assert [each["results"] for each in both.result] == [[], [{"name": "a;b"}]]
    assert (with_values.status, half.status) == (400, 400)
    assert "2 statements" in with_values.words
    assert await names(shop) == ["a;b"]


async def test_tables_indexes_and_views_can_be_made_and_dropped(shop: TestApp) -> None:
    async with outside(shop) as client:
        for sql in (
            "create table if not exists weather (id integer primary key, temp real)",
            "create unique index weather_temp on weather (temp)",
            "create view warm as select temp from weather where temp > 20",
            "insert into weather (temp) values (25.5), (10)",
            "alter table weather add column place text",
        ):
            assert (await client.d1(sql)).status == 200, sql
        assert (await client.d1("select * from warm")).result[0]["results"] == [{"temp": 25.5}]
        assert (await client.d1("drop table weather")).result[0]["meta"]["changed_db"] is True
        gone = await client.d1("select * from weather")

    assert (gone.status, gone.error["name"]) == (400, "statement_failed")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from penstock_messages",
        "select * from 'penstock_messages'",
        'select * from "PENSTOCK_messages"',
        "select * from [penstock_messages]",
        "select * from `penstock_messages`",
        "select * from main.penstock_messages",
        "select * from items where id in (select seq from penstock_dead)",
        "with a as (select * from penstock_dead) select * from a",
        "select $a$ from penstock_messages where $a$",
        "explain select * from penstock_messages",
        "delete from penstock_messages",
        "insert into items (name) select queue from penstock_messages",
        "update penstock_queues set paused = 1",
        "drop table penstock_messages",
        "drop view dead_messages",
        "alter table items rename to penstock_items",
        "create table penstock_mine (a)",
        "create view mine as select * from penstock_messages",
        "create temp table items (a)",
        "create table temp.items (a)",
        "create trigger t after insert on items begin delete from items; end",
        "create virtual table v using fts5(a)",
        "select * from sqlite_dbpage",
        "pragma user_version = 5",
        "pragma journal_mode = delete",
        "attach 'other.db' as other",
        "vacuum",
        "begin",
        "commit",
        "rollback",
        "savepoint a",
        "",
        "   ",
        "-- only a comment",
        "select 'unclosed",
        "select :name",
        "select @name",
        "select ?0",
        "select ?99999999",
        "nonsense",
        "select load_extension('x')",
    ],
)
async def test_the_engines_tables_and_its_transactions_are_out_of_reach(shop: TestApp, sql: str) -> None:
    async with outside(shop) as client:
        await client.push("a job")
        for path in ("query", "raw"):
            refused = await client.d1(sql, shape=path)
            assert refused.status in (400, 422)
            assert len(refused.words) < 500
        assert len((await client.send("/queues/jobs/messages/peek", {})).result["messages"]) == 1
        assert await names(shop) == []


async def test_dead_messages_can_be_read(shop: TestApp) -> None:
    async with outside(shop) as client:
        assert (await client.d1("select queue, payload from dead_messages limit 5")).result[0]["results"] == []


@pytest.mark.spec("A8-03", "A15-15", "F-08")
@pytest.mark.parametrize(
    "body, field",
    [
        ({}, "sql"),
        ({"sql": "select 1", "batch": []}, "sql"),
        ({"sql": 5}, "sql"),
        ({"sql": "select 1", "params": "x"}, "params"),
        ({"batch": []}, "batch"),
        ({"batch": [{"sql": "select 1"}], "params": []}, "params"),
        ({"batch": [{"params": []}]}, "sql"),
        ({"batch": [{"sql": "select 1", "more": 1}]}, "more"),
        ({"batch": [{"sql": "select 1"}] * 101}, "batch"),
    ],
)
async def test_a_question_that_does_not_fit_is_reported_by_field(limited: TestApp, body: object, field: str) -> None:
    async with outside(limited) as client:
        refused = await client.send("/d1/database/shop/query", body)

    assert refused.status == 422
    assert field in refused.words


@pytest.mark.parametrize(
    "sql, params",
    [
        ("select ?", []),
        ("select ?", [1, 2]),
        ("select ?2", [1]),
        ("select ?", [[1]]),
        ("select ?", [{"a": 1}]),
        ("select ?", [2**64 - 1]),
        ("select 1", [1]),
    ],
)
async def test_values_that_do_not_fit_are_refused(shop: TestApp, sql: str, params: list[Any]) -> None:
    async with outside(shop) as client:
        refused = await client.d1(sql, *params)

    assert (refused.status, refused.error["name"]) == (422, "bad_parameter")


async def test_answers_have_a_bound_in_rows_and_bytes(shop: TestApp) -> None:
    many = "with recursive n(x) as (select 1 union all select x + 1 from n limit 10001) select x from n"
    large = "select zeroblob(8000001) as a"
    async with outside(shop) as client:
        rows = await client.d1(many)
        bytes_ = await client.d1(large)
        inside = await client.send(
            "/d1/database/shop/query", {"batch": [{"sql": INSERT.replace("?, ?", "'a', 1")}, {"sql": many}]}
        )

    assert (rows.status, rows.error["details"]["rows_max"]) == (400, 10_000)
    assert (bytes_.status, bytes_.error["details"]["bytes_max"]) == (413, 8_000_000)
    assert inside.status == 400
    assert await names(shop) == []


async def test_another_database_is_not_there(shop: TestApp) -> None:
    async with outside(shop) as client:
        refused = await client.send("/d1/database/market/query", {"sql": "select 1"})

    assert (refused.status, refused.error["name"]) == (404, "not_found")
    assert "shop" in refused.words
