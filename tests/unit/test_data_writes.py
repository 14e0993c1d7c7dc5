"""Writes of the user: many at once within the limits, pairs that agree, and what each changed."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import penstock as ps
from penstock.data import chunks, cut, first_by
from penstock.model.errors import BadStatement, LostUpdate, NotYetCommitted, StatementFailed, TooLarge
from tests.extent import sampled
from tests.unit.market import APPS, add, market, python, run

BOTH_STORES = True

CHARTS = "create table chart (app integer primary key, rank integer); create table history (app integer, rank integer);"


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-02")
def test_an_insert_of_what_is_there_already_changes_nothing(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        changes = []
        for _ in range(2):
            async with app.unit():
                write = app.db.write("insert or ignore into apps (id, title) values (1, 'Lamp')")
                with pytest.raises(NotYetCommitted):
                    write.changes  # noqa: B018
            changes.append(write.changes)
        return changes

    assert run(app, work()) == [1, 0]


@pytest.mark.spec("A8-05", "G6-03")
def test_500_rows_of_5_columns_are_inserted_20_to_a_statement_on_a_platform_with_100_parameters(tmp_path: Path) -> None:
    app = market(tmp_path, profile="cloudflare")
    columns = ("title", "price", "facts", "seen_at")

    async def work() -> tuple[list[int], int, int]:
        rows = [{"id": id, **dict.fromkeys(columns, id)} for id in range(510)]
        async with app.unit():
            inserted = app.db.insert_many("apps", rows)
        parameters = [len(values) for statement in inserted.statements for values in statement.rows]
        return parameters, inserted.changes, await app.db.value("select count(*) from apps where price = id")

    assert run(app, work()) == ([100] * 25 + [20, 20, 5, 5], 510, 510)


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-05")
def test_rows_with_long_column_names_are_cut_to_the_allowed_length_of_sql(tmp_path: Path) -> None:
    names = [f"a_column_with_a_rather_long_name_{n}" for n in range(10)]
    app = market(tmp_path, f"create table wide ({', '.join(names)})", sql_bytes_max=2_000)

    async def work() -> list[int]:
        async with app.unit():
            inserted = app.db.insert_many("wide", [dict.fromkeys(names, n) for n in range(20)])
        assert await app.db.count("wide") == 20
        return [len(statement.sql) for statement in inserted.statements]

    assert 1_000 < max(run(app, work())) <= 2_000


@pytest.mark.spec("A8-05")
@pytest.mark.parametrize("count", [101, 500])
def test_a_statement_with_too_many_parameters_is_refused_where_it_is_called(tmp_path: Path, count: int) -> None:
    app = market(tmp_path, profile="cloudflare")
    names = [f"p{n}" for n in range(count)]
    sql = f"insert into apps (id) values {', '.join(f'(:{name})' for name in names)}"

    async def work() -> None:
        async with app.unit():
            with pytest.raises(BadStatement, match=f"{count} parameters, and 100 are allowed"):
                app.db.write(sql, dict.fromkeys(names, 1))
        with pytest.raises(BadStatement, match="bytes of SQL, and 100,000 are allowed"):
            await app.db.rows("select 1 /* " + "x" * 100_000 + " */")

    run(app, work())


def test_ten_thousand_rows_fit_into_one_unit_and_only_the_new_ones_count(tmp_path: Path) -> None:
    app = market(tmp_path)
    app.db.keep_count("apps")

    async def work() -> tuple[int, int]:
        await add(app, {"id": 7}, {"id": 9_999})
        async with app.unit():
            inserted = app.db.insert_many("apps", [{"id": id, "title": f"App {id}"} for id in range(10_001)])
        return inserted.changes, await app.db.count("apps")

    assert run(app, work()) == (9_999, 10_001)


def test_an_insert_of_nothing_is_nothing(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> int:
        async with app.unit():
            inserted = app.db.insert_many("apps", [])
        return inserted.changes

    assert run(app, work()) == 0


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-06", "F-07")
def test_a_thousand_writes_of_one_text_prepare_it_once(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> int:
        engine = await app._opened()
        connection = cast("Any", engine.writer)._session.connection
        before = connection.cache_stats()["misses"]
        async with app.unit():
            for id in range(1_000):
                app.db.write("insert into apps (id, title) values (:id, :title)", id=id, title=f"App {id}")
        return int(connection.cache_stats()["misses"] - before)

    # The text itself, and the few of the engine's own that open and close the group.
    assert run(app, work()) < 15


@pytest.mark.spec("A8-07")
def test_200_apps_of_10_developers_upsert_10_developers(tmp_path: Path) -> None:
    app = market(tmp_path, "create table developers (id integer primary key, name text)")
    apps = [{"app": n, "developer": n % 10, "name": f"Maker {n % 10}"} for n in range(200)]

    async def work() -> tuple[int, int]:
        makers = first_by(apps, key=lambda row: row["developer"])
        async with app.unit():
            written = app.db.upsert("developers", [{"id": m["developer"], "name": m["name"]} for m in makers], key="id")
        return written.changes, await app.db.count("developers")

    assert run(app, work()) == (10, 10)


@pytest.mark.spec("A8-08")
def test_pairs_written_in_one_unit_are_both_there_or_neither(tmp_path: Path) -> None:
    app = market(tmp_path, CHARTS)

    async def pairs(fail_at: int | None) -> None:
        async with app.unit():
            for id in range(50):
                app.db.write("insert into chart (app, rank) values (:app, :rank)", app=id, rank=id)
                app.db.write("insert into history (app, rank) values (:app, :rank)", app=id, rank=id)
            if fail_at is not None:
                app.db.write("insert into chart (app, rank) values (:app, 0)", app=fail_at)

    async def work() -> list[int]:
        with pytest.raises(StatementFailed, match=r"UNIQUE|duplicate key"):
            await pairs(fail_at=17)
        counted = [await app.db.count("chart") + await app.db.count("history")]
        await pairs(fail_at=None)
        return [*counted, await app.db.count("chart") + await app.db.count("history")]

    assert run(app, work()) == [0, 100]


KILLED = """
import asyncio, os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from penstock.runtime.crashpoints import faults_from_environment
from penstock.runtime.surroundings import Surroundings
from tests.unit.market import market
from tests.unit.test_data_writes import CHARTS

