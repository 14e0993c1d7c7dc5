"""A reader that holds a snapshot: writers go on beside it, and the log it kept from being reused is cut afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from penstock.storage.sqlite.session import LOG_BYTES_KEPT
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.contract.material import Desk, message
from tests.extent import patient

pytestmark = pytest.mark.fault("F17")

COMMITS = 75  # of a megabyte each


@pytest.fixture
def desk(path: Path) -> Iterator[Desk]:
    with at_a_desk(SqliteStore(path, synchronous="off")) as desk:
        yield desk


class Holder:
    """Somebody who begins to read and forgets to end it."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))

    def begin(self) -> int:
        self._connection.execute("begin")
        return self.count()

    def count(self) -> int:
        ((found,),) = self._connection.execute("select count(*) from penstock_messages").fetchall()
        assert isinstance(found, int)
        return found

    def end(self) -> None:
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def holder(desk: Desk, path: Path) -> Iterator[Holder]:
    holder = Holder(path)
    yield holder
    holder.close()


def log_bytes(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def test_the_log_is_cut_once_the_reader_has_left(
    desk: Desk, holder: Holder, path: Path, inspect: SqliteInspect, note: Callable[[str], None]
) -> None:
    seen = holder.begin()
    for number in range(COMMITS):
        desk.send(message(bytes(1_000_000), due=desk.now + number))
        if number % 20 == 0:
            desk.upkeep.look_around()
    grown = log_bytes(path)
    assert grown > LOG_BYTES_KEPT
    assert holder.count() == seen, "the reader sees what it saw"

    holder.end()
    desk.upkeep.look_around()

    assert log_bytes(path) <= LOG_BYTES_KEPT
    assert len(inspect.messages()) == COMMITS
    check_conservation(inspect)
    note(f"F17: the log grew to {grown // 1_000_000} MB beside a reader and is {log_bytes(path)} bytes after it left")


def test_a_reader_of_the_latest_state_delays_no_writer(desk: Desk, holder: Holder, path: Path) -> None:
    """The log could be cut but for this one reader. Waiting for it would keep every writer of every process waiting."""
    holder.begin()
    for _ in range(COMMITS):
        desk.send(message(bytes(1_000_000)))
    holder.end()
    holder.begin()
    began = time.monotonic()

    desk.upkeep.look_around()
    desk.send(message(b"at once"))

    assert time.monotonic() - began < patient(5.0)
    holder.end()
    desk.upkeep.look_around()
    assert log_bytes(path) <= LOG_BYTES_KEPT


def test_without_a_reader_the_log_stays_small(desk: Desk, path: Path) -> None:
    for _ in range(COMMITS):
        desk.send(message(bytes(1_000_000)))

    assert log_bytes(path) < LOG_BYTES_KEPT / 2
