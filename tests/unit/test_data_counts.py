"""Counts: kept where a table is large, bounded where it is not, and never a scan in between."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from penstock.model.errors import BadApp, BadStatement, TooManyRows
from tests.unit.market import APPS, add, market, run

BOTH_STORES = True

MILLION = (
    "insert into apps (id) with recursive n(i) as (select 1 union all select i + 1 from n where i < {}) select i from n"
)


@pytest.mark.spec("A8-21")
def test_a_kept_count_of_many_rows_reads_one(tmp_path: Path) -> None:
    app = market(tmp_path, APPS + MILLION.format(200_000) + ";")
    app.db.keep_count("apps")

    async def work() -> tuple[int, int]:
        db = app.db
        async with app.unit():
            db.write("delete from apps where id <= 1000")
            db.insert_many("apps", [{"id": 500_000}])
        before = (await db.usage()).total.rows_read
        counted = await db.count("apps")
        return counted, (await db.usage()).total.rows_read - before

    counted, rows_read = run(app, work())

    assert counted == 199_001
    assert rows_read < 100


@pytest.mark.spec("A8-21")
def test_a_count_that_is_not_kept_stops_at_10_000_and_says_what_to_do(tmp_path: Path) -> None:
    app = market(tmp_path, APPS + MILLION.format(10_000) + ";")

    async def work() -> int:
        db = app.db
        assert await db.count("apps") == 10_000
        async with app.unit():
            db.write(MILLION.format(200_000).replace("select i", "select i + 10000"))
        before = (await db.usage()).total.rows_read
        with pytest.raises(TooManyRows, match=r"db\.keep_count\('apps'\)"):
            await db.count("apps")
        return (await db.usage()).total.rows_read - before

    assert run(app, work()) < 20_000  # far from the 210,000 that are there


def test_a_count_declared_after_the_app_was_opened_is_kept_from_its_first_use(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        await add(app, {"id": 1}, {"id": 2})
        app.db.keep_count("apps")
        counts = [await app.db.count("apps")]
        await add(app, {"id": 3})
        return [*counts, await app.db.count("apps"), await app.db.value("select total from penstock_counts")]

    assert run(app, work()) == [2, 3, 3]


@pytest.mark.only_on("sqlite")
def test_a_table_that_another_program_made_anew_is_counted_anew(tmp_path: Path) -> None:
    app = market(tmp_path)
    app.db.keep_count("apps")
    run(app, add(app, {"id": 1}, {"id": 2}))
    with closing(apsw.Connection(str(tmp_path / "market.db"))) as other:
        other.execute("drop table apps; create table apps (id integer primary key); insert into apps values (7)")

    async def work() -> list[int]:
        counts = [await app.db.count("apps")]
        await add(app, {"id": 8})
        return [*counts, await app.db.count("apps")]

    assert run(app, work()) == [1, 2]


@pytest.mark.only_on("sqlite")
def test_a_count_of_no_table_is_refused_by_name_when_the_app_opens(tmp_path: Path) -> None:
    app = market(tmp_path)
    app.db.keep_count("nowhere")

    with pytest.raises(BadApp, match=r"'nowhere' cannot be kept: .*no such table.* Create the table in a migration"):
        run(app, add(app))


@pytest.mark.parametrize("name", ["apps; --", "penstock_messages", "'"])
def test_a_name_that_is_none_is_refused_where_it_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadStatement, match=r"not a table or column name|reserved for the engine"):
        market(tmp_path).db.keep_count(name)


def test_a_read_of_a_view_or_table_with_an_odd_word_as_its_name_is_quoted(tmp_path: Path) -> None:
    app = market(tmp_path, 'create table "order" (id integer primary key)')
    app.db.keep_count("order")

    async def work() -> int:
        await add(app, {"id": 1}, table="order")
        return await app.db.count("order")

    assert run(app, work()) == 1
