"""A full disk, seen by a whole app on a real event loop: senders are told, handlers' work is settled, and everything goes
on by itself when there is space again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from penstock.model.errors import StorageFull
from penstock.runtime.events import MessageSettled, StorageRanFull
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.disk import Disk
from tests.luck.shop import EFFECT, Order, Shop, running

pytestmark = pytest.mark.fault("F14")

RESERVE = 300_000


def fill(disk: Disk) -> None:
    """From now on there is hardly any space left but the reserve's own."""
    disk.quota_bytes = disk.used_bytes() + 30_000


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler whose effects found no space comes back after ten seconds; here after a moment."""
    monkeypatch.setattr("penstock.model.outcome._STORAGE_FULL_WAIT_SECONDS", 0.3)


def test_a_send_raises_and_saves_nothing_until_there_is_space(disk: Disk, path: Path, inspect: SqliteInspect) -> None:
    async def scenario() -> None:
        shop = Shop(path, disk)
        async with shop:
            await shop.place("first")
            fill(disk)
            for _ in range(3):
                with pytest.raises(StorageFull, match="full"):
                    await shop.place(*"abc", load="x" * 300_000)
            with pytest.raises(StorageFull, match="full"):
                await shop.place("small, but the disk is full")
            assert len(inspect.messages()) == 1

            disk.quota_bytes = None
            await shop.place("last")

        assert shop.saw(StorageRanFull) == 1, "told once, not for every send"
        assert len(inspect.messages()) == 2

    asyncio.run(scenario())
    check_conservation(inspect)


def test_running_handlers_are_settled_claims_stop_and_all_resumes(
    disk: Disk, path: Path, inspect: SqliteInspect
) -> None:
    async def scenario() -> None:
        shop = Shop(path, disk)
        go_on = asyncio.Event()

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.begin(order)
            await go_on.wait()

        await shop.place(*(f"order {number}" for number in range(40)))
        async with running(shop):
            await shop.until_begun(8)
            fill(disk)
            with pytest.raises(StorageFull):
                await shop.place("refused", load="x" * 800_000)
            go_on.set()
            await shop.until_done(8)
            started = time.thread_time()
            await asyncio.sleep(1.5)
            assert len(shop.begun) == 8, "claims stop while the disk is full"
            assert time.thread_time() - started < 0.5, "and nothing spins meanwhile"

            disk.quota_bytes = None
            await shop.until_done(40)

        assert len(shop.begun) == 40, "each handler ran once"
        assert inspect.messages() == []

    asyncio.run(scenario())
    check_conservation(inspect)


def test_a_handler_whose_effects_find_no_space_runs_again_later_and_loses_no_attempt(
    disk: Disk, path: Path, inspect: SqliteInspect
) -> None:
    async def scenario() -> None:
        shop = Shop(path, disk)
        go_on = asyncio.Event()

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.begin(order)
            await go_on.wait()
            shop.db.write(EFFECT, what=order.name + "x" * 20_000)

        await shop.place("one", "two", "three")
        async with running(shop):
            await shop.until_begun(3)
            fill(disk)
            with pytest.raises(StorageFull):
                # More than the log could hold in the space that it has already.
                await shop.place(*(f"refused {number}" for number in range(20)), load="x" * 100_000)
            go_on.set()
            await shop.until(lambda: shop.saw(MessageSettled) == 3)
            assert [row.attempts for row in inspect.messages()] == [0, 0, 0]
            assert {row.error_class for row in inspect.messages()} == {"StorageFull"}

            disk.quota_bytes = None
            await shop.until_done(3)

        assert sorted((await shop.effects()).values()) == [1, 1, 1]
        await shop.close()

    asyncio.run(scenario())
    check_conservation(inspect)


def test_an_app_can_be_stopped_on_a_full_disk_and_started_again(disk: Disk, path: Path, inspect: SqliteInspect) -> None:
    async def scenario() -> None:
        shop = Shop(path, disk)

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.begin(order)
            if disk.quota_bytes is not None:
                await asyncio.sleep(60)

        await shop.place(*(f"order {number}" for number in range(20)))
        fill(disk)
        with pytest.raises(StorageFull):
            await shop.place("refused", load="x" * 800_000)
        disk.quota_bytes = disk.used_bytes() + 4 * RESERVE
        async with running(shop):
            await shop.until_begun(8)
            disk.quota_bytes = disk.used_bytes() + 1_000
        assert all(row.worker is None and row.attempts == 0 for row in inspect.messages())

        disk.quota_bytes = None
        async with running(shop):
            await shop.until_done(20)

    asyncio.run(scenario())
    check_conservation(inspect)
    assert inspect.messages() == []
