"""The disk that tests are run on does what it is told, and is an ordinary disk otherwise: each trick can be seen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

from tests.disk import Disk, Operation, flip_byte

WRITE_FROM_OUTSIDE = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(0)
try:
    connection.execute("begin immediate; insert into t values (99); commit")
    print("written")
except apsw.BusyError:
    print("busy")
"""


def opened(disk: Disk, path: Path, synchronous: str = "full") -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=disk.name)
    connection.execute("pragma journal_mode = wal").fetchall()
    connection.pragma("synchronous", synchronous)
    connection.execute("pragma wal_autocheckpoint = 0").fetchall()
    connection.execute("create table if not exists t (x)")
    return connection


def values(connection: apsw.Connection) -> list[object]:
    return [x for (x,) in connection.execute("select x from t order by rowid").fetchall()]


def fill(connection: apsw.Connection, times: int = 100) -> None:
    for _ in range(times):
        connection.execute("insert into t values (zeroblob(20000))")


def write_from_outside(path: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", WRITE_FROM_OUTSIDE, str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()


# -- an ordinary disk -------------------------------------------------------------------------------------------------


def test_locks_and_shared_memory_work_between_connections_and_processes(disk: Disk, path: Path) -> None:
    one, two = opened(disk, path), opened(disk, path)
    two.set_busy_timeout(0)
    one.execute("begin immediate; insert into t values (1)")

    with pytest.raises(apsw.BusyError):
        two.execute("begin immediate")
    assert write_from_outside(path) == "busy"
    assert values(two) == []
    one.execute("commit")
    assert write_from_outside(path) == "written"

    assert values(two) == values(one) == [1, 99]
    two.close()
    one.close()


def test_a_file_written_through_it_is_an_ordinary_file(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    connection.execute("insert into t values ('kept')")
    connection.close()

    plain = apsw.Connection(str(path))
    assert values(plain) == ["kept"]
    assert plain.execute("pragma integrity_check").fetchall() == [("ok",)]
    plain.close()
    assert not Path(f"{path}-wal").exists()


def test_several_disks_are_independent(path: Path) -> None:
    good, bad = Disk(), Disk()
    bad.fail("sync", times=1_000)
    connection = opened(good, path)
    connection.execute("insert into t values (1)")
    assert values(connection) == [1]
    connection.close()


# -- space ------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F14")
def test_beyond_the_quota_a_write_is_refused_and_below_it_goes_on(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    disk.quota_bytes = disk.used_bytes() + 200_000
    with pytest.raises(apsw.FullError):
        fill(connection)
    stored = len(values(connection))
    assert 3 < stored < 10
    assert disk.used_bytes() <= disk.quota_bytes

    disk.quota_bytes += 100_000
    connection.execute("insert into t values (zeroblob(20000))")
    assert len(values(connection)) == stored + 1
    disk.quota_bytes = None
    connection.close()


def test_the_reserve_beside_the_database_takes_up_space(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    reserve = Path(f"{path}-reserve")
    reserve.write_bytes(bytes(100_000))
    disk.quota_bytes = disk.used_bytes() + 10_000
    assert disk.free_bytes(path.parent) == 10_000
    with pytest.raises(apsw.FullError):
        connection.execute("insert into t values (zeroblob(50000))")

    reserve.unlink()

    assert disk.free_bytes(path.parent) >= 110_000 - 60_000
    connection.execute("insert into t values (zeroblob(1000))")
    connection.close()


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F15")
@pytest.mark.parametrize("operation, code", [("sync", 1034), ("write", 778)])
def test_the_nth_operation_fails_and_the_next_does_not(disk: Disk, path: Path, operation: Operation, code: int) -> None:
    connection = opened(disk, path)
    connection.execute("insert into t values (1)")
    disk.fail(operation, on="-wal")
    with pytest.raises(apsw.IOError) as error:
        connection.execute("insert into t values (2)")
    assert getattr(error.value, "extendedresult", None) == code

    connection.execute("insert into t values (3)")

    assert values(connection) == [1, 3]
    connection.close()


def test_only_the_file_that_was_named_fails(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    disk.fail("sync", on="luck.db", times=1_000)
    connection.execute("insert into t values (1)")

    with pytest.raises(apsw.IOError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)

    disk.heal()
    connection.close()


def test_an_operation_can_be_done_and_still_answer_with_an_error(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    disk.fail("truncate", on="-wal", done=True)
    connection.execute("insert into t values (1)")
    with pytest.raises(apsw.IOError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    assert Path(f"{path}-wal").stat().st_size == 0
    connection.close()


def test_a_read_can_fail(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    connection.execute("insert into t values (1)")
    disk.fail("read", times=1_000)

    with pytest.raises(apsw.IOError):
        apsw.Connection(str(path), vfs=disk.name)

    disk.heal()
    assert values(connection) == [1]
    connection.close()


# -- power ------------------------------------------------------------------------------------------------------------


def cut(disk: Disk, *connections: apsw.Connection, random: Random | None = None) -> None:
    disk.cut_power()
    for connection in connections:
        try:
            connection.close(True)
        except apsw.Error:
            connection.close(True)
    disk.power_on(random)


@pytest.mark.fault("F13")
@pytest.mark.parametrize("synchronous, honest, left", [("full", True, [1, 2]), ("off", True, []), ("full", False, [])])
def test_only_what_was_synced_is_left_after_a_cut(path: Path, synchronous: str, honest: bool, left: list[int]) -> None:
    disk = Disk(forgetful=True, honest=honest)
    connection = opened(disk, path)
    connection.close()
    connection = opened(disk, path, synchronous)
    connection.execute("insert into t values (1)")
    connection.execute("insert into t values (2)")

    cut(disk, connection)

    connection = opened(disk, path)
    assert values(connection) == left if honest else not path.stat().st_size or values(connection) == left
    connection.close()


def test_in_the_dark_nothing_answers(path: Path) -> None:
    disk = Disk(forgetful=True)
    connection = opened(disk, path)
    disk.cut_power(after=2)
    with pytest.raises(apsw.Error):
        fill(connection)
    with pytest.raises(apsw.Error):
        apsw.Connection(str(path), vfs=disk.name)

    cut(disk, connection)

    connection = opened(disk, path)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_disk_that_keeps_no_account_cannot_lose_anything(disk: Disk) -> None:
    with pytest.raises(AssertionError, match="forgetful"):
        disk.cut_power()


def test_some_of_the_unsynced_may_survive_and_the_same_seed_loses_the_same(tmp_path: Path, seed: int) -> None:
    def run(path: Path) -> bytes:
        disk = Disk(forgetful=True)
        connection = opened(disk, path, "off")
        for number in range(20):
            connection.execute("insert into t values (?)", (number,))
        cut(disk, connection, random=Random(seed))
        return Path(f"{path}-wal").read_bytes()

    one, two = run(tmp_path / "one.db"), run(tmp_path / "two.db")

    assert len(one) == len(two)
    assert any(one), "nothing survived at all"


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F16")
def test_one_byte_is_flipped_and_can_be_put_back(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)))

    damage = flip_byte(file, Random(seed))

    content = file.read_bytes()
    assert [at for at in range(256) if content[at] != at] == [damage.offset]
    assert (damage.before, damage.after) == (damage.offset, content[damage.offset])
    damage.undo()
    assert file.read_bytes() == bytes(range(256))


def test_the_disk_counts_what_was_done(disk: Disk, path: Path) -> None:
    connection = opened(disk, path)
    before = disk.done.copy()

    connection.execute("insert into t values (1)")

    done: Callable[[Operation], int] = lambda operation: disk.done[operation] - before[operation]  # noqa: E731
    assert (done("sync"), done("truncate")) == (1, 0)
    assert done("write") >= 2
    connection.close()