async def main():
    app = market(Path("."), CHARTS)
    await app._open(Surroundings(faults=faults_from_environment(os.environ)))
    for start in range(0, 500, 50):
        async with app.unit():
            for id in range(start, start + 50):
                app.db.write("insert into chart (app, rank) values (:app, 1)", app=id)
                app.db.write("insert into history (app, rank) values (:app, 1)", app=id)

asyncio.run(main())
"""


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-08")
@sampled("point", ["commit.begun", "commit.written", "commit.before", "commit.after"], every=2)
def test_after_a_kill_no_chart_row_lacks_its_history(tmp_path: Path, point: str) -> None:
    root = str(Path(__file__).parents[2])

    killed = python(KILLED.format(root=root), tmp_path, check=False, PENSTOCK_CRASH_AT=f"{point}=kill@4")

    assert killed.returncode == -9, killed.stderr
    app = market(tmp_path, CHARTS)

    async def work() -> tuple[int, int]:
        alone = "select count(*) from chart where app not in (select app from history)"
        return await app.db.count("chart"), await app.db.value(alone)

    rows, unpaired = run(app, work())
    assert rows in (150, 200)
    assert unpaired == 0


@pytest.mark.spec("A8-16")
def test_text_is_cut_at_insert_and_a_row_that_is_too_large_is_refused_where_it_is_called(tmp_path: Path) -> None:
    app = market(tmp_path, profile="cloudflare")

    async def work() -> tuple[int, int]:
        async with app.unit():
            app.db.insert_many("apps", [{"id": 1, "description": cut("é" * 5_000)}])
            for refused in ("x" * 1_000_001, "é" * 500_001, b"x" * 1_000_001):
                sql = "insert into apps (id, description) values (:id, :description)"
                for call in (
                    partial(app.db.insert_many, "apps", [{"id": 2, "description": refused}]),
                    partial(app.db.write_many, sql, [{"id": 2, "description": refused}]),
                    partial(app.db.write, sql, id=2, description=refused),
                ):
                    with pytest.raises(TooLarge, match="a row may have 1,000,000"):
                        call()
        return await app.db.value("select length(description) from apps"), await app.db.count("apps")

    assert run(app, work()) == (2_000, 1)


def test_many_rows_of_half_the_allowed_size_fit_although_they_share_a_statement(tmp_path: Path) -> None:
    app = market(tmp_path, profile="cloudflare")

    async def work() -> int:
        async with app.unit():
            app.db.insert_many("apps", [{"id": id, "description": "x" * 500_000} for id in range(5)])
        return await app.db.count("apps")

    assert run(app, work()) == 5


@pytest.mark.spec("A8-23")
def test_a_change_of_several_statements_is_taken_back_as_a_whole(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def rename_both(second: int) -> None:
        async with app.unit():
            app.db.write("update apps set title = 'Sofa' where id = 1", expect=1)
            app.db.write("update apps set title = 'Desk' where id = :id", id=second, expect=1)
            if second == 2:
                raise ZeroDivisionError

    async def work() -> list[str]:
        await add(app, {"id": 1, "title": "Lamp"}, {"id": 2, "title": "Chair"})
        with pytest.raises(LostUpdate, match="expected to change 1 rows, changed 0"):
            await rename_both(second=9)
        with pytest.raises(ZeroDivisionError):
            await rename_both(second=2)
        return await app.db.column("select title from apps order by id")

    assert run(app, work()) == ["Lamp", "Chair"]


@pytest.mark.parametrize("call", ["upsert", "insert_many", "write_many", "write"])
def test_a_refused_statement_names_the_line_of_the_call(tmp_path: Path, call: str) -> None:
    app = market(tmp_path, APPS + "create unique index titles on apps (title);")

    async def work() -> None:
        db = app.db
        await add(app, {"id": 1, "title": "Lamp"})
        async with app.unit():
            if call == "upsert":
                db.upsert("apps", {"id": 2, "title": "Lamp"}, key="id")
            elif call == "insert_many":
                db.insert_many("gone", [{"id": 2}])
            elif call == "write_many":
                db.write_many("insert into apps (id, title) values (:id, :title)", [{"id": 2, "title": "Lamp"}])
            else:
                db.write("insert into apps (id, title) values (2, 'Lamp')")

    with pytest.raises(StatementFailed) as caught:
        run(app, work())

    assert Path(__file__).name in caught.value.__notes__[0]


@pytest.mark.spec("A8-04")
def test_a_list_of_250_is_written_in_batches_of_100_100_and_50(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        counts = []
        for batch in chunks(range(250), 100):
            await add(app, *[{"id": id} for id in batch])
            counts.append(await app.db.count("apps"))
        return counts

    assert run(app, work()) == [100, 200, 250]


def test_a_write_without_a_unit_is_refused_at_once(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        for call in (
            lambda: app.db.insert_many("apps", [{"id": 1}]),
            lambda: app.db.upsert("apps", {"id": 1}, key="id"),
        ):
            with pytest.raises(ps.NoUnit):
                call()

    run(app, work())


def test_two_apps_do_not_share_a_unit(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one, other = market(tmp_path), market(tmp_path / "other")

    async def work() -> None:
        async with one, other, one.unit():
            with pytest.raises(ps.NoUnit, match="belongs to another app"):
                other.db.insert_many("apps", [{"id": 1}])

    asyncio.run(work())
