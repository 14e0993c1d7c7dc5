"""A folder of blobs: what was put is on the disk, whole, before `put` returns, and a crash leaves the old or the new."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from penstock.blobs.attributes import Attributes, Blob, about, attributes_of, etag_of, noted
from penstock.blobs.lifecycle import EXPIRED_MAX, Expiry
from penstock.contracts.clock import Clock
from penstock.model.errors import BadParameter, StorageFull
from penstock.model.times import MICROS

# No part begins with a dot: `..` cannot climb out, and what is being written (`.part-...`) is never taken for a blob.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=@+,-]{0,199}")
_KEY_CHARACTERS_MAX = 900  # with the folder's own path still below the 1,024 of the tightest system
LISTED_MAX = 1_000
_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class BlobFolder:
    """Bytes under keys such as `apps/2026-11-15/17.json`, each a file.

    With a clock, a blob's age is measured on it, and `expire` removes what its prefix says is too old. What is not durable
    may be lost, or be damaged, when the power goes: good enough for what can be fetched again.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        expiries: Sequence[Expiry] = (),
        durable: bool = True,
        on_read: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_read` is told of every blob that is asked for."""
        self.path = Path(path)
        self._on_read = on_read
        self._durable = durable
        self.expiries = tuple(expiries)
        self._clock = clock

    async def put(
        self, key: str, content: bytes, *, content_type: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Saves the content under the key, in place of what was there."""
        file, attributes = self._file(key), attributes_of(content_type, metadata)
        await asyncio.to_thread(self._put, file, content, attributes)

    async def get(self, key: str) -> bytes | None:
        """The content, or None where there is none."""
        self._on_read()
        return await asyncio.to_thread(_read, self._file(key))

    async def read(self, key: str) -> Blob | None:
        """The content with all that is known about it."""
        self._on_read()
        return await asyncio.to_thread(_blob, key, self._file(key))

    async def expire(self, *, limit: int = EXPIRED_MAX) -> int:
        """Removes at most so many blobs that are older than their prefix allows, and says how many."""
        return await asyncio.to_thread(self._expire, limit)

    async def list(self, prefix: str = "", *, limit: int = LISTED_MAX) -> Sequence[str]:
        """The first keys that begin with the prefix, in order."""
        return await asyncio.to_thread(self._list, prefix, limit)

    async def delete(self, key: str) -> None:
        """Removes a blob. One that is not there is no error."""
        await asyncio.to_thread(self._delete, self._file(key))

    def _file(self, key: str) -> Path:
        if len(key) > _KEY_CHARACTERS_MAX or not all(_PART.fullmatch(part) for part in key.split("/")):
            raise BadParameter(
                f"{key[:100]!r} cannot be the key of a blob. Use letters, digits and ._=@+,- in parts joined by '/', "
                f"none of which begins with a dot; at most {_KEY_CHARACTERS_MAX} characters.",
                key=key,
            )
        return self.path / key

    def _put(self, file: Path, content: bytes, attributes: Attributes) -> None:
        try:
            _make(file.parent, durable=self._durable)
            # First what is known about the content, under the content's own etag: whichever content is there after a
            # crash, what is told about it is its own.
            if (note := noted(about(file), etag_of(content), attributes)) is not None:
                self._write(about(file), note)
            self._write(file, content)
            if self._durable:
                _sync(file.parent)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            raise BadParameter(
                f"{file} cannot be written: one part of its path is a blob already. Use another key.", key=str(file)
            ) from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull(f"The disk that holds {self.path} is full; {file.name} was not saved.") from error
            raise

    def _write(self, file: Path, content: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".part-", delete=False) as part:
            try:
                part.write(content)
                part.flush()
                if self._clock is not None:
                    now = self._clock.now() * 1_000
                    os.utime(part.fileno(), ns=(now, now))
                if self._durable:
                    os.fsync(part.fileno())
                os.replace(part.name, file)
            except BaseException:
                os.unlink(part.name)
                raise

    def _expire(self, limit: int) -> int:
        if self._clock is None:
            raise BadParameter("A folder of blobs needs a clock to know how old its blobs are.", key="")
        removed = 0
        for expiry in self.expiries:
            oldest = self._clock.now() - round(expiry.seconds * MICROS)
            for key in self._keys(expiry.prefix):
                if removed >= limit:
                    return removed
                file = self.path / key
                if (stored_at := _stored_at(file)) is not None and stored_at < oldest:
                    self._delete(file)
                    removed += 1
        return removed

    def _keys(self, prefix: str) -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        found = _files(self.path, self._file(folder) if folder else self.path)
        return (key for key in found if key.startswith(prefix))

    def _list(self, prefix: str, limit: int) -> Sequence[str]:
        return [*islice(self._keys(prefix), limit)]

    def _delete(self, file: Path) -> None:
        try:
            file.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return
        about(file).unlink(missing_ok=True)
        _sync(file.parent)


def _blob(key: str, file: Path) -> Blob | None:
    try:
        with _opened(file) as opened:
            content = opened.read()
            stored_at = os.fstat(opened.fileno()).st_mtime_ns // 1_000
    except _NOT_THERE:
        return None
    return Blob.of(key, content, stored_at, note=_read(about(file)))


def _stored_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns // 1_000
    except FileNotFoundError:
        return None  # somebody else removed it


def _read(file: Path) -> bytes | None:
    try:
        with _opened(file) as opened:
            return opened.read()
    except _NOT_THERE:
        return None


def _opened(file: Path) -> BinaryIO:
    """Follows no link that somebody put in the place of a blob."""
    try:
        return open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadParameter(f"{file} is a link and no blob. Remove it.", key=str(file)) from error
        raise


def _files(root: Path, folder: Path) -> Iterator[str]:
    """Keys below a folder, in the order of their parts."""
    if not folder.is_dir():
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(root, Path(entry.path))
        elif _PART.fullmatch(entry.name):
            yield Path(entry.path).relative_to(root).as_posix()


def _make(folder: Path, *, durable: bool) -> None:
    """Makes the folders that are missing. A new entry is safe only once the folder that holds it is on the disk."""
    if not folder.is_dir():
        _make(folder.parent, durable=durable)
        folder.mkdir(exist_ok=True)
        if durable:
            _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
