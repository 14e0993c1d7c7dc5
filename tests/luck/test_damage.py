"""A damaged file: one byte is wrong, and either a start says so, or the message is set apart, or nothing is amiss. A wrong
body never reaches a handler."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from penstock.contracts.ledger import Chores
from penstock.model.errors import PenstockError, StoreCorrupt, StoreError
from penstock.model.message import checksum
from penstock.runtime.groups import CommitGroup, commit_group
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.inspection import SqliteInspect
from tests.contract.material import T0, Desk, message, rules, want
from tests.disk import Damage, flip_byte
from tests.luck.shop import Order, Shop, running

pytestmark = pytest.mark.fault("F16")

FLIPS = 150
MESSAGES = 120
RESERVE = 100_000
WAYS_OUT = ("restore", "Upgrade")  # what a refusal has to say


class Original:
    """A database with messages, half of them in the file and half in its log, as a killed process leaves it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "original.db"
        self.bodies: dict[bytes, bytes] = {}
        desk = Desk(SqliteStore(path, synchronous="off", reserve_bytes=4_000_000))
        desk.open_shop()
        desk.workers.register_queues([rules()])
        sent = [message(b'{"name": "%d", "load": "%s"}' % (n, b"abc" * (n % 50))) for n in range(MESSAGES)]
        desk.send(*sent[: MESSAGES // 2])
        desk.close()
        desk = Desk(SqliteStore(path, synchronous="off", reserve_bytes=4_000_000))
        for each in sent[MESSAGES // 2 :]:
            desk.send(each)
        self.files = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}
        desk.close()
        self.bodies = {each.id: each.body for each in sent}

    def copy(self, folder: Path) -> Path:
        folder.mkdir()
        for suffix, content in self.files.items():
            (folder / f"copy.db{suffix}").write_bytes(content)
        return folder / "copy.db"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(tmp_path_factory.mktemp("original"))


def outcome_of(path: Path, original: Original) -> str:
    """Starts on the damaged file and takes every message there is; what a handler would get must be what was sent."""
    try:
        desk = Desk(SqliteStore(path, synchronous="off", reserve_bytes=RESERVE))
    except PenstockError as error:
        return refused(error, path)
    try:
        result = commit_group(desk.ledger, CommitGroup([], [want(limit=1_000)], Chores(sweep=True), now=T0))
    finally:
        desk.close()
    if result.trouble is not None:
        return refused(result.trouble, path)
    good = [each for each in result.commits[-1].claimed if each.checksum == checksum(each.id, each.body)]
    for delivery in good:
        assert original.bodies.get(delivery.id) == delivery.body, "a wrong body would have been delivered"
    if len(good) < len(result.commits[-1].claimed):
        return "set apart"
    return "works" if len(good) == MESSAGES else "works without the end of the log"


def refused(error: Exception, path: Path) -> str:
    assert isinstance(error, PenstockError), f"not a clear word: {error!r}"
    assert path.name in str(error)
    assert any(way in str(error) for way in WAYS_OUT), str(error)
    return "refused"


def test_one_wrong_byte_anywhere_is_reported_set_apart_or_harmless(
    tmp_path: Path, original: Original, seed: int, note: Callable[[str], None]
) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(FLIPS):
        random = Random(f"{seed} {number}")
        path = original.copy(tmp_path / str(number))
        damage = flip_byte(Path(f"{path}{random.choice(['', '-wal'])}"), random)
        try:
            outcomes[outcome_of(path, original)] += 1
        except Exception as error:
            raise AssertionError(f"after {damage}") from error
        shutil.rmtree(path.parent)

    assert outcomes["refused"] + outcomes["set apart"] > 0, "nothing was ever noticed"
    note(f"F16: {FLIPS} flipped bytes: " + ", ".join(f"{count} {what}" for what, count in outcomes.most_common()))


def test_without_damage_everything_works(tmp_path: Path, original: Original) -> None:
    """The control."""
    assert outcome_of(original.copy(tmp_path / "copy"), original) == "works"


def damage_at(path: Path, what: bytes, offset: int = 0) -> Damage:
    """Flips a byte of the last place where these bytes stand."""
    content = path.read_bytes()
    at = content.rindex(what) + offset
    path.write_bytes(content[:at] + bytes((content[at] ^ 0x9A,)) + content[at + 1 :])
    return Damage(path, at, content[at], content[at] ^ 0x9A)


def test_a_damaged_text_of_the_engine_is_a_clear_refusal(tmp_path: Path, original: Original) -> None:
    path = original.copy(tmp_path / "copy")
    Path(f"{path}-wal").unlink()
    damage_at(path, b"order.placed", 3)

    assert outcome_of(path, original) == "refused"


def test_a_damaged_schema_is_the_files_fault_alone(tmp_path: Path, original: Original) -> None:
    path = original.copy(tmp_path / "copy")
    Path(f"{path}-wal").unlink()
    damage_at(path, b"causation_id blob,\n  hops", 2)
    desk_or_error: Desk | Exception
    try:
        desk_or_error = Desk(SqliteStore(path, synchronous="off", reserve_bytes=RESERVE))
    except StoreError as error:
        desk_or_error = error
    if isinstance(desk_or_error, Desk):
        with pytest.raises(StoreCorrupt, match="restore"):
            desk_or_error.send(message())
        desk_or_error.close()


def test_a_damaged_body_never_reaches_a_handler(path: Path) -> None:
    seen: list[str] = []

    def shop_on(path: Path) -> Shop:
        shop = Shop(path)

        @shop.orders.handler(Order)
        async def handle(order: Order) -> None:
            seen.append(order.name)

        return shop

    async def place() -> None:
        async with shop_on(path) as shop:
            assert isinstance(shop, Shop)
            await shop.place("good", "bad-0123456789", "fine")

    async def work() -> None:
        shop = shop_on(path)
        async with running(shop):
            await shop.until(lambda: len(seen) == 2 and bool(SqliteInspect(path).dead()))

    asyncio.run(place())
    damage_at(path, b"bad-0123456789", 7)
    asyncio.run(work())

    assert sorted(seen) == ["fine", "good"]
    (letter,) = SqliteInspect(path).dead()
    assert (letter.reason, letter.error_class, letter.attempts) == ("corrupt", "DamagedBody", 0)
    assert "not delivered" in str(letter.error_message)
