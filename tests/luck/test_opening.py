"""An app whose disk fails while it is opened says so, and leaves no thread, lock or file open behind."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import apsw
import pytest

from penstock.model.errors import StoreError, StoreUnavailable
from penstock.storage.sqlite import connection as opening
from tests.disk import Disk, Operation
from tests.luck.shop import Shop

pytestmark = pytest.mark.fault("F15")


def threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("penstock-")}


def files_open(folder: Path) -> list[str]:
    """What this process holds open there."""
    held = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return [os.readlink(each) for each in held if each.exists() and os.readlink(each).startswith(str(folder))]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not list the files that are open")
@pytest.mark.parametrize("failing", ["read", "write", "sync"])
def test_an_app_that_cannot_be_opened_leaves_nothing_open(disk: Disk, path: Path, failing: Operation) -> None:
    async def scenario() -> int:
        shop = Shop(path, disk)
        async with shop:
            await shop.place("first")
        failed, before = 0, threads()
        for nth in count(1):
            shop = Shop(path, disk)
            disk.fail(failing, nth=nth)
            with suppress(StoreError):
                await shop._open()
            came = not disk._faults
            disk.heal()
            if shop._life.engine is None:
                failed += 1
            else:
                await shop.close()
            assert threads() == before, f"{failing} {nth}"
            assert files_open(path.parent) == [], f"{failing} {nth}"
            if not came:
                break
        return failed

    assert asyncio.run(scenario()) >= 1


@pytest.mark.fault("F18")
@pytest.mark.parametrize("refused, opens", [(3, True), (opening.WAL_TRIES, False)])
def test_of_several_that_open_a_new_file_at_once_none_gives_up(
    path: Path, monkeypatch: pytest.MonkeyPatch, refused: int, opens: bool
) -> None:
    left = [refused]

    class Contended(apsw.Connection):
        def execute(self, statements: str, *given: object, **named: object) -> apsw.Cursor:
            if "journal_mode = wal" in statements and left[0]:
                left[0] -= 1
                raise apsw.BusyError("database is locked")
            return super().execute(statements, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(apsw, "Connection", Contended)
    monkeypatch.setattr(time, "sleep", lambda _: None)

    if opens:
        opening.disconnect(opening.connect(path, synchronous="full", vfs=None))
    else:
        with pytest.raises(StoreUnavailable, match="locked by another program"):
            opening.connect(path, synchronous="full", vfs=None)


def test_who_only_reads_a_file_can_open_it_before_it_has_a_log(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    apsw.Connection(str(path)).execute("create table effects (what text); insert into effects values ('first')")
    reader = opening.connect(path, synchronous="full", vfs=None, read_only=True)
    assert reader.execute("select what from effects").fetchall() == [("first",)]
    opening.disconnect(reader)


@pytest.mark.fault("F18")
def test_who_opens_a_file_while_another_makes_it_sees_no_strange_program_in_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    other = apsw.Connection(str(path))

    class Looking:
        """The other one commits both marks after the first look."""

        def pragma(self, name: str) -> object:
            found = other.pragma(name)
            other.execute(f"begin; pragma user_version = 3; pragma application_id = {opening.APPLICATION_ID}; commit")
            return found

    opening._refuse_others(Looking(), path)  # type: ignore[arg-type]
    other.close()
