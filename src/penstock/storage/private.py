"""Private files and folders: their owner alone opens them, and never through a symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from threading import Lock

from penstock.model.errors import StoreUnavailable

MODE = 0o600
_LINKS = (errno.ELOOP, errno.EMLINK)  # what systems answer to O_NOFOLLOW on a link
_creating = Lock()


def open_private(path: str | Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file as a descriptor, with mode 0600 where it is new. Raise StoreUnavailable where it cannot."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    except OSError as error:
        failed = StoreUnavailable(f"{path} cannot be opened: {error.strerror}.", path=str(path))
        raise (is_a_link(path) if error.errno in _LINKS else failed) from error
    tighten(path)
    return descriptor


def create_private(database: Path) -> None:
    """Create an empty database file with mode 0600 if it is missing; SQLite gives its log the same mode.

    An existing file is not opened: closing it would drop the locks that SQLite holds on it in this process. The lock
    keeps a second thread from connecting to a new file before the first one has closed its descriptor.
    """
    with _creating:
        try:
            os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE))
        except FileExistsError:
            for beside in ("", "-wal", "-shm"):
                tighten(f"{database}{beside}")


def tighten(path: str | Path) -> None:
    """Take the read permission of a file of ours from users who may not write it: a reader could lock the file."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    mode = stat.S_IMODE(found.st_mode)
    kept = mode & ~sum(0o7 << shift for shift in (0, 3) if not mode & (0o2 << shift))
    if kept != mode and found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode):
        os.chmod(path, kept)


def is_a_link(path: str | Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} is a symbolic link, which is not followed. Remove it, or name the file itself.", path=str(path)
    )


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return what tells whether a name still means the same file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def runtime_folder(name: str) -> Path:
    """Return a folder that this user's processes on this host share, with a path short enough for a socket.

    Raises OSError where it cannot be made or another user controls it.
    """
    shared = runtime_path(name)
    for folder in (shared.parent, shared):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
            raise PermissionError(f"{folder} belongs to another user or is a symbolic link")
    return shared


def runtime_path(name: str) -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR")
    if not base:
        from tempfile import gettempdir  # takes long to load

        base = gettempdir()
    return Path(base, f"penstock-{os.getuid()}", name)
