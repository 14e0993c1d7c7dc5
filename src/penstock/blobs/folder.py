"""A folder of blobs: what was put is on the disk, whole, before `put` returns, and a crash leaves the old or the new."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from penstock.contracts.clock import Clock
from penstock.model.errors import BadParameter, StorageFull
from penstock.model.times import MICROS

# No part begins with a dot: `..` cannot climb out, and what is being written (`.part-...`) is never taken for a blob.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=@+,-]{0,199}")
_KEY_CHARACTERS_MAX = 900  # with the folder's own path still below the 1,024 of the tightest system
LISTED_MAX = 1_000
STORED_MAX = 200_000  # blobs that are counted in one look
EXPIRE_LOOKS = (
    30  # in the time that the shortest-lived blobs are kept: what is too old stays a thirtieth longer at most
)
EXPIRE_EVERY_SECONDS = (3_600.0, 86_400.0)
_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INSIDE = _FOLDER | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
METADATA_BYTES_MAX = 8 * 1024
BEFORE_MAX = 3  # earlier contents that a note still names: this many puts in a row may crash before one is complete

Attributes = dict[str, Any]
DAY_SECONDS = 86_400
EXPIRED_MAX = 1_000  # removed in one go


@dataclass(frozen=True, slots=True)
class Expiry:
    """Blobs whose key begins with the prefix are removed after `days`: `Expiry("app/", days=30)`."""

    prefix: str
    days: float

    @property
    def seconds(self) -> float:
        """How old a blob may become."""
        return self.days * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as it was read: whole, with what was said about this content and no other."""

    key: str
    content: bytes = field(repr=False)
    etag: str
    stored_at: int  # microseconds since 1970
    content_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.content)

    @classmethod
    def of(cls, key: str, content: bytes, stored_at: int, note: bytes | None) -> Blob:
        etag = etag_of(content)
        known = _entries(note).get(etag, {})
        return cls(key, content, etag, stored_at, known.get("content_type"), known.get("metadata", {}))


class FolderSize(NamedTuple):
    """How much a folder has: its blobs, their bytes without notes, and whether it was counted to the end."""

    blobs: int
    size_bytes: int
    is_complete: bool


def about(name: str) -> str:
    """Where the note about a file is: under a name that no key can have."""
    return f".about-{name}"


def etag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def attributes_of(content_type: str | None, metadata: Mapping[str, str] | None) -> Attributes:
    found: Attributes = {"content_type": content_type} if content_type else {}
    if metadata:
        found["metadata"] = dict(metadata)
    if len(json.dumps(found)) > METADATA_BYTES_MAX:
        raise BadParameter(f"The metadata of a blob have at most {METADATA_BYTES_MAX} bytes.", value=content_type)
    return found


def noted(note: bytes | None, etag: str, attributes: Attributes) -> bytes | None:
    """The note with these attributes added, or None if nothing has to be written.

    It also keeps what was said about contents before: one of them is still there until the new one takes its place.
    """
    if note is None and not attributes:
        return None
    newest = [(each, said) for each, said in _entries(note).items() if each != etag][-BEFORE_MAX:]
    return json.dumps(dict([*newest, (etag, attributes)])).encode()


