"""The status of a controller has all its fields, and its figures are true."""

from __future__ import annotations

import msgspec
import pytest

import penstock as ps
from penstock.model.errors import BadApp, NoSuchController
from penstock.model.times import to_micros
from penstock.testing import TestApp, virtual
from tests.flow.shelf import MODES, START, Shelf, names
from tests.flow.tampering import tamper

FLAT = {
    "running": bool,
    "total_dispatched": int,
    "total_completed": int,
    "total_failed": int,
    "completions_per_minute": float,
    "success_rate": float,
    "success_rate_pct": float,
    "current_batch_size": int,
    "current_interval_ms": int,
    "in_cooldown": bool,
    "cooldown_remaining_s": int,
    "projected_per_day": int,
    "projected_per_hour": int,
    "mode": str,
    "rate_per_second": float,
    "ticks": list,
}
RICH = {
    "params": {"batch_size", "interval_ms", "interval_human"},
    "lifetime": {"dispatched", "completed", "failed", "success_rate_pct"},
    "rolling": {"success_rate_pct", "sample_size", "confidence", "completions_per_minute"},
}


@pytest.mark.spec("A6-29", "A6-30", "G5-19")
@MODES
@virtual
async def test_status_has_its_fields_also_before_anything_was_done(mode: str) -> None:
    shelf = Shelf(mode=mode)
    async with TestApp(shelf.app, start=START) as shop:
        for filled in (False, True):
            status = await shelf.status()
            assert {name: type(status[name]) for name in FLAT} == FLAT
            assert {name: set(status[name]) for name in RICH} == RICH
            assert status["success_rate"] == status["rolling"]["success_rate_pct"] == 100.0
            assert status["lifetime"]["success_rate_pct"] == 100.0
            assert all(set(tick) == {"at", "text"} for tick in status["ticks"])
            if not filled:
                assert status["rolling"]["confidence"] == "none"
                await shelf.fill(shop, *names(10))
                await shop.advance(minutes=5)
        assert status["total_completed"] == 10
        assert status["last_tick_at"].startswith("2026-03-01T12:0")
        assert status["last_work_at"] is not None


@pytest.mark.spec("A6-29")
@virtual
async def test_eighteen_a_minute_are_25920_a_day() -> None:
    shelf = Shelf()
    async with TestApp(shelf.app, start=START) as shop:
        await shop.advance(seconds=1)
        await shelf.controller.stop()
        at = to_micros(shop.now.replace(second=0, microsecond=0))
        host = await shelf.app.host()
        row = await host.look("Controller", "enrichment")
        assert row is not None
        state = msgspec.json.decode(row.state) | {"minutes": [[at, 18, 0]]}
        tamper(shelf.app.database, "update penstock_objects set state = :state", state=msgspec.json.encode(state))
        status = await shelf.status()
        assert (status["completions_per_minute"], status["projected_per_day"]) == (18.0, 25_920)


@pytest.mark.spec("G5-16", "A6-31")
@virtual
async def test_status_shows_life_during_a_cooldown_and_a_start_ends_it() -> None:
    async def work(_item: str) -> None:
        raise ps.Throttled(retry_after=600)

    shelf = Shelf(work, mode="pilot")
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *names(50))
        await shop.advance(minutes=4)
        status = await shelf.status()
        assert status["in_cooldown"]
        assert status["seconds_since_last_tick"] < 130
        await shelf.controller.start()
        status = await shelf.status()
        assert (status["in_cooldown"], status["cooldown_remaining_s"]) == (False, 0)


@virtual
async def test_names_that_are_not_there_or_there_twice_are_refused() -> None:
    shelf = Shelf()
    with pytest.raises(NoSuchController, match="enrichment"):
        shelf.app.controllers["enrichmentX"]
    with pytest.raises(BadApp, match="no mode"):
        Shelf(mode="autopilot")
    with pytest.raises(BadApp, match="two controllers"):
        shelf.app.controller("enrichment")(type("Again", (ps.Controller,), {}))
