"""Permits of a shared pace: who can do without one does not wait for it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import penstock as ps
from penstock.testing import TestApp, virtual


@virtual
async def test_who_is_impatient_takes_a_free_permit_or_none() -> None:
    app = ps.App("shop")
    pace = app.pace("service", rate=(1.0, 1.0), max_wait=30)
    async with TestApp(app) as shop:
        began = shop.now
        async with pace.permit(max_wait=0):
            pass
        with pytest.raises(ps.Throttled):
            async with pace.permit(max_wait=0):
                raise AssertionError("there was none")
        assert shop.now == began

        async with pace.permit():
            assert (shop.now - began).total_seconds() == pytest.approx(1, abs=0.3)


@virtual
async def test_who_is_impatient_does_not_push_in_before_those_who_wait() -> None:
    app = ps.App("shop")
    pace = app.pace("service", rate=(1.0, 1.0), max_wait=30)
    order: list[str] = []

    async def patient(name: str) -> None:
        async with pace.permit():
            order.append(name)

    async with TestApp(app):
        await patient("first")
        waiting = [asyncio.ensure_future(patient(name)) for name in ("second", "third")]
        await asyncio.sleep(0)
        with pytest.raises(ps.Throttled):
            async with pace.permit(max_wait=0.5):
                raise AssertionError("others come first")
        await asyncio.gather(*waiting)
        assert order == ["first", "second", "third"]


@virtual
async def test_a_wait_that_would_be_too_long_is_refused_at_once_with_the_time_it_takes() -> None:
    app = ps.App("shop")
    pace = app.pace("service", rate=(1.0, 1.0), max_wait=5)
    async with TestApp(app) as shop:
        with pytest.raises(ps.Throttled):
            async with pace.permit():
                raise ps.Throttled("later", retry_after=60)
        refused_at = shop.now

        with pytest.raises(ps.Throttled, match=r"service takes no more for (59|60|61) s") as refused:
            async with pace.permit():
                raise AssertionError("the service is not to be called")

        assert refused.value.retry_after == pytest.approx(60, abs=1)
        assert shop.now == refused_at
        async with pace.permit(max_wait=timedelta(seconds=90)):
            assert (shop.now - refused_at).total_seconds() == pytest.approx(60, abs=2)


@virtual
async def test_no_more_callers_wait_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.control.permits.WAITING_MAX", 2)
    app = ps.App("shop")
    pace = app.pace("service", rate=(1.0, 1.0), max_wait=30)
    taken: list[int] = []

    async def take(number: int) -> None:
        async with pace.permit():
            taken.append(number)

    async with TestApp(app):
        await take(0)
        waiting = [asyncio.ensure_future(take(number)) for number in (1, 2)]
        await asyncio.sleep(0)

        with pytest.raises(ps.Throttled, match="2 callers already wait for service") as refused:
            await take(3)

        assert refused.value.retry_after == 30
        await asyncio.gather(*waiting)
        await take(4)
        assert taken == [0, 1, 2, 4]


@virtual
async def test_a_caller_that_gives_up_lets_the_next_one_through() -> None:
    app = ps.App("shop")
    pace = app.pace("service", rate=(1.0, 1.0), max_wait=30)
    async with TestApp(app) as shop:
        async with pace.permit():
            pass
        began = shop.now
        taken: list[str] = []

        async def take(name: str) -> None:
            async with pace.permit():
                taken.append(name)

        leaves, stays = (asyncio.ensure_future(take(name)) for name in ("leaves", "stays"))
        await asyncio.sleep(0)
        leaves.cancel()
        await stays

        assert taken == ["stays"]
        assert (shop.now - began).total_seconds() == pytest.approx(1, abs=0.3)


@virtual
async def test_the_pace_that_was_found_outlives_the_process_and_the_unit_that_failed(tmp_path: Path) -> None:
    app = ps.App("shop")
    pace = app.pace("service", rate=(0.01, 100.0))
    assert [pace.rate_per_second] == [None]
    async with TestApp(app, folder=tmp_path) as shop:
        for _ in range(300):
            async with pace.permit():
                await shop.advance(seconds=0.01)
        found = pace.rate_per_second

        async def fail() -> None:
            async with shop.unit():
                async with pace.permit(max_wait=60):
                    await shop.advance(seconds=40)  # longer than what a crash may lose
                raise LookupError("the unit fails, and the pace is saved")

        with pytest.raises(LookupError):
            await fail()
        saved = pace.rate_per_second
    assert found is not None
    assert found > 2.0

    async with TestApp(app, folder=tmp_path):
        async with pace.permit():
            pass
        assert pace.rate_per_second == pytest.approx(saved, rel=0.5)
