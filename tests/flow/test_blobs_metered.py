"""Blobs that are read count towards the month, under the task that read them."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.config import parse
from penstock.testing import TestApp, virtual
from tests.flow.crons import START, statuses

BY_TASK = "select task, executions from penstock_usage where statement = 'penstock:blob_reads' order by task"


@pytest.mark.spec("A9-07", "A4-12")
@virtual
async def test_every_blob_that_is_asked_for_is_counted_and_can_reach_a_ceiling(tmp_path: Path) -> None:
    app = ps.App("shop", config=parse("[ceiling]\nblob_reads = 4", "penstock.toml"))
    pages = app.blobs(tmp_path / "pages")

    @app.cron("0 * * * *", reason="hourly")
    async def read() -> None:
        await pages.get("a")
        await pages.read("not/there")
        await pages.list()

    async with TestApp(app, start=START) as shop:
        await pages.put("a", b"1")
        assert await pages.get("a") == b"1"
        await shop.advance(hours=3)

        usage = await app.db.usage()
        assert usage.total.blob_reads == 5
        assert usage.bill.line("blob_reads").used == 5
        assert [tuple(row) for row in await app.db.rows(BY_TASK)] == [("", 1), ("cron.read:read", 4)]
        assert await statuses(app, "read") == ["done", "done", "ceiling"]


@virtual
async def test_a_blob_is_read_also_where_no_database_is_open(tmp_path: Path) -> None:
    pages = ps.App("shop").blobs(tmp_path / "pages")

    await pages.put("a", b"1")

    assert await pages.get("a") == b"1"
