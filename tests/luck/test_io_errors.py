"""Errors of the disk: what an error left behind is read back, nothing is lost or done twice, and the process goes on or
stops with a clear word."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from penstock.contracts.ledger import ClaimRequest, NotCommitted
from penstock.model.errors import PenstockError, StoreError
from penstock.runtime.events import StoreFailed
from penstock.runtime.groups import CommitGroup, GroupResult, commit_group
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.inspection import Counted, SqliteInspect, check_conservation
from tests.contract.material import (
    ITEMS,
    NEW_ITEM,
    ORDERS,
    T0,
    Desk,
    Sheet,
    done,
    message,
    read_rows,
    rules,
    sheet,
    want,
)
from tests.disk import Disk, Operation
from tests.extent import patient
from tests.luck.shop import EFFECT, Order, Shop, running

pytestmark = pytest.mark.fault("F15")

T = TypeVar("T")

ORDERS_PLACED = 14
RESERVE = 100_000  # the log is copied back often, so that those syncs are hit too
TRIES = 12  # more than all the errors of a test together


class Program:
    """A program that places orders and handles them, and starts again when it was told to stop."""

    def __init__(self, store: SqliteStore, path: Path) -> None:
        self.store = store
        self.path = path
        self.starts = 0
        self.desk = self.start()

    def start(self) -> Desk:
        self.starts += 1
        return self.surely(lambda: Desk(self.store))

    def restart(self) -> None:
        dead = self.desk
        dead.close()
        self.desk = self.start()
        self.surely(lambda: self.desk.workers.return_rows(dead.me, started=[], now=T0))

    def surely(self, work: Callable[[], T]) -> T:
        """Somebody starts it again after each clear error."""
        for _ in range(TRIES):
            try:
                return work()
            except StoreError as error:
                if str(self.path) not in str(error):
                    raise
        raise AssertionError("it never starts")

    def commit(self, unit: Sheet, wants: list[ClaimRequest], number: int) -> GroupResult | None:
        """As the committer does it: again where nothing was saved; a new start where nobody can tell."""
        for _ in range(TRIES):
            result = commit_group(self.desk.ledger, CommitGroup([unit], wants, now=T0))
            if result.trouble is None:
                assert not result.failed, result.failed
                return result
            assert isinstance(result.trouble, PenstockError), repr(result.trouble)
            if not isinstance(result.trouble, NotCommitted):
                self.restart()
                if number in {id for id, _ in read_rows(self.store, ITEMS)}:
                    return None
        raise AssertionError("it never goes on")

    def place(self, number: int) -> None:
        unit = sheet(message(str(number).encode()))
        unit.write(NEW_ITEM, id=number, name="placed")
        self.commit(unit, [], number)

    def handle(self, number: int) -> bool:
        result = self.commit(sheet(), [want(limit=1)], -1)
        if result is None or not result.commits[-1].claimed:
            return False
        (delivery,) = result.commits[-1].claimed
        unit = done(delivery)
        unit.write(NEW_ITEM, id=1_000 + int(delivery.body), name="handled")
        self.commit(unit, [], 1_000 + int(delivery.body))
        return True

    def run(self) -> None:
        for number in range(ORDERS_PLACED):
            self.place(number)
            self.handle(number)
        while self.handle(-1):
            pass


def run_with(disk: Disk, path: Path, *, reader: bool) -> int:
    """Runs the program on that disk, then checks that every order was placed and handled once. How often it started."""
    store = SqliteStore(path, reserve_bytes=RESERVE, **disk.options)
    with ExitStack() as closing:
        if reader:
            other = SqliteStore(path, reserve_bytes=RESERVE).open_reader()
            closing.callback(other.close)
            other.read(ITEMS, {}, rows_max=10)
        program = Program(store, path)
        closing.callback(lambda: program.desk.close())
        program.run()
    inspect = SqliteInspect(path)
    check_conservation(inspect)
    assert inspect.is_sound()
    assert inspect.messages() == []
    assert inspect.counted() == {ORDERS: Counted(sent=ORDERS_PLACED, acked=ORDERS_PLACED)}
    names = Counter(name for _, name in read_rows(store, ITEMS))
    assert names == {"placed": ORDERS_PLACED, "handled": ORDERS_PLACED}
    return program.starts


def prepare(path: Path) -> None:
    desk = Desk(SqliteStore(path, synchronous="off", reserve_bytes=RESERVE))
    desk.open_shop()
    desk.workers.register_queues([rules(crashes_max=100)])
    desk.close()


@pytest.mark.parametrize("nth", range(1, 61))
def test_an_error_at_any_sync_loses_nothing_and_does_nothing_twice(disk: Disk, path: Path, nth: int) -> None:
    prepare(path)
    disk.fail("sync", nth=nth)

    run_with(disk, path, reader=nth % 2 == 0)

    assert disk.done["sync"] > nth, "the error was never reached"


@pytest.mark.parametrize("operation, most", [("write", 200), ("truncate", 4), ("read", 60)])
@pytest.mark.parametrize("sample", range(8))
def test_an_error_at_any_other_operation_neither(
    disk: Disk, path: Path, seed: int, operation: Operation, most: int, sample: int
) -> None:
    prepare(path)
    random = Random(f"{seed} {operation} {sample}")
    disk.fail(operation, nth=random.randint(1, most), times=random.choice([1, 1, 2, 3]), done=random.random() < 0.3)

    run_with(disk, path, reader=sample % 2 == 0)


@pytest.mark.parametrize("sample", range(8))
def test_several_errors_in_a_row_neither(disk: Disk, path: Path, seed: int, sample: int) -> None:
    prepare(path)
    random = Random(f"{seed} {sample}")
    for _ in range(3):
        disk.fail("sync", nth=random.randint(1, 50), times=random.randint(1, 2))
        disk.fail("write", nth=random.randint(1, 150))

    run_with(disk, path, reader=False)


# -- the truth after an error ---------------------------------------------------------------------------------------


def test_an_error_at_the_commit_that_did_commit_is_seen_as_a_commit(
    disk: Disk, path: Path, inspect: SqliteInspect
) -> None:
    """The log holds the whole commit when its sync fails. The next error keeps it from being copied back, so whoever opens
    the file now finds the commit in the log, and it has happened."""
    prepare(path)
    desk = Desk(SqliteStore(path, reserve_bytes=RESERVE, **disk.options))
    unit = sheet(message(b"once"))
    call = unit.write(NEW_ITEM, id=1, name="once")
    disk.fail("sync", on="-wal")
    disk.fail("sync", on=path.name)

    desk.commit(unit)

    assert call.changes == 1
    assert [row.body for row in inspect.messages()] == [b"once"]
    desk.send(message(b"and on"))
    assert read_rows(desk.store, ITEMS) == [(1, "once")]
    desk.close()
    check_conservation(inspect)


@pytest.mark.parametrize("reader", [False, True])
def test_an_error_at_the_commit_that_did_not_commit_is_seen_as_none(
    disk: Disk, path: Path, inspect: SqliteInspect, reader: bool
) -> None:
    prepare(path)
    store = SqliteStore(path, reserve_bytes=RESERVE, **disk.options)
    desk = Desk(store)
    other = store.open_reader() if reader else None
    if other is not None:
        other.read(ITEMS, {}, rows_max=1)
    disk.fail("sync", on="-wal")

    with pytest.raises(NotCommitted, match="nothing of it was saved"):
        desk.send(message(b"never"))

    assert inspect.messages() == []
    desk.send(message(b"again"))
    assert [row.body for row in inspect.messages()] == [b"again"]
    if other is not None:
        other.close()
    desk.close()
    check_conservation(inspect)


def test_a_log_that_cannot_be_copied_back_does_not_undo_a_commit(
    disk: Disk, path: Path, inspect: SqliteInspect
) -> None:
    """The commit is done when the copying begins: its error must not make anybody commit again."""
    prepare(path)
    desk = Desk(SqliteStore(path, reserve_bytes=RESERVE, **disk.options))
    disk.fail("sync", on=path.name, times=1_000)
    disk.fail("write", on=path.name, times=1_000)

    for number in range(60):
        desk.send(message(str(number).encode()))

    assert len(inspect.messages()) == 60
    disk.heal()
    desk.close()
    check_conservation(inspect)


# -- a whole app ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("happened", [False, True])
def test_an_app_goes_on_after_an_error_at_a_commit(
    disk: Disk, path: Path, inspect: SqliteInspect, happened: bool
) -> None:
    async def scenario() -> None:
        shop = Shop(path, disk)

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.db.write(EFFECT, what=order.name)

        async with running(shop):
            await shop.place("before")
            await shop.until_done(1)
            disk.fail("sync", on="-wal")
            if happened:
                disk.fail("sync", on=path.name)
            await shop.place("during")
            await shop.until_done(2)
        disk.heal()
        assert await shop.effects() == {"before": 1, "during": 1}
        await shop.close()

    asyncio.run(scenario())
    check_conservation(inspect)


def test_an_app_whose_disk_stays_broken_stops_with_a_clear_error(
    disk: Disk, path: Path, inspect: SqliteInspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.runtime.scheduler.RETRY_SECONDS", (0.01, 0.02))

    async def scenario() -> None:
        shop = Shop(path, disk)

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.db.write(EFFECT, what=order.name)

        await shop.place("before")
        run = asyncio.create_task(shop.run(grace_seconds=1.0))
        await shop.until_done(1)
        disk.fail("sync", times=100_000)
        with pytest.raises(StoreError, match="failed"):
            await shop.place("lost or not, nobody can tell")
        with pytest.raises(StoreError, match="failed"):
            await asyncio.wait_for(run, patient(20))
        assert shop.saw(StoreFailed) >= 1

    asyncio.run(scenario())
    disk.heal()

    async def afterwards() -> None:
        shop = Shop(path, disk)

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.db.write(EFFECT, what=order.name)

        async with running(shop):
            await shop.place("after")
            await shop.until(lambda: inspect.messages() == [])
        effects = await shop.effects()
        await shop.close()
        assert effects["before"] == effects["after"] == 1
        assert max(effects.values()) == 1

    asyncio.run(afterwards())
    check_conservation(inspect)
