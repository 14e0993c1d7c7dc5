"""Health: `/health` answers as long as the process lives, `/health/deep` says what it stands on."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from penstock.model.errors import StoreUnavailable
from penstock.testing import TestApp, virtual
from tests.flow.tampering import tamper
from tests.web.outside import outside, shop_app

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.spec("A14-01")
async def test_a_healthy_service_says_so_with_what_it_looked_at(shop: TestApp) -> None:
    async with outside(shop) as client:
        await client.push("a job")
        shallow = await client.get("/health")
        deep = await client.get("/health/deep")

    assert (shallow.status, shallow.told["status"], shallow.told["service"]) == (200, "ok", "shop")
    assert ISO.fullmatch(shallow.told["timestamp"])
    assert (deep.status, deep.told["status"]) == (200, "ok")
    assert set(deep.told["checks"]) == {"database", "queues", "workers", "runs"}
    assert deep.told["checks"]["queues"] == {"status": "ok", "count": 2, "paused": 0, "waiting": 1, "dead": 0}
    assert deep.told["checks"]["workers"]["count"] == 1  # the test's own second process


@pytest.mark.spec("A14-01", "G2-42")
@virtual
async def test_a_cron_task_whose_last_run_failed_or_that_no_worker_fires_is_found() -> None:
    app, broken = shop_app(), [True]

    @app.cron("*/5 * * * *", reason="orders come in all day")
    async def sweep() -> None:
        if broken:
            raise OSError("no")

    async with TestApp(app) as shop, outside(shop) as client:
        await shop.advance(minutes=6)
        failed = await client.get("/health/deep")
        broken.clear()
        await shop.advance(minutes=5)
        mended = await client.get("/health/deep")
        tamper(app.database, "update penstock_timers set due = due - 3600000000")
        late = await client.get("/health/deep")

    assert (failed.status, failed.told["checks"]["runs"]) == (
        503,
        {"status": "failed", "count": 1, "late": 0, "failed": 1},
    )
    assert (mended.status, mended.told["checks"]["runs"]) == (200, {"status": "ok", "count": 1, "late": 0, "failed": 0})
    assert (late.status, late.told["checks"]["runs"]["late"]) == (503, 1)


@pytest.mark.fault("F20")
@pytest.mark.spec("A14-01", "G2-42")
def test_without_its_database_the_service_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    app = shop_app()
    app.database = str(tmp_path / "gone" / "shop.db")

    async def ask() -> None:
        async with outside(app) as client:
            shallow = await client.get("/health")
            deep = await client.get("/health/deep")
            push = await client.push("a job")
            query = await client.d1("select 1")

        assert (shallow.status, shallow.told["status"]) == (200, "ok")
        assert (deep.status, deep.told["status"]) == (503, "failed")
        assert deep.told["checks"]["database"]["status"] == "failed"
        assert str(tmp_path) not in str(deep.told)
        for refused in (push, query):
            assert (refused.status, refused.error["name"]) == (503, "store_unavailable")
            assert refused.headers["retry-after"] == "5"
            assert str(tmp_path) not in refused.words

    asyncio.run(ask())


@pytest.mark.spec("A14-01")
async def test_a_store_that_broke_while_it_was_open_is_found(shop: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with outside(shop) as client:
        engine = await shop.app._opened()
        monkeypatch.setattr(engine.scheduler, "broken", StoreUnavailable("the disk is gone"))
        deep = await client.get("/health/deep")
        monkeypatch.undo()

    assert (deep.status, deep.told["checks"]["database"]["status"]) == (503, "failed")
