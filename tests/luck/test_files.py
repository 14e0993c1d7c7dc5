"""Attacks on the files around a database: other local users read nothing, block nothing, and no link is followed."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import penstock as ps
from penstock.blobs.folder import BlobFolder
from penstock.model.errors import BadParameter, PenstockError, StoreReplaced, StoreUnavailable
from penstock.moving.files import copy_file
from penstock.moving.tables import CannotMove
from penstock.runtime.events import EngineEvent, WakeUpsFailed, WorkerStarted
from penstock.storage.sqlite.reserve import Reserve
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.material import Desk
from tests.extent import patient
from tests.real_time import in_real_time

BESIDE = ("-turn", "-worker-1", "-history", "-wal", "-shm")
SECRET = b"what nobody else may touch\n" * 100


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "thesis.txt"
    file.write_bytes(SECRET)
    return file


def an_app(path: Path) -> ps.App:
    app = ps.App("shop", database=path)
    app.queue("jobs")
    return app


async def send(app: ps.App, number: int = 1) -> None:
    async with app.unit():
        app.queues["jobs"].send({"n": number})


def is_untouched(file: Path) -> bool:
    return file.read_bytes() == SECRET and file.lstat().st_mode & 0o777 == 0o644


def modes(folder: Path) -> dict[str, int]:
    return {file.name: file.lstat().st_mode & 0o777 for file in folder.iterdir() if file.is_file()}


# -- modes ----------------------------------------------------------------------------------------------------------


@in_real_time
async def test_every_file_of_a_database_and_of_a_backup_is_for_its_owner_alone(path: Path, tmp_path: Path) -> None:
    async with an_app(path) as app:

        @app.queues["jobs"].handler(dict)
        async def handle(_: dict[str, int]) -> None: ...

        await send(app)
        await app.run(until_idle=True)
    async with an_app(path) as app:
        await send(app)
        copy_file(path, tmp_path / "backup.db", skip_tokens=False, progress=lambda *_: None)

        found = modes(tmp_path)

    assert {f"shop.db{each}" for each in ("", "-turn", "-history", "-wal", "-shm", "-reserve")} <= found.keys()
    assert {"backup.db", "backup.db-history"} <= found.keys()
    assert any(name.startswith("shop.db-worker-") for name in found)
    assert set(found.values()) == {0o600}


@in_real_time
async def test_files_of_an_earlier_version_lose_the_rights_of_those_who_may_only_read(path: Path) -> None:
    async with an_app(path) as app:
        await send(app)
    for file in path.parent.iterdir():
        file.chmod(0o644)

    async with an_app(path) as app:
        await send(app)

        assert {mode for name, mode in modes(path.parent).items() if "history" not in name} == {0o600}


@in_real_time
async def test_a_group_that_may_write_keeps_its_rights(path: Path) -> None:
    async with an_app(path) as app:
        await send(app)
    os.chmod(path, 0o664)

    async with an_app(path) as app:
        await send(app)

    assert modes(path.parent)["shop.db"] == 0o660


def test_a_user_who_may_not_write_cannot_open_the_lock_that_writers_queue_at(path: Path) -> None:
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()
    path.parent.chmod(0o755)
    hold = "import fcntl, os, sys; os.setuid(65534); fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)"

    held = subprocess.run(
        [sys.executable, "-c", hold, f"{path}-turn"], capture_output=True, text=True, check=False, timeout=60
    )

    assert "PermissionError" in held.stderr


def test_a_lock_on_the_folder_does_not_stop_the_history(path: Path) -> None:
    """Every user who may list the folder could hold it."""
    held = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    history = SqliteStore(path).open_history()
    try:
        assert history.prune(0, 1) == 0
        assert Path(f"{path}-history").exists()
    finally:
        history.close()
        os.close(held)


# -- links ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", ["", *BESIDE])
@in_real_time
async def test_a_link_in_the_place_of_a_file_is_not_followed(path: Path, precious: Path, beside: str) -> None:
    os.symlink(precious, f"{path}{beside}")
    app, told = an_app(path), list[str]()
    try:
        async with app:
            await send(app)
    except PenstockError as error:
        told.append(str(error))

    assert is_untouched(precious)
    assert all("link" in each for each in told if beside not in ("-wal", "-shm"))


def test_a_link_to_nowhere_makes_no_file_there(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere.db")

    with pytest.raises(StoreUnavailable, match="symbolic link"):
        SqliteStore(path).open_writer(now=1)

    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.parametrize("bytes_kept", [65_536, 100_001, 200_000])
@pytest.mark.parametrize("can_allocate", [True, False])
def test_the_reserve_is_as_large_as_it_says_also_where_the_system_cannot_allocate_a_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, can_allocate: bool, bytes_kept: int
) -> None:
    if not can_allocate:
        monkeypatch.delattr(os, "posix_fallocate")
    reserve, file = Reserve(path, bytes_kept), Path(f"{path}-reserve")

    assert reserve.refill()
    made = file.stat()
    assert made.st_size == bytes_kept
    assert reserve.refill()
    assert file.stat().st_ino == made.st_ino, "a reserve that is large enough was made again"

    reserve.release()
    assert (reserve.released, file.exists()) == (True, False)
    assert reserve.refill()
    assert not reserve.released


def test_the_reserve_takes_the_place_of_a_link_and_leaves_its_target_alone(path: Path, precious: Path) -> None:
    Path(f"{path}-reserve").symlink_to(precious)

    assert Reserve(path, 100_000).refill()

    assert precious.read_bytes() == SECRET
    assert not Path(f"{path}-reserve").is_symlink()


def test_a_backup_replaces_a_link_instead_of_writing_through_it(path: Path, precious: Path, tmp_path: Path) -> None:
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()
    (tmp_path / "copy.db-filling").symlink_to(precious)
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere.db")

    copy_file(path, tmp_path / "copy.db", skip_tokens=False, progress=lambda *_: None)
    copy_file(path, tmp_path / "link.db", skip_tokens=False, progress=lambda *_: None)

    assert precious.read_bytes() == SECRET
    assert not (tmp_path / "nowhere.db").exists()


def test_a_folder_behind_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    Desk(SqliteStore(tmp_path / "link" / "shop.db", reserve_bytes=100_000)).close()

    assert (tmp_path / "real" / "shop.db").exists()


def test_a_backup_names_the_folder_that_is_missing(path: Path, tmp_path: Path) -> None:
    Desk(SqliteStore(path, reserve_bytes=100_000)).close()

    with pytest.raises((StoreUnavailable, CannotMove), match="missing does not exist"):
        copy_file(path, tmp_path / "missing" / "one.db", skip_tokens=False, progress=lambda *_: None)


# -- blobs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["link/secret", "link/deep/secret", "ok/link/secret"])
@in_real_time
async def test_a_folder_of_blobs_follows_no_linked_folder(tmp_path: Path, key: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "blobs"
    (outside / "deep").mkdir(parents=True)
    (root / "ok").mkdir(parents=True)
    for place in (outside, outside / "deep"):
        (place / "secret").write_bytes(SECRET)
    (root / "link").symlink_to(outside)
    (root / "ok" / "link").symlink_to(outside)
    blobs = BlobFolder(root)

    folder = key.rpartition("/")[0] + "/"
    for attempt in (blobs.get(key), blobs.put(key, b"overwritten"), blobs.delete(key), blobs.list(folder)):
        with pytest.raises(BadParameter, match="link"):
            await attempt
    assert await blobs.list() == []

    assert (outside / "secret").read_bytes() == SECRET
    assert (outside / "deep" / "secret").read_bytes() == SECRET


@in_real_time
async def test_blobs_and_their_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    await BlobFolder(tmp_path / "blobs").put("a/b.json", b"{}", content_type="application/json")

    assert set(modes(tmp_path / "blobs" / "a").values()) == {0o600}
    assert (tmp_path / "blobs" / "a").stat().st_mode & 0o777 == 0o700


# -- the folder of the wake-up sockets ------------------------------------------------------------------------------


def a_foreign_folder(base: Path) -> None:
    (base / f"penstock-{os.getuid()}").mkdir()
    os.chown(base / f"penstock-{os.getuid()}", 12_345, 12_345)


def a_file_in_its_place(base: Path) -> None:
    (base / f"penstock-{os.getuid()}").write_text("no folder")


def a_link_in_its_place(base: Path) -> None:
    (base / "other").mkdir()
    (base / f"penstock-{os.getuid()}").symlink_to(base / "other")


def no_folder_at_all(base: Path) -> None:
    base.rmdir()


def a_path_too_long_for_a_socket(base: Path) -> None:
    (base / f"penstock-{os.getuid()}").mkdir()


@pytest.mark.parametrize(
    "prepare",
    [a_foreign_folder, a_file_in_its_place, a_link_in_its_place, no_folder_at_all, a_path_too_long_for_a_socket],
)
@in_real_time
async def test_without_a_runtime_folder_workers_poll_and_one_warning_says_so(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Path], object]
) -> None:
    long = "x" * 100 if prepare is a_path_too_long_for_a_socket else "runtime"
    base = tmp_path / long
    base.mkdir()
    prepare(base)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    app, done, seen = an_app(path), [], list[EngineEvent]()
    app.events.subscribe(seen.append, WakeUpsFailed)

    @app.queues["jobs"].handler(dict)
    async def handle(body: dict[str, int]) -> None:
        done.append(body["n"])

    await send(app)
    await app.run(until_idle=True)

    assert done == [1]
    assert [event.name for event in seen] == ["wakeups.failed"]


# -- the file is taken away -----------------------------------------------------------------------------------------


def deleted(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    Desk(SqliteStore(path.with_name("other.db"), reserve_bytes=100_000)).close()
    os.replace(path.with_name("other.db"), path)


@pytest.mark.parametrize("take_away", [deleted, replaced])
@in_real_time
async def test_no_send_is_acknowledged_once_the_file_is_gone(path: Path, take_away: Callable[[Path], object]) -> None:
    app = an_app(path)
    await send(app, 1)
    take_away(path)

    for number in (2, 3, 4):
        with pytest.raises(StoreReplaced, match="deleted or replaced"):
            await send(app, number)
    await app.close()

    assert ("shop.db" in os.listdir(path.parent)) is (take_away is replaced)


@in_real_time
async def test_the_log_of_a_deleted_database_does_not_get_into_a_restored_one(path: Path, tmp_path: Path) -> None:
    app = an_app(path)
    await send(app, 1)
    copy_file(path, tmp_path / "backup.db", skip_tokens=False, progress=lambda *_: None)
    await send(app, 2)
    deleted(path)
    with pytest.raises(StoreReplaced):
        await send(app, 3)
    await app.close()

    copy_file(tmp_path / "backup.db", path, skip_tokens=True, progress=lambda *_: None)

    assert apsw.Connection(str(path)).execute("select count(*) from penstock_messages").get == 1


@pytest.mark.parametrize("take_away", [deleted, replaced])
@in_real_time
async def test_an_idle_worker_stops_when_the_file_is_gone(path: Path, take_away: Callable[[Path], object]) -> None:
    app = an_app(path)
    app.queues["jobs"].handler(dict)(_nothing)
    await send(app)
    started = asyncio.Event()
    app.events.subscribe(lambda _: started.set(), WorkerStarted)
    running = asyncio.ensure_future(app.run())
    await started.wait()
    take_away(path)

    with pytest.raises(StoreReplaced, match="start again"):
        await asyncio.wait_for(running, patient(60))


async def _nothing(_: dict[str, int]) -> None: ...


def test_penstock_run_ends_with_the_reason_and_makes_no_new_database(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        'import penstock as ps\napp = ps.App("shop")\njobs = app.queue("jobs")\n\n'
        "@jobs.handler(dict)\nasync def handle(body: dict) -> None: ...\n"
    )
    command = [sys.executable, "-m", "penstock", "run", "shop.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        lines = []
        for line in run.stderr:
            lines.append(line)
            if "worker.started" in line:
                while len([*tmp_path.glob("shop.db-worker-*")]) < 2:  # the supervisor's is there too
                    time.sleep(0.01)
                (tmp_path / "shop.db").unlink()
        code = run.wait(patient(60))

    assert code == 3, lines
    assert "deleted or replaced" in "".join(lines)
    assert not (tmp_path / "shop.db").exists()


def test_a_database_of_another_program_without_a_version_is_left_alone(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("create table songs (title text)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreUnavailable, match="another program's"):
        SqliteStore(path).open_writer(now=1)

    assert path.read_bytes() == before
