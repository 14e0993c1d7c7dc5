"""A disk to test with: it fills up, fails, loses what was never synced and damages bytes, all on command and without root.

It is a file system of SQLite's own kind, so everything above it is the real thing:

    disk = Disk()
    store = SqliteStore(path, **disk.options)
    disk.quota_bytes = 2_000_000             # from here on there is no more space
    disk.fail("sync", nth=3, on="-wal")      # the third sync of the log answers with an I/O error
    disk.cut_power(after=20)                 # at the 20th change from now the machine goes dark
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import apsw

Operation = Literal["read", "write", "sync", "truncate"]

SECTOR_BYTES = 512  # what a disk writes whole: a write that was under way may stop between two of these
BESIDE = ("", "-wal", "-shm", "-journal", "-reserve")  # the files that take up a database's space
CHANGES: tuple[Operation, ...] = ("write", "sync", "truncate")

_CODES = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
}
_numbers = count(1)


@dataclass(slots=True)
class _Fault:
    operation: Operation
    on: str | None
    skip: int
    times: int
    done: bool


@dataclass(slots=True)
class _Change:
    """A write at an offset, or a cut to a length where there is no content."""

    offset: int
    content: bytes | None


class _Platter:
    """What of one file has surely reached the disk, and what has not."""

    def __init__(self, content: bytes) -> None:
        self.durable = bytearray(content)
        self.unsynced: list[_Change] = []

    def sync(self) -> None:
        for change in self.unsynced:
            self._apply(change)
        self.unsynced.clear()

    def lose(self, random: Random | None) -> None:
        """Forgets what was not synced; with a `random`, only some of it, as a disk that reorders its writes would."""
        for change in self.unsynced:
            if random is not None and random.random() < 0.5:
                self._apply(_torn(change, random))
        self.unsynced.clear()

    def _apply(self, change: _Change) -> None:
        if change.content is None:
            del self.durable[change.offset :]
            return
        end = change.offset + len(change.content)
        if len(self.durable) < end:
            self.durable.extend(bytes(end - len(self.durable)))
        self.durable[change.offset : end] = change.content


class Disk(apsw.VFS):
    """One disk, known to SQLite under `name`. Give `options` to a store, or override `App.store` to pass them.

    With `forgetful=True` it keeps apart what was synced, so that `cut_power` can take away the rest. With `honest=False`
    it answers a sync without doing anything, as bad hardware does. It serves the process that made it.
    """

    def __init__(self, *, forgetful: bool = False, honest: bool = True) -> None:
        self.name = f"penstock-disk-{next(_numbers)}"
        self.quota_bytes: int | None = None
        self.honest = honest
        self.done: Counter[Operation] = Counter()
        self.is_dark = False
        self._forgetful = forgetful
        self._faults: list[_Fault] = []
        self._dark_after: int | None = None
        self._databases: set[str] = set()
        self._platters: dict[str, _Platter] = {}
        self._lock = threading.RLock()
        super().__init__(self.name, "")

    @property
    def options(self) -> dict[str, Any]:
        return {"vfs": self.name, "free_bytes": self.free_bytes}

    # -- space ------------------------------------------------------------------------------------------

    def used_bytes(self) -> int:
        return sum(_size(database + beside) for database in self._databases for beside in BESIDE)

    def free_bytes(self, folder: Path) -> int:
        if self.quota_bytes is None:
            return shutil.disk_usage(folder).free
        return max(0, self.quota_bytes - self.used_bytes())

    # -- errors -----------------------------------------------------------------------------------------

    def fail(
        self, operation: Operation, *, nth: int = 1, times: int = 1, on: str | None = None, done: bool = False
    ) -> None:
        """The nth such operation from now, and so many after it, answer with an I/O error. `on` is how the file's name
        ends; with `done` the operation is carried out all the same."""
        self._faults.append(_Fault(operation, on, nth - 1, times, done))

    def heal(self) -> None:
        """Takes back every error that has not happened yet."""
        self._faults.clear()

    # -- power ------------------------------------------------------------------------------------------

    def cut_power(self, *, after: int = 0) -> None:
        """At the `after`-th change from now everything stops: each operation fails until `power_on`."""
        assert self._forgetful, "only a disk made with forgetful=True knows what it would lose"
        if after:
            self._dark_after = after
        else:
            self.is_dark = True

    def power_on(self, random: Random | None = None) -> None:
        """The files are as a machine finds them after the cut. Close every connection before. `random` lets some of the
        unsynced writes survive, in parts."""
        with self._lock:
            for path, platter in self._platters.items():
                platter.lose(random)
                Path(path).write_bytes(platter.durable)
            for database in self._databases:
                Path(f"{database}-shm").unlink(missing_ok=True)
            self._platters.clear()
            self._dark_after = None
            self.is_dark = False

    # -- asked by SQLite --------------------------------------------------------------------------------

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        self._check_power("open", "a file")
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is not None and flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            self._databases.add(path)
        if path is not None and self._forgetful and path not in self._platters:
            # Before it is opened: closing another descriptor of a database would drop SQLite's locks on it.
            self._platters[path] = _Platter(Path(path).read_bytes() if os.path.exists(path) else b"")
        return _DiskFile(self, name, path or "", flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        self._check_power("delete", name)
        super().xDelete(name, syncdir)
        self._platters.pop(name, None)

    def excepthook(self, *_: object) -> bool:
        return True  # SQLite goes on without minding; so do we

    def before(self, operation: Operation, path: str) -> BaseException | None:
        """Raises if the operation is not to be done; returns what to raise once it is."""
        with self._lock:
            if self._dark_after is not None and operation in CHANGES:
                self._dark_after -= 1
                self.is_dark = self.is_dark or self._dark_after <= 0
            self._check_power(operation, path)
            self.done[operation] += 1
            fault = self._due_fault(operation, path)
        if fault is None:
            return None
        error = _failed(operation, path)
        if not fault.done:
            raise error
        return error

    def _due_fault(self, operation: Operation, path: str) -> _Fault | None:
        for fault in self._faults:
            if fault.operation != operation or not path.endswith(fault.on or ""):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.times -= 1
            if not fault.times:
                self._faults.remove(fault)
            return fault
        return None

    def _check_power(self, operation: str, path: str) -> None:
        if self.is_dark:
            raise _failed(operation, path)

    def check_space(self, path: str, more_bytes: int) -> None:
        if self.quota_bytes is not None and more_bytes > 0 and self.used_bytes() + more_bytes > self.quota_bytes:
            raise apsw.FullError(f"no space left on {self.name} for {more_bytes} bytes of {Path(path).name}")

    def note(self, path: str, change: _Change) -> None:
        if self._forgetful:
            with self._lock:
                self._platters[path].unsynced.append(change)

    def synced(self, path: str) -> bool:
        """Whether that was all there is to do."""
        if self._forgetful and self.honest:
            with self._lock:
                self._platters[path].sync()
        return self._forgetful or not self.honest


class _DiskFile(apsw.VFSFile):
    """Locks and shared memory are those of the file system below; only reads and changes pass through here."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, path: str, flags: list[int]) -> None:
        self._disk = disk
        self._path = path
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        after = self._disk.before("read", self._path)
        content = super().xRead(amount, offset)
        if after is not None:
            raise after
        return content

    def xWrite(self, data: bytes, offset: int) -> None:
        after = self._disk.before("write", self._path)
        if self._disk.quota_bytes is not None:
            self._disk.check_space(self._path, offset + len(data) - super().xFileSize())
        super().xWrite(data, offset)
        self._disk.note(self._path, _Change(offset, bytes(data)))
        if after is not None:
            raise after

    def xTruncate(self, newsize: int) -> None:
        after = self._disk.before("truncate", self._path)
        super().xTruncate(newsize)
        self._disk.note(self._path, _Change(newsize, None))
        if after is not None:
            raise after

    def xSync(self, flags: int) -> None:
        after = self._disk.before("sync", self._path)
        if not self._disk.synced(self._path):
            super().xSync(flags)
        if after is not None:
            raise after

    def excepthook(self, *_: object) -> bool:
        return True


class Damage(NamedTuple):
    """One byte that is no longer what it was."""

    path: Path
    offset: int
    before: int
    after: int

    def undo(self) -> None:
        _put(self.path, self.offset, self.before)


def flip_byte(path: Path, random: Random) -> Damage:
    """Changes one byte of a file that nobody has open, at a random place."""
    content = path.read_bytes()
    offset = random.randrange(len(content))
    after = content[offset] ^ random.randrange(1, 256)
    _put(path, offset, after)
    return Damage(path, offset, content[offset], after)


def _put(path: Path, offset: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(bytes((value,)))


def _torn(change: _Change, random: Random) -> _Change:
    if change.content is None:
        return change
    sectors = range(0, len(change.content) + SECTOR_BYTES, SECTOR_BYTES)
    return _Change(change.offset, change.content[: random.choice(sectors)])


def _failed(operation: str, path: str) -> apsw.Error:
    error = apsw.IOError(f"the disk did not {operation} {Path(path).name}")
    error.extendedresult = _CODES.get(operation, apsw.SQLITE_IOERR)  # type: ignore[attr-defined]
    return error


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
