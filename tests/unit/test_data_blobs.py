"""Blobs: bytes under safe keys, whole or not at all."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

import penstock as ps
from penstock.blobs.folder import BlobFolder
from penstock.model.errors import BadParameter


def test_what_was_put_can_be_read_listed_replaced_and_deleted(tmp_path: Path) -> None:
    blobs = BlobFolder(tmp_path / "not" / "there" / "yet")

    async def work() -> None:
        assert await blobs.get("apps/1.json") is None
        assert await blobs.list() == []
        await blobs.put("apps/2.json", b"two")
        await blobs.put("apps/1.json", b"one")
        await blobs.put("pages/1.html", b"")
        assert await blobs.list() == ["apps/1.json", "apps/2.json", "pages/1.html"]
        assert await blobs.list("apps/") == ["apps/1.json", "apps/2.json"]
        assert await blobs.list("apps/2") == ["apps/2.json"]
        assert await blobs.list(limit=1) == ["apps/1.json"]
        await blobs.put("apps/1.json", b"another")
        assert await blobs.get("apps/1.json") == b"another"
        await blobs.delete("apps/1.json")
        await blobs.delete("apps/1.json")
        assert await blobs.get("apps/1.json") is None
        assert await blobs.get("apps") is None

    asyncio.run(work())


@pytest.mark.fault("F47")
@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../up", "a/../b", "a//b", "a/", ".hidden", "a/.part-x", "a\0b", "a\nb", "a b", "ä", "x" * 901],
)
def test_a_key_that_could_lead_astray_is_refused(tmp_path: Path, key: str) -> None:
    blobs = BlobFolder(tmp_path)

    async def work() -> None:
        for call in (blobs.get(key), blobs.put(key, b""), blobs.delete(key)):
            with pytest.raises(BadParameter, match="cannot be the key of a blob"):
                await call

    asyncio.run(work())


@pytest.mark.fault("F47")
def test_a_prefix_cannot_climb_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")

    async def work() -> None:
        with pytest.raises(BadParameter):
            await BlobFolder(tmp_path / "blobs").list("../")

    asyncio.run(work())


@pytest.mark.fault("F47")
def test_a_link_in_the_place_of_a_blob_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "innocent").symlink_to(tmp_path / "secret.txt")
    blobs = BlobFolder(tmp_path / "blobs")

    async def work() -> None:
        for call in (blobs.get("innocent"), blobs.read("innocent")):
            with pytest.raises(BadParameter, match="is a symbolic link"):
                await call
        await blobs.put("innocent", b"mine")
        assert await blobs.get("innocent") == b"mine"

    asyncio.run(work())
    assert (tmp_path / "secret.txt").read_text() == "secret"


def test_a_key_below_another_blob_is_refused(tmp_path: Path) -> None:
    blobs = BlobFolder(tmp_path)

    async def work() -> None:
        await blobs.put("apps", b"")
        with pytest.raises(BadParameter, match="is already a blob"):
            await blobs.put("apps/1", b"")

    asyncio.run(work())


def test_a_full_disk_leaves_the_old_blob_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = BlobFolder(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def work() -> None:
        await blobs.put("apps.json", b"old")
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(ps.StorageFull, match=r"is full; apps\.json was not saved"):
                await blobs.put("apps.json", b"new")
        assert await blobs.get("apps.json") == b"old"

    asyncio.run(work())

    assert [path.name for path in tmp_path.iterdir()] == ["apps.json"]


def test_the_bytes_and_the_name_are_on_the_disk_before_put_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        order.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def renamed(source: str, target: str, **folders: int) -> None:
        order.append("rename")
        replace(source, target, **folders)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)

    asyncio.run(BlobFolder(tmp_path).put("a", b"content"))

    assert order == ["file", "rename", "folder"]
