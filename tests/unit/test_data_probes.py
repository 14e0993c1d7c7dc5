"""Probes: what says that there is work reads no more than it returns, and that is proven before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.model.errors import BadStatement
from penstock.testing import TestApp, virtual
from tests.postgres import empty_database

SCHEMA = """
create table apps (id integer primary key, enriched_at text, rank integer);
create index apps_pending on apps (rank) where enriched_at is null;
"""


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TestApp, "new_database", empty_database if request.param == "postgres" else None)


PENDING = "select 1 from apps where enriched_at is null limit 1"


def market(folder: Path) -> ps.App:
    (folder / "0001_apps.sql").write_text(SCHEMA)
    return ps.App("market", migrations=folder)


async def fill(app: ps.App, shop: TestApp, count: int) -> None:
    async with shop.unit():
        rows = [{"id": number, "rank": number} for number in range(count)]
        app.db.write_many("insert into apps (id, enriched_at, rank) values (:id, 'then', :rank)", rows)


@pytest.mark.spec("A4-08", "G2-01", "F-10")
def test_a_probe_reads_at_most_one_row_however_large_the_table_is(tmp_path: Path) -> None:
    app = market(tmp_path)

    @virtual
    async def work() -> None:
        async with TestApp(app) as shop:
            await fill(app, shop, 5_000)
            engine = await app._opened()
            assert not await app.db.exists(PENDING)
            before = engine.meter.read_by("")
            assert not await app.db.exists(PENDING)
            assert engine.meter.read_by("") - before <= 1
            async with shop.unit():
                app.db.write("update apps set enriched_at = null where id = 3")
            assert await app.db.exists(PENDING)

    work()


@pytest.mark.spec("A4-11")
def test_a_question_for_more_than_n_counts_no_further_than_n(tmp_path: Path) -> None:
    app = market(tmp_path)

    @virtual
    async def work() -> None:
        async with TestApp(app) as shop:
            await fill(app, shop, 3_000)
            async with shop.unit():
                app.db.write("update apps set enriched_at = null")
            pending = "select 1 from apps where enriched_at is null"
            assert await app.db.more_than(500, pending)
            engine = await app._opened()
            before = engine.meter.read_by("")
            assert await app.db.more_than(500, pending)
            assert engine.meter.read_by("") - before <= 501
            assert not await app.db.more_than(3_000, pending)

    work()


@pytest.mark.spec("A4-08")
@pytest.mark.parametrize(
    "sql, told",
    [
        ("select 1 from apps where enriched_at = 'never' limit 1", "reads more than the rows it returns"),
        ("select 1 from apps where enriched_at is null", "limit 1"),
        ("select 1 from apps where enriched_at is not null order by rank limit 1", "index"),
    ],
)
def test_a_probe_that_could_walk_a_table_is_refused_before_it_runs(tmp_path: Path, sql: str, told: str) -> None:
    app = market(tmp_path)
    refused: list[Any] = []

    @virtual
    async def work() -> None:
        async with TestApp(app):
            with pytest.raises(BadStatement) as error:
                await app.db.exists(sql)
            refused.append(error.value)

    work()
    assert told in str(refused[0])
