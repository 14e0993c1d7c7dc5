"""Archives: a row is deleted only once it is in a file, and is in one file only, whatever happens in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.blobs.folder import BlobFolder
from penstock.model.errors import BadParameter, StoreCorrupt
from tests.extent import sampled
from tests.unit.market import add, market, python, run

BOTH_STORES = True


def archived(folder: Path) -> list[dict[str, Any]]:
    """Every line of every finished file."""
    files = sorted(folder.glob("apps/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


async def old_and_new(app: ps.App, old: int, new: int = 0) -> None:
    ages = [await app.db.ago("91d")] * old + [await app.db.ago("89d")] * new
    await add(app, *[{"id": id, "title": f"App {id}", "seen_at": age} for id, age in enumerate(ages)])


@pytest.mark.spec("A8-19")
def test_rows_unseen_for_90_days_are_moved_to_json_and_found_again_when_rediscovered(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        db = app.db
        await old_and_new(app, old=7, new=2)

        moved = await db.archive(
            "apps", column="seen_at", older_than="90d", key="id", into=tmp_path / "archive", chunk=3
        )

        assert moved == 7
        assert await db.column("select id from apps order by id") == [7, 8]
        lines = sorted(archived(tmp_path / "archive"), key=lambda line: int(line["id"]))
        assert [line["id"] for line in lines] == list(range(7))
        assert lines[0] == {
            "id": 0,
            "title": "App 0",
            "price": None,
            "icon": None,
            "facts": None,
            "seen_at": lines[6]["seen_at"],
            "description": None,
        }
        async with app.unit():
            rediscovered = db.insert_many("apps", [{"id": 3, "title": "App 3", "seen_at": await db.now()}])
        assert rediscovered.changes == 1

    run(app, work())


class Dies(BlobFolder):
    """A folder whose process dies at the n-th call."""

    def __init__(self, path: Path, at: int) -> None:
        super().__init__(path)
        self.left = at

    def _tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    async def put(self, key: str, content: bytes, **options: Any) -> None:
        self._tick()
        await super().put(key, content, **options)

    async def get(self, key: str) -> bytes | None:
        self._tick()
        return await super().get(key)

    async def delete(self, key: str) -> None:
        self._tick()
        await super().delete(key)


@pytest.mark.fault("F19")
@pytest.mark.spec("A8-19")
@pytest.mark.parametrize("at", range(1, 13))
def test_an_interrupted_archive_is_finished_by_the_next_without_loss_or_double(tmp_path: Path, at: int) -> None:
    app = market(tmp_path)
    folder = tmp_path / "archive"

    async def moved(into: BlobFolder) -> int:
        return await app.db.archive("apps", column="seen_at", older_than="90d", key="id", into=into, chunk=4)

    async def work() -> None:
        await old_and_new(app, old=10)
        with pytest.raises(KeyboardInterrupt):
            await moved(Dies(folder, at))
        # The chunks are others now: a re-run that began anew would put some rows into two files.
        await add(app, {"id": -1, "seen_at": await app.db.ago("92d")})
        await moved(BlobFolder(folder))
        assert await app.db.count("apps") == 0

    run(app, work())

    assert Counter(line["id"] for line in archived(folder)) == Counter([*range(10), -1])
    assert not list(folder.glob("apps/pending/*"))


KILLED = """
import asyncio, os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from penstock.runtime.crashpoints import faults_from_environment
from penstock.runtime.surroundings import Surroundings
from tests.unit.market import market
from tests.unit.test_data_archive import old_and_new

async def main():
    app = market(Path("."))
    await app._open(Surroundings(faults=faults_from_environment(os.environ)))
    await app.db.archive("apps", column="seen_at", older_than="90d", key="id", into="archive", chunk=4)

