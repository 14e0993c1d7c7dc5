"""Pages cost the same however full the database is: rows by LIMIT, statements by index, one reading for all who watch."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import apsw
import httpx2
import pytest

from bench.dashboard import PAGES, full_app, measure
from bench.dashboard_fill import Size, fill
from penstock.model.sql_files import load
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site
from tests.postgres import empty_database

LARGE = Size(30_000, 30_000, 800)  # more than any page reads of each
ROWS_MAX = {
    "/": 600,
    "/queues": 401,
    "/dead": 1_100,
    "/runs": 150,
    "/search?q=no+such+page": 2_000,
    "/queues/queue-7": 450,
}
BIG = ("messages", "dead", "runs", "steps", "objects", "calls", "spending", "audit", "ticks", "signals")
ANY = {
    "first": "",
    "before": 1,
    "now": 1,
    "most": 10,
    "skip": 0,
    "queue": "a",
    "text": "x",
    "class": "a",
    "name": "a",
    "window": 10,
}


def statements() -> dict[str, str]:
    return load("penstock.web.ui", "pages.sql")


async def made(database: str, size: Size) -> None:
    app = full_app(database)
    async with app:
        now = (await app._opened()).clock.now()
    fill(database, size, now)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_page_over_a_full_database_keeps_its_budget_of_rows(tmp_path: Path, store: str) -> None:
    address = str(tmp_path / "full.db") if store == "sqlite" else empty_database("full")
    found = {each["page"]: each["rows"] for each in asyncio.run(measure(address, LARGE))}

    for path in PAGES:
        assert found[path] <= ROWS_MAX.get(path, 1_100), (path, found[path])
    assert found["/queues, 50 open"] <= ROWS_MAX["/queues"]  # as many as one


def test_no_statement_of_a_page_walks_a_table_that_grows(tmp_path: Path) -> None:
    database = str(tmp_path / "full.db")
    asyncio.run(made(database, Size(500, 100, 50)))
    connection = apsw.Connection(database)
    for name, sql in statements().items():
        bound = {
            each: ANY.get(each, b"a" if each in ("key", "id", "run") else 1) for each in re.findall(r":(\w+)", sql)
        }
        plan = [row[3] for row in connection.execute(f"explain query plan {sql}", bound)]
        walked = [line for line in plan if re.match(rf"SCAN penstock_({'|'.join(BIG)})\b(?!.* USING)", line)]
        sorted_ = [
            line for line in plan if "TEMP B-TREE FOR ORDER BY" in line and name in ("runs_newest", "dead_before")
        ]
        assert not walked, (name, walked)
        assert not sorted_, (name, plan)


def test_a_page_that_is_not_open_reads_nothing(tmp_path: Path) -> None:
    asyncio.run(_idle(str(tmp_path / "idle.db")))


async def _idle(database: str) -> None:
    app = full_app(database)
    async with app:
        site = make_site(app, tokens=[KnownToken("a", hashed("a"))])
        live = site.state.dashboard
        transport = httpx2.ASGITransport(app=site)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.get("/ui/queues", headers={"authorization": "Bearer a"})
            before = live._source.total.statements
            await asyncio.sleep(2.5)

        assert live._source.total.statements == before
        assert live._poller is None
