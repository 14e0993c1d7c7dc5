"""Pruning: old rows go in small portions, and nothing that only looks old goes with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.data.old import TimeUnit
from penstock.model.errors import BadParameter, BadStatement
from tests.unit.market import APPS, add, market, run

BOTH_STORES = True

DAY_SECONDS = 86_400


@pytest.mark.spec("A8-18")
def test_rows_of_91_days_go_and_rows_of_89_days_stay(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> tuple[int, list[int]]:
        ages = {1: "91d", 2: "90d1m", 3: "89d", 4: "1s"}
        await add(app, *[{"id": id, "seen_at": await app.db.ago(age)} for id, age in ages.items()])
        removed = await app.db.prune("apps", column="seen_at", older_than="90d")
        return removed, await app.db.column("select id from apps order by id")

    assert run(app, work()) == (2, [3, 4])


@pytest.mark.spec("A8-18")
def test_old_rows_go_in_portions_and_others_commit_in_between(tmp_path: Path) -> None:
    app = market(tmp_path, f"{APPS}create table looks (still_old integer not null);")

    async def work() -> tuple[int, list[int]]:
        db = app.db
        await add(app, *[{"id": id, "seen_at": await db.ago("100d")} for id in range(1_000)])
        pruning = asyncio.ensure_future(db.prune("apps", column="seen_at", older_than="90d", chunk=50))
        while not pruning.done():
            async with app.unit():  # counted inside the commit, however slowly this task gets its turn
                db.write("insert into looks (still_old) select count(*) from apps")
        return await pruning, await db.column("select still_old from looks")

    removed, looks = run(app, work())

    assert removed == 1_000
    assert [each for each in looks if 0 < each < 1_000 and each % 50 == 0]


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    "unit, second", [("s", 1), ("ms", 1_000), ("micros", 1_000_000)], ids=["seconds", "milliseconds", "microseconds"]
)
def test_times_may_be_whole_numbers_since_1970(tmp_path: Path, unit: TimeUnit, second: int) -> None:
    app = market(tmp_path, "create table points (id integer primary key, at integer)")

    async def work() -> list[int]:
        now = (await app._opened()).clock.now() * second // 1_000_000
        ages = {1: 91 * DAY_SECONDS, 2: 89 * DAY_SECONDS}
        await add(app, *[{"id": id, "at": now - age * second} for id, age in ages.items()], table="points")
        await add(app, {"id": 3, "at": 0}, {"id": 4, "at": None}, {"id": 5, "at": "long ago"}, table="points")
        await app.db.prune("points", column="at", older_than="90d", unit=unit)
        return await app.db.column("select id from points order by id")

    assert run(app, work()) == [2, 3, 4, 5]  # 0 stands for never


def test_what_is_no_time_is_never_old(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> list[int]:
        db = app.db
        strange = {2: None, 3: "", 4: "never", 5: 17}
        await add(app, {"id": 1, "seen_at": await db.ago("91d")})
        await add(app, *[{"id": id, "seen_at": value} for id, value in strange.items()])
        await db.prune("apps", column="seen_at", older_than="90d")
        return await db.column("select id from apps order by id")

    # SQLite sorts NULL and numbers before all text, and "" before every time: compared carelessly they would all go.
    assert run(app, work()) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "kind, value, unit, way_out",
    [
        ("integer", 1_700_000_000_000, "text", "unit='s', 'ms' or 'micros'"),
        ("text", "2020-01-01T00:00:00Z", "text", "no 'YYYY-MM-DD HH:MM:SS'"),
        ("text", "2020-01-01 00:00:00", "ms", "Leave `unit=` out"),
        ("text", "2020-01-01 00:00:00", "days", "it can be text, s, ms, micros"),
    ],
)
def test_times_in_another_form_than_said_are_refused_before_anything_is_deleted(
    tmp_path: Path, kind: str, value: object, unit: Any, way_out: str
) -> None:
    app = market(tmp_path, f"create table points (id integer primary key, at {kind})")

    async def work() -> None:
        await add(app, {"id": 1, "at": value}, table="points")
        with pytest.raises(BadParameter, match=way_out):
            await app.db.prune("points", column="at", older_than="90d", unit=unit)
        assert await app.db.count("points") == 1

    run(app, work())


@pytest.mark.only_on("sqlite")
def test_a_table_without_rowid_is_pruned_by_its_key(tmp_path: Path) -> None:
    app = market(tmp_path, "create table ranks (day text, app integer, primary key (day, app)) without rowid")

    async def work() -> list[Any]:
        db = app.db
        old, new = (await db.ago("91d"))[:10], (await db.ago("1d"))[:10]
        await add(app, *[{"day": day, "app": id} for day in (old, new) for id in (1, 2)], table="ranks")
        with pytest.raises(BadStatement, match="key='id'"):
            await db.prune("ranks", column="day", older_than="90d")
        assert await db.prune("ranks", column="day", older_than="90d", key=["day", "app"], chunk=1) == 2
        return [tuple(row) for row in await db.rows("select day = :new, app from ranks order by app", new=new)]

    assert run(app, work()) == [(1, 1), (1, 2)]


@pytest.mark.parametrize("name", ["apps; drop table apps", "penstock_messages", "a b", ""])
def test_a_name_that_is_none_never_reaches_the_database(tmp_path: Path, name: str) -> None:
    app = market(tmp_path)

    async def work() -> None:
        for table, column in ((name, "seen_at"), ("apps", name)):
            with pytest.raises(BadStatement, match=r"not a table or column name|reserved for the engine"):
                await app.db.prune(table, column=column, older_than="90d")

    run(app, work())


@pytest.mark.parametrize("chunk", [0, -1, 10_001])
def test_a_portion_has_a_bound(tmp_path: Path, chunk: int) -> None:
    app = market(tmp_path)

    async def work() -> None:
        with pytest.raises(BadParameter, match="1 to 10,000"):
            await app.db.prune("apps", column="seen_at", older_than="90d", chunk=chunk)

    run(app, work())


def test_a_handler_may_prune_under_its_own_lease(tmp_path: Path) -> None:
    app = market(tmp_path)

    class Tidy(ps.Command):
        pass

    tidying = app.queue("tidying", Tidy, retries=0)
    removed: list[int] = []

    @tidying.handler
    async def tidy(command: Tidy) -> None:
        removed.append(await app.db.prune("apps", column="seen_at", older_than="90d", chunk=10))

    async def work() -> None:
        await add(app, *[{"id": id, "seen_at": await app.db.ago("91d")} for id in range(25)])
        async with app.unit():
            tidying.send(Tidy())
        await app.run(until_idle=True)

    run(app, work())

    assert removed == [25]
