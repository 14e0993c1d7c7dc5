"""A full disk, seen from the ledger: sends are refused whole, settling goes on from the reserve, and everything resumes
by itself once there is space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.model.errors import StorageFull
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, Again, Dead, Failure, Settlement
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.contract.material import ITEMS, NEW_ITEM, ORDERS, Desk, Sheet, message, read_rows, sheet, want
from tests.disk import Disk

pytestmark = pytest.mark.fault("F14")

QUOTA = 4_000_000
RESERVE = 300_000
HELD = 150  # deliveries to settle one by one: together they need far more log than the reserve has


@pytest.fixture
def desk(disk: Disk, path: Path, inspect: SqliteInspect) -> Iterator[Desk]:
    with at_a_desk(SqliteStore(path, synchronous="off", reserve_bytes=RESERVE, **disk.options)) as desk:
        desk.open_shop()
        yield desk
    check_conservation(inspect)
    assert inspect.is_sound()


@pytest.fixture
def held(desk: Desk) -> list[Delivery]:
    desk.send(*(message(b"held") for _ in range(HELD)))
    return desk.claim(HELD)


@pytest.fixture
def full(desk: Desk, disk: Disk, held: list[Delivery]) -> Desk:
    """A desk that holds some deliveries, on a disk that has just run full."""
    disk.quota_bytes = QUOTA
    with pytest.raises(StorageFull):
        fill_up(desk)
    return desk


def commit_each(desk: Desk, units: list[Sheet]) -> None:
    for unit in units:
        desk.commit(unit)


def fill_up(desk: Desk) -> None:
    for _ in range(1_000):
        desk.send(message(bytes(20_000), queue="backlog"))


def test_a_send_on_a_full_disk_is_refused_whole(desk: Desk, disk: Disk, inspect: SqliteInspect) -> None:
    disk.quota_bytes = QUOTA
    units = [sheet(*(message(bytes(5_000), queue="backlog") for _ in range(4))) for _ in range(1_000)]
    for number, unit in enumerate(units):
        unit.write(NEW_ITEM, id=number, name="x")

    with pytest.raises(StorageFull, match="full"):
        commit_each(desk, units)

    sent = sum(unit.committed for unit in units)
    assert sent > 50
    assert inspect.counted()["backlog"].sent == len(inspect.messages()) == 4 * sent
    assert len(read_rows(desk.store, ITEMS)) == sent


def test_settling_goes_on_from_the_reserve_however_much_there_is(
    full: Desk, held: list[Delivery], inspect: SqliteInspect
) -> None:
    for delivery in held:
        full.settle(delivery)

    assert inspect.counted()[ORDERS].acked == HELD


@pytest.mark.parametrize(
    "settlement", [DONE, Again(30.0, failure=Failure("Boom", "x" * 500)), Dead("exhausted", Failure("Boom", "x" * 500))]
)
def test_every_kind_of_settlement_goes_through(full: Desk, held: list[Delivery], settlement: Settlement) -> None:
    for delivery in held[:40]:
        full.settle(delivery, settlement)


def test_whatever_grows_the_database_is_refused_until_there_is_space(full: Desk, inspect: SqliteInspect) -> None:
    before = inspect.messages()
    growing = [sheet(message(b"small")), sheet(once="key"), sheet()]
    growing[2].write(NEW_ITEM, id=1, name="x")

    for unit in growing:
        with pytest.raises(StorageFull):
            full.commit(unit)

    assert inspect.messages() == before


def test_claims_stop_and_say_when_to_look_again(full: Desk) -> None:
    committed = full.commit(wants=[want("backlog"), want("empty")])

    assert committed.claimed == []
    for queue in ("backlog", "empty"):
        due = committed.next_due[queue]
        assert due is not None
        assert full.now < due <= full.now + 10_000_000, "later than now, or the loop would spin"


def test_looking_again_and_again_does_not_eat_the_reserve(
    full: Desk, held: list[Delivery], inspect: SqliteInspect
) -> None:
    for _ in range(300):
        full.later(1)
        full.commit(wants=[want("backlog")])

    for delivery in held:
        full.settle(delivery)
    assert inspect.counted()[ORDERS].acked == HELD


def test_everything_resumes_when_space_is_freed(full: Desk, disk: Disk, path: Path, inspect: SqliteInspect) -> None:
    assert not Path(f"{path}-reserve").exists()
    with pytest.raises(StorageFull):
        full.send(message(b"refused"))
    disk.quota_bytes = 2 * QUOTA

    full.send(message(b"accepted"))

    assert len(full.claim(queue="backlog")) == 10
    assert Path(f"{path}-reserve").stat().st_size >= RESERVE
    assert [row.body for row in inspect.messages() if row.body == b"accepted"] == [b"accepted"]


def test_a_little_space_is_not_enough_to_begin_anew(full: Desk, disk: Disk) -> None:
    """Otherwise sends would eat up the reserve bit by bit, and there would be nothing left to settle from."""
    for _ in range(20):
        with pytest.raises(StorageFull):
            full.send(message(bytes(5_000)))

    assert disk.free_bytes(Path()) >= RESERVE / 2


def test_a_full_disk_can_be_reopened_and_settled(full: Desk, disk: Disk, path: Path, inspect: SqliteInspect) -> None:
    """Somebody restarts the program because it is stuck: what it held can still be given back."""
    full.close()

    with at_a_desk(SqliteStore(path, synchronous="off", reserve_bytes=RESERVE, **disk.options)) as desk:
        returned = desk.workers.return_rows(full.me, started=[], now=desk.now)

    assert returned.released == HELD


def test_look_around_refills_the_reserve(full: Desk, disk: Disk, path: Path) -> None:
    full.upkeep.look_around()
    assert not Path(f"{path}-reserve").exists()
    disk.quota_bytes = None

    full.upkeep.look_around()

    assert Path(f"{path}-reserve").stat().st_size >= RESERVE
