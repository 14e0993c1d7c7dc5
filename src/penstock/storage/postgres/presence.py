"""Liveness by lock: the server holds one as long as the writer's connection lives, the system another as long as the process
does. That one is on the list of running handlers, a file that others on the same host can read."""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.contracts import running
from penstock.contracts.presence import Departed
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.private import open_private, runtime_folder

# A lost connection is not a death. Whoever is not on this host, and of whom the server alone can tell, has this long to come
# back: a process with nothing to do notices within a second.
AWAY_SECONDS = 3.0
ALONE = "penstock-alone-"  # names the folder of a process that has no runtime folder to share


def folder_of(identity: str) -> Path:
    """Where processes of this user on this host keep what they share about one database."""
    try:
        return runtime_folder(identity)
    except OSError:  # then the server alone tells which processes live, as it does for another host
        return Path(tempfile.mkdtemp(prefix=ALONE))


def cells_of(folder: Path, worker: int) -> memoryview | None:
    try:
        content = (folder / f"worker-{worker}").read_bytes()
    except OSError:
        return None
    return memoryview(content).cast("q") if len(content) == running.BYTES else None


def started_in(folder: Path, worker: int) -> list[int] | None:
    """The rows that a worker, alive or dead, may have begun; None where its list is not on this host."""
    cells = cells_of(folder, worker)
    return None if cells is None else running.may_have_started(cells)


def is_locked(path: Path) -> bool:
    """Whether the process that keeps this list lives."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


class PostgresPresence:
    """Everything but the cells is used in the writer's thread."""

    def __init__(self, session: PostgresSession, folder: Path, worker: int) -> None:
        self._session = session
        self._folder = folder
        self._path = folder / f"worker-{worker}"
        self._away: dict[int, float] = {}  # since when the server has held no lock for them
        self._file = open_private(self._path)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.pwrite(self._file, bytes(running.BYTES), 0)
        self._map = mmap.mmap(self._file, running.BYTES)
        self._cells = memoryview(self._map).cast("q")
        running.clear(self._cells, os.getpid())

    @property
    def path(self) -> Path:
        return self._path

    @property
    def cells(self) -> memoryview:
        return self._cells

    def departed(self) -> list[Departed]:
        here = self._lists()  # first: whoever has a list by now has been in the table for longer
        others = self._others(here)
        now = time.perf_counter()
        away = [other for other, locked in others.items() if not (locked or here.get(other))]
        self._away = {other: self._away.get(other, now) for other in away}
        dead = [other for other in away if other in here or now - self._away[other] >= AWAY_SECONDS]
        self._session.departed.update(dead)
        return [self._obituary(other) for other in dead]

    def _lists(self) -> dict[int, bool]:
        """The workers that have a list on this host, and whether each of them lives."""
        found = {path: path.name.removeprefix("worker-") for path in self._folder.glob("worker-*")}
        return {int(name): is_locked(path) for path, name in found.items() if name.isdigit() and path != self._path}

    def _others(self, here: dict[int, bool]) -> dict[int, bool]:
        """The workers that are in the table, and whether the server holds their locks. A list that is left of one that is
        not in it any more, because whoever returned its rows was killed then, is removed."""
        others: dict[int, bool] = dict(self._session.rows("workers.others", {"worker": self._session.worker}))
        for worker, lives in here.items():
            if not lives and worker not in others:
                (self._folder / f"worker-{worker}").unlink(missing_ok=True)
        return others

    def _obituary(self, worker: int) -> Departed:
        cells = cells_of(self._folder, worker)
        if cells is None:
            return Departed(worker, None, [])
        return Departed(worker, running.may_have_started(cells), running.blamed(cells))

    def when_cut_off(self, told: Callable[[bool], object]) -> None:
        self._session.cut_off = told

    def forget(self, worker: int) -> None:
        self._session.departed.discard(worker)
        self._away.pop(worker, None)
        self._others(self._lists())

    def leave(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._folder.name.startswith(ALONE):
            self._folder.rmdir()
        self.vanish()

    def vanish(self) -> None:
        """Lets go as a death would: the file stays behind for others to read."""
        self._cells.release()
        self._map.close()
        os.close(self._file)
        self._session.close()