def _entries(note: bytes | None) -> dict[str, Attributes]:
    try:
        entries = json.loads(note or b"{}")
    except ValueError:
        return {}
    if not isinstance(entries, dict):
        return {}
    return {etag: said for etag, said in entries.items() if isinstance(said, dict)}


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
        on_write: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_read` is called for every blob that is read, `on_write` for every one that is saved and for every list."""
        self.path = Path(path)
        self._on_read = on_read
        self._on_write = on_write
        self._durable = durable
        self.expiries = tuple(expiries)
        self._clock = clock

    async def put(
        self, key: str, content: bytes, *, content_type: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Saves the content under the key, in place of what was there."""
        attributes = attributes_of(content_type, metadata)
        self._on_write()
        await asyncio.to_thread(self._put, _checked(key), content, attributes)

    async def get(self, key: str) -> bytes | None:
        """The content, or None where there is none."""
        self._on_read()
        found = await asyncio.to_thread(self._load, _checked(key))
        return None if found is None else found[0]

    async def read(self, key: str) -> Blob | None:
        """The content with all that is known about it."""
        self._on_read()
        return await asyncio.to_thread(self._blob, _checked(key))

    async def expire(self, *, limit: int = EXPIRED_MAX) -> int:
        """Remove at most `limit` blobs that are older than their prefix allows, and return how many."""
        return await asyncio.to_thread(self._expire, limit)

    async def list(self, prefix: str = "", *, limit: int = LISTED_MAX) -> Sequence[str]:
        """The first keys that begin with the prefix, in order."""
        self._on_write()
        return await asyncio.to_thread(self._list, prefix, limit)

    async def delete(self, key: str) -> None:
        """Removes a blob. One that is not there is no error."""
        await asyncio.to_thread(self._delete, _checked(key))

    @contextmanager
    def _folder(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a key part by part, through no symbolic link; yield its descriptor and the file's name."""
        *folders, name = key.split("/")
        if make:
            _make(self.path, durable=self._durable)
        inside = os.open(self.path, _FOLDER)
        try:
            for part in folders:
                outside, inside = inside, self._enter(inside, part, make)
                os.close(outside)
            yield inside, name
        finally:
            os.close(inside)

    def _enter(self, folder: int, part: str, make: bool) -> int:
        try:
            return os.open(part, _INSIDE, dir_fd=folder)
        except NotADirectoryError:
            _refuse_link(folder, part)
            raise
        except FileNotFoundError:
            if not make:
                raise
        try:
            os.mkdir(part, 0o700, dir_fd=folder)
        except FileExistsError:
            pass  # another process has just made it
        # A new entry is safe only once the folder that holds it is on the disk.
        if self._durable:
            os.fsync(folder)
        return os.open(part, _INSIDE, dir_fd=folder)

    def _put(self, key: str, content: bytes, attributes: Attributes) -> None:
        try:
            with self._folder(key, make=True) as (folder, name):
                # First what is known about the content, under the content's own etag: whichever content is there after a
                # crash, its own report is the one that counts.
                before = _content(folder, about(name))
                if (note := noted(before and before[0], etag_of(content), attributes)) is not None:
                    self._write(folder, about(name), note)
                self._write(folder, name, content)
                if self._durable:
                    os.fsync(folder)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            raise BadParameter(
                f"{self.path / key} cannot be written: a part of its path is already a blob. Use another key.", key=key
            ) from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull(f"The disk that holds {self.path} is full; {key} was not saved.") from error
            raise

    def _write(self, folder: int, name: str, content: bytes) -> None:
        part = f".part-{secrets.token_hex(8)}"
        with open(part, "wb", opener=lambda path, _: os.open(path, _NEW, 0o600, dir_fd=folder)) as file:
            try:
                file.write(content)
                file.flush()
                if self._clock is not None:
                    now = self._clock.now() * 1_000
                    os.utime(file.fileno(), ns=(now, now))
                if self._durable:
                    os.fsync(file.fileno())
                os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(part, dir_fd=folder)
                raise

    def _blob(self, key: str) -> Blob | None:
        found = self._load(key)
        return None if found is None else Blob.of(key, *found)

    def _load(self, key: str) -> tuple[bytes, int, bytes | None] | None:
        """Return the content, when it was stored, and the note about it."""
        try:
            with self._folder(key) as (folder, name):
                found, note = _content(folder, name), _content(folder, about(name))
        except _NOT_THERE:
            return None
        return None if found is None else (*found, note and note[0])

    def _expire(self, limit: int) -> int:
        if self._clock is None:
            raise BadParameter("A blob folder needs a clock to compute the age of its blobs.", key="")
        removed = 0
        for expiry in self.expiries:
            oldest = self._clock.now() - round(expiry.seconds * MICROS)
            for key in self._keys(expiry.prefix):
                if removed >= limit:
                    return removed
                removed += self._delete(key, oldest=oldest)
        return removed

    def stored(self) -> FolderSize:
        """Return how much is stored now. It reads the folder: call it in a thread."""
        files = size = 0
        for key in islice(self._keys(""), STORED_MAX):
            with suppress(FileNotFoundError):  # it was deleted meanwhile
                size += os.stat(self.path / key, follow_symlinks=False).st_size
                files += 1
        return FolderSize(files, size, is_complete=files < STORED_MAX)

    def _keys(self, prefix: str) -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        try:
            with self._folder(f"{_checked(folder)}/" if folder else "") as (found, _):
                keys = _files(found, f"{folder}/" if folder else "")
                yield from (key for key in keys if key.startswith(prefix))
        except _NOT_THERE:
            return

    def _list(self, prefix: str, limit: int) -> Sequence[str]:
        return [*islice(self._keys(prefix), limit)]

    def _delete(self, key: str, *, oldest: int | None = None) -> bool:
        """Remove a blob, or only one that was stored before `oldest`; return whether it was there."""
        try:
            with self._folder(key) as (folder, name):
                stored_at = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns // 1_000
                if oldest is not None and stored_at >= oldest:
                    return False
                os.unlink(name, dir_fd=folder)
                try:
                    os.unlink(about(name), dir_fd=folder)
                except FileNotFoundError:
                    pass
                os.fsync(folder)
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False


def _checked(key: str) -> str:
    if len(key) > _KEY_CHARACTERS_MAX or not all(_PART.fullmatch(part) for part in key.split("/")):
        raise BadParameter(
            f"{key[:100]!r} cannot be the key of a blob. Use letters, digits and ._=@+,- in parts joined by '/', "
            f"none of which begins with a dot; at most {_KEY_CHARACTERS_MAX} characters.",
            key=key,
        )
    return key


def _content(folder: int, name: str) -> tuple[bytes, int] | None:
    """Return the bytes of a file and when it was stored; None where there is none."""
    try:
        with open(name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, dir_fd=folder)) as file:
            return file.read(), os.fstat(file.fileno()).st_mtime_ns // 1_000
    except _NOT_THERE:
        return None
    except OSError:
        _refuse_link(folder, name)
        raise


def _refuse_link(folder: int, name: str) -> None:
    if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
        raise BadParameter(f"{name} is a symbolic link, and Penstock does not follow links. Remove it.", key=name)


def _files(folder: int, prefix: str) -> Iterator[str]:
    """Keys below a folder, in the order of their parts."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            below = os.open(entry.name, _INSIDE, dir_fd=folder)
            try:
                yield from _files(below, f"{prefix}{entry.name}/")
            finally:
                os.close(below)
        elif entry.is_file(follow_symlinks=False) and _PART.fullmatch(entry.name):
            yield prefix + entry.name


def _make(folder: Path, *, durable: bool) -> None:
    """Makes the folders that are missing. A new entry is safe only once the folder that holds it is on the disk."""
    if not folder.is_dir():
        _make(folder.parent, durable=durable)
        folder.mkdir(mode=0o700, exist_ok=True)
        if durable:
            descriptor = os.open(folder.parent, _FOLDER)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


async def expire_regularly(folders: Sequence[BlobFolder]) -> None:
    """Delete what is too old, for as long as this runs. Each look reads all keys, so there are few."""
    while folders:
        for folder in folders:
            await folder.expire()
        shortest = min(expiry.seconds for folder in folders for expiry in folder.expiries)
        least, most = EXPIRE_EVERY_SECONDS
        await asyncio.sleep(min(most, max(least, shortest / EXPIRE_LOOKS)))
