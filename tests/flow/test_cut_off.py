"""A worker that is cut off from its store: nothing begins until it is back, and what was claimed can be had by others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.runtime.engine import Engine
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing, shop_app


def engine_of(shop: TestApp) -> Engine:
    assert shop._worker is not None
    assert shop._worker.engine is not None
    return shop._worker.engine


@pytest.mark.fault("F22")
@virtual
async def test_what_was_claimed_goes_back_and_begins_only_once_the_store_is_there_again() -> None:
    begun: list[str] = []

    async def handle(listing: Listing, _message: ps.Message[Listing]) -> None:
        begun.append(listing.name)
        if listing.name == "a":
            engine_of(shop).gate.set_store_lost(True)
            await asyncio.sleep(5)

    app, listings = shop_app(handle, parallel=8)
    async with TestApp(app) as shop:
        async with shop.unit():
            listings.send_all([Listing(name=name) for name in "abcd"])
        await shop.advance(seconds=15)
        assert begun == ["a"]
        assert (await shop.counts(listings)).ready == 3, "nobody else could take them"

        engine_of(shop).gate.set_store_lost(False)
        await shop.advance(seconds=1)
        assert begun == list("abcd")


@pytest.mark.fault("F22", "F35")
@virtual
async def test_the_next_event_of_an_object_waits_for_the_store_and_idle_objects_are_read_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []

    class Door(ps.Object):
        async def knock(self, who: str) -> None:
            begun.append(f"{self.name}: {who}")
            await asyncio.sleep(1)
            if who == "first":
                raise OSError("nobody is in")

        async def loaded(self) -> None:
            begun.append(f"{self.name} is read")

    app = ps.App("house")
    doors = app.object(Door)
    async with TestApp(app) as shop:
        engine = engine_of(shop)
        back = cut_off(engine, monkeypatch)
        await doors["idle"].knock("somebody")
        calls = [asyncio.ensure_future(doors["busy"].knock(who)) for who in ("first", "second")]
        await asyncio.sleep(0.5)
        begun.clear()

        engine.gate.set_store_lost(True)
        await asyncio.sleep(10)
        assert isinstance(calls[0].exception(), OSError)
        assert begun == [], "it began without the store"

        back()
        await calls[1]
        await doors["idle"].knock("somebody")
        assert begun == ["busy: second", "idle is read", "idle: somebody"]


def cut_off(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """While the gate says that the store is away nothing is done in its thread, as on a connection that is being looked
    for. Returns what ends that."""
    there, in_writer = asyncio.Event(), engine.in_writer

    async def waiting(work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        if engine.gate.store_lost:
            await there.wait()
        return await in_writer(work, *given, **named)

    def back() -> None:
        engine.gate.set_store_lost(False)
        there.set()

    monkeypatch.setattr(engine, "in_writer", waiting)
    return back