asyncio.run(main())
"""


@pytest.mark.fault("F19")
@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-19")
@sampled("nth", [1, 2, 3], every=3)
@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
def test_a_killed_archive_leaves_rows_or_files_or_both(tmp_path: Path, point: str, nth: int) -> None:
    app = market(tmp_path)
    root = str(Path(__file__).parents[2])
    run(app, old_and_new(app, old=10))

    killed = python(KILLED.format(root=root), tmp_path, check=False, PENSTOCK_CRASH_AT=f"{point}=kill@{nth}")
    assert killed.returncode == -9, killed.stderr

    async def again() -> int:
        return await app.db.archive(
            "apps", column="seen_at", older_than="90d", key="id", into=tmp_path / "archive", chunk=4
        )

    run(app, again())
    assert Counter(line["id"] for line in archived(tmp_path / "archive")) == Counter(range(10))


def test_a_row_that_changed_meanwhile_stays(tmp_path: Path) -> None:
    app = market(tmp_path)

    class SeenAgain(BlobFolder):
        """Somebody finds an app again while its line is being written."""

        async def put(self, key: str, content: bytes, **options: Any) -> None:
            await super().put(key, content, **options)
            async with app.unit():
                app.db.write("update apps set seen_at = :now where id = 2", now=await app.db.now())

    async def work() -> None:
        await old_and_new(app, old=4)
        into = SeenAgain(tmp_path / "archive")
        assert await app.db.archive("apps", column="seen_at", older_than="90d", key="id", into=into) == 3
        assert await app.db.column("select id from apps") == [2]

    run(app, work())


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    "value",
    [b"\x00\xff", 1.5, float("inf"), -(2**63), 2**63 - 1, "line\nbreak \u2028 \x1b[31m", "", "🇩🇪", None],
    ids=repr,
)
def test_every_value_comes_back_from_the_file_as_it_was(tmp_path: Path, value: object) -> None:
    app = market(tmp_path, "create table apps (id integer primary key, value any, seen_at text)")
    infinity = value == float("inf")

    async def work() -> None:
        db = app.db
        sql = "insert into apps (id, value, seen_at) values (1, 9e999, :at)"
        if infinity:
            async with app.unit():
                db.write(sql, at=await db.ago("91d"))
        else:
            await add(app, {"id": 1, "value": value, "seen_at": await db.ago("91d")})
        # Only an unchanged row is deleted, so a value that came back differently would keep it here.
        assert await db.archive("apps", column="seen_at", older_than="90d", key="id", into=tmp_path / "archive") == 1

    run(app, work())


def test_rows_too_large_for_one_commit_are_deleted_in_several(tmp_path: Path) -> None:
    app = market(tmp_path)

    async def work() -> None:
        db = app.db
        for id in range(8):
            await add(app, {"id": id, "icon": b"x" * 900_000, "seen_at": await db.ago("91d")})
        assert await db.archive("apps", column="seen_at", older_than="90d", key="id", into=tmp_path / "archive") == 8

    run(app, work())


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    "key, why", [("title", "is NULL in some rows"), ("nothing", "has no column"), ([], "is empty")]
)
def test_a_key_that_does_not_tell_rows_apart_is_refused(tmp_path: Path, key: str | Sequence[str], why: str) -> None:
    app = market(tmp_path)

    async def work() -> None:
        await add(app, {"id": 1, "seen_at": await app.db.ago("91d")})
        with pytest.raises(BadParameter, match=why):
            await app.db.archive("apps", column="seen_at", older_than="90d", key=key, into=tmp_path / "archive")
        assert await app.db.count("apps") == 1

    run(app, work())


@pytest.mark.fault("F16")
def test_a_damaged_file_deletes_nothing(tmp_path: Path) -> None:
    app = market(tmp_path)
    pending = tmp_path / "archive" / "apps" / "pending" / "2026-01-01-abc.jsonl"
    pending.parent.mkdir(parents=True)
    pending.write_bytes(b'{"id": 0, "ti')

    async def work() -> None:
        await old_and_new(app, old=1)
        with pytest.raises(StoreCorrupt, match="no row was deleted"):
            await app.db.archive("apps", column="seen_at", older_than="90d", key="id", into=tmp_path / "archive")
        assert await app.db.count("apps") == 1

    run(app, work())
