"""A cron task every minute on a million rows costs one index row a minute while there is nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual

SCHEMA = """
create table apps (id integer primary key, enriched_at text);
create index apps_pending on apps (id) where enriched_at is null;
insert into apps (id, enriched_at)
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1000000)
select n, 'then' from numbers;
"""


@pytest.mark.spec("A4-08", "A4-15", "G7-01")
def test_an_idle_minute_cron_reads_at_most_one_row_a_probe(tmp_path: Path) -> None:
    (tmp_path / "0001_apps.sql").write_text(SCHEMA)
    app = ps.App("market", migrations=tmp_path)
    ran: list[ps.Tick] = []

    async def something_to_do() -> bool:
        return await app.db.exists("select 1 from apps where enriched_at is null limit 1")

    @app.cron("* * * * *", reason="readers wait for each new app", when=something_to_do)
    async def enrich(tick: ps.Tick) -> None:
        ran.append(tick)

    @virtual
    async def work() -> None:
        async with TestApp(app) as shop:
            await shop.advance(minutes=30)
            log = await app.db.rows("select status, rows_read from pipeline_log order by due_at")

            assert {row.status for row in log} == {"idle"}
            assert len(log) == 30
            assert max(row.rows_read for row in log) <= 1
            assert ran == []

            async with shop.unit():
                app.db.write("update apps set enriched_at = null where id = 500000")
            await shop.advance(minutes=1)
            assert len(ran) == 1

    work()
