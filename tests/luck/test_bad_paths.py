"""A database that cannot be used: the error names the path, what is wrong with it and the way out, and changes nothing."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import penstock as ps
from penstock.model.errors import BadConfig, PenstockError, SchemaTooNew, StoreCorrupt, StoreUnavailable
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.contract.material import Desk, message

NOBODY = 65_534


def a_missing_folder(folder: Path) -> Path:
    return folder / "missing" / "shop.db"


def a_folder(folder: Path) -> Path:
    path = folder / "shop.db"
    path.mkdir()
    return path


def a_text_file(folder: Path) -> Path:
    path = folder / "shop.db"
    path.write_text("These are my notes, and nobody may touch them.\n" * 50, encoding="utf-8")
    return path


def a_newer_schema(folder: Path) -> Path:
    path = folder / "shop.db"
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.close()
    return path


def another_programs_database(folder: Path) -> Path:
    path = folder / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute("create table songs (title text); insert into songs values ('one')")
    connection.pragma("user_version", 1)
    connection.close()
    return path


def a_marked_database(folder: Path) -> Path:
    path = folder / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute("create table songs (title text)")
    connection.pragma("application_id", 0x47504B47)
    connection.close()
    return path


def a_cut_off_file(folder: Path) -> Path:
    path = folder / "shop.db"
    desk = Desk(SqliteStore(path, reserve_bytes=100_000))
    desk.send(*(message(bytes(500)) for _ in range(500)))
    desk.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 // 4096 * 4096])
    return path


BAD: list[tuple[Callable[[Path], Path], type[PenstockError], str]] = [
    (a_missing_folder, StoreUnavailable, "make it"),
    (a_folder, StoreUnavailable, "is a folder"),
    (a_text_file, StoreCorrupt, "not a database"),
    (a_newer_schema, SchemaTooNew, "Upgrade"),
    (another_programs_database, StoreUnavailable, "another program"),
    (a_marked_database, StoreUnavailable, "another program"),
    (a_cut_off_file, StoreCorrupt, "restore"),
]


@pytest.mark.parametrize("make, kind, way_out", BAD)
def test_a_database_that_cannot_be_used_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], Path], kind: type[PenstockError], way_out: str
) -> None:
    path = make(tmp_path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(kind) as refused:
        SqliteStore(path, reserve_bytes=100_000).open_writer(now=1)

    assert str(path) in str(refused.value) or str(path.parent) in str(refused.value)
    assert way_out in str(refused.value)
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("make, kind, way_out", BAD)
def test_an_app_says_the_same_and_can_end(
    tmp_path: Path, make: Callable[[Path], Path], kind: type[PenstockError], way_out: str
) -> None:
    path = make(tmp_path)

    async def scenario() -> None:
        app = ps.App("shop", database=path, migrations=tmp_path)
        with pytest.raises(kind, match=way_out):
            await app.run()
        with pytest.raises(kind, match=way_out):
            await app.db.rows("select 1")
        await app.close()

    asyncio.run(scenario())


def test_a_reader_of_a_missing_database_is_refused_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"shop\.db"):
        SqliteStore(tmp_path / "shop.db").open_reader()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b.db", "ümlaut 🎈.db", "what?.db", "100%.db", "a#b.db", "-dash.db", "quote'.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    desk = Desk(SqliteStore(path, reserve_bytes=100_000))
    desk.send(message())
    desk.close()

    assert path.stat().st_size > 0
    assert len(SqliteInspect(path).messages()) == 1


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.touch()

    Desk(SqliteStore(path, reserve_bytes=100_000)).close()

    assert SqliteInspect(path).is_sound()


@pytest.mark.parametrize("value", ["FULL", "sometimes", ""])
def test_an_unknown_setting_is_named_with_those_there_are(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadConfig, match="full, normal, off"):
        SqliteStore(tmp_path / "shop.db", synchronous=value)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    store = ps.App("shop", database="postgresql://somebody:secret@127.0.0.1:1/shop")._store()
    with pytest.raises(StoreUnavailable, match="cannot be reached") as refused:
        store.open_writer(now=1)
    assert "127.0.0.1" in str(refused.value)
    assert "secret" not in str(refused.value)


# -- without the rights ---------------------------------------------------------------------------------------------

OPEN = """
import os, sys
from penstock.model.errors import PenstockError
from penstock.storage.sqlite.store import SqliteStore
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
try:
    SqliteStore(sys.argv[1]).open_writer(now=1).close()
    print("opened")
except PenstockError as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody can look into, which a test's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-rights-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def opened_without_rights(path: Path) -> str:
    """What somebody who may not write there is told."""
    run = subprocess.run(
        [sys.executable, "-c", OPEN, str(path), str(NOBODY)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_a_folder_that_cannot_be_written_is_named(open_folder: Path) -> None:
    path = open_folder / "shop.db"
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()
    open_folder.chmod(0o555)

    told = opened_without_rights(path)

    assert told.startswith("StoreUnavailable")
    assert str(open_folder) in told
    assert "Change its rights" in told


def test_a_file_that_cannot_be_written_is_named(open_folder: Path) -> None:
    path = open_folder / "shop.db"
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()
    path.chmod(0o444)
    open_folder.chmod(0o777)

    told = opened_without_rights(path)

    assert told.startswith("StoreUnavailable")
    assert str(path) in told
    open_folder.chmod(0o755)


@pytest.mark.parametrize("beside", ["", "-turn"])
def test_a_writer_names_the_file_that_it_may_not_write_and_a_reader_needs_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str
) -> None:
    path = tmp_path / "shop.db"
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()
    # The user root, as which tests run in a container, may write everything.
    monkeypatch.setattr(os, "access", lambda file, _mode: str(file) != f"{path}{beside}")

    with pytest.raises(StoreUnavailable, match=re.escape(f"{path}{beside} cannot be written")):
        SqliteStore(path).open_writer(now=1)
    SqliteStore(path).open_reader().close()


# -- a second process -----------------------------------------------------------------------------------------------

SEND = """
import sys
from pathlib import Path
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.material import Desk, message
desk = Desk(SqliteStore(Path(sys.argv[1]), reserve_bytes=100_000))
desk.send(message(b"from the second process", id=bytes(15) + b"!"))
print(desk.me)
desk.close()
"""


def test_a_second_process_may_open_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    desk = Desk(SqliteStore(path, reserve_bytes=100_000))
    desk.send(message(b"from the first"))

    second = subprocess.run(
        [sys.executable, "-c", SEND, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )

    assert int(second.stdout) != desk.me
    assert [delivery.body for delivery in desk.claim()] == [b"from the first", b"from the second process"]
    desk.close()
    check_conservation(SqliteInspect(path))
