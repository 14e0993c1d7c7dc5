"""Permits of a shared pace: who can do without one does not wait for it."""

from __future__ import annotations

import asyncio

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
