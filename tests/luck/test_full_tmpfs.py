"""A disk that is really full: a file system of a few megabytes in memory. It needs the right to mount one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.model.errors import StorageFull
from penstock.storage.sqlite.presence import SqlitePresence
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.contract.material import ORDERS, Desk, message
from tests.extent import patient
from tests.luck.shop import EFFECT, Order, Shop, running

pytestmark = pytest.mark.fault("F14")

SIZE = 4_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    if shutil.which("mount") is None:
        pytest.skip("no small file system can be mounted here: there is no mount")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "penstock-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip() or 'not root'}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def grow(folder: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def fill_up(folder: Path) -> None:
    """A file of somebody else's takes all the space there is."""
    with (folder / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4_096))
        except OSError:
            return


def send_until_full(desk: Desk) -> None:
    for _ in range(1_000):
        desk.send(message(bytes(20_000), queue="backlog"))


def test_the_ledger_on_a_really_full_disk(folder: Path) -> None:
    path = folder / "small.db"
    inspect = SqliteInspect(path)
    with at_a_desk(SqliteStore(path)) as desk:
        desk.send(*(message() for _ in range(200)))
        held = desk.claim(200)
        with pytest.raises(StorageFull, match="full"):
            send_until_full(desk)
        sent = inspect.counted()["backlog"].sent
        assert sent == len(inspect.messages()) - 200
        for delivery in held:
            desk.settle(delivery)
        assert inspect.counted()[ORDERS].acked == 200
        with pytest.raises(StorageFull, match="full"):
            desk.send(message(b"still refused"))
        assert desk.claim(queue="backlog") == []

        grow(folder, 4 * SIZE)

        desk.send(message(b"accepted"))
        assert len(desk.claim(queue="backlog", limit=1_000)) == sent
    check_conservation(inspect)
    assert inspect.is_sound()


def test_an_app_on_a_really_full_disk(folder: Path) -> None:
    path = folder / "small.db"

    async def scenario() -> None:
        shop = Shop(path)
        go_on = asyncio.Event()

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            shop.begin(order)
            await go_on.wait()
            if order.load:
                shop.db.write(EFFECT, what=order.name)

        await shop.place(*(f"order {number}" for number in range(8)))
        async with running(shop):
            await shop.until_begun(8)
            fill_up(folder)
            with pytest.raises(StorageFull, match="full"):
                await shop.place(*(f"refused {number}" for number in range(15)), load="x" * 200_000)
            go_on.set()
            await shop.until_done(8)
            with pytest.raises(StorageFull, match="full"):
                await shop.place("refused")

            (folder / "ballast").unlink()

            await place_when_possible(shop, "accepted")
            await shop.until_done(9)
        assert len(shop.begun) == 9

    asyncio.run(scenario())
    check_conservation(SqliteInspect(path))


async def place_when_possible(shop: Shop, name: str) -> None:
    for _ in range(100):
        try:
            await shop.place(name, load="x")
            return
        except StorageFull:
            await asyncio.sleep(0.05)
    raise AssertionError("it does not resume by itself")


MARK_ALL_HANDLERS = """
import sys
from pathlib import Path
from penstock.storage.sqlite.presence import SqlitePresence
presence = SqlitePresence(Path(sys.argv[1]), 1)
print("open", flush=True)
sys.stdin.readline()
for cell in range(8, len(presence.cells)):
    presence.cells[cell] = 1
print("alive", flush=True)
"""


def test_a_full_disk_does_not_kill_a_worker_that_notes_a_running_handler(folder: Path) -> None:
    """The list is memory over a file: a page of it that has no space of its own on the disk would be a fatal signal."""
    child = subprocess.Popen(
        [sys.executable, "-c", MARK_ALL_HANDLERS, str(folder / "small.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    fill_up(folder)

    answer, _ = child.communicate("go on\n", timeout=patient(30))

    assert (answer, child.returncode) == ("alive\n", 0)


def test_a_worker_that_finds_no_space_for_its_list_says_so(folder: Path) -> None:
    with at_a_desk(SqliteStore(folder / "small.db")):
        pass
    fill_up(folder)

    with pytest.raises(StorageFull, match="cannot start"):
        SqlitePresence(folder / "small.db", 1)

    assert not (folder / "small.db-worker-1").exists()
