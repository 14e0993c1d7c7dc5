"""Liveness by lock: the server holds one as long as the writer's connection lives, the system another as long as the process
does. That one is on the list of running handlers, a file that others on the same host can read."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.contracts import running_handlers
from penstock.contracts.presence import Departed
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.presence import StoredPresence, cells_at, is_locked, obituary
from penstock.storage.private import runtime_folder

# A lost connection is not a death. A worker on another host, of which only the server can tell, has this long to come
# back: a process with nothing to do notices within a second.
AWAY_SECONDS = 3.0
ALONE = "penstock-alone-"  # names the folder of a process that has no runtime folder to share


def folder_of(identity: str) -> Path:
    """Where processes of this user on this host keep what they share about one database."""
    try:
        return runtime_folder(identity)
    except OSError:  # then the server alone tells which processes live, as it does for another host
        return Path(tempfile.mkdtemp(prefix=ALONE))


def path_in(folder: Path, worker: int) -> Path:
    return folder / f"worker-{worker}"


def _take_space(file: int) -> None:
    os.pwrite(file, bytes(running_handlers.BYTES), 0)


class PostgresPresence(StoredPresence):
    """Everything but the cells is used in the writer's thread."""

    def __init__(self, session: PostgresSession, folder: Path, worker: int) -> None:
        super().__init__(path_in(folder, worker), _take_space)
        self._session = session
        self._folder = folder
        self._away: dict[int, float] = {}  # since when the server has held no lock for them

    def departed(self) -> list[Departed]:
        here = self._lists()  # first: a worker that has a list by now has been in the table for longer
        others = self._others(here)
        now = time.perf_counter()
        away = [other for other, locked in others.items() if not (locked or here.get(other))]
        self._away = {other: self._away.get(other, now) for other in away}
        dead = [other for other in away if other in here or now - self._away[other] >= AWAY_SECONDS]
        self._session.departed.update(dead)
        return [obituary(other, cells_at(path_in(self._folder, other))) for other in dead]

    def _lists(self) -> dict[int, bool]:
        """The workers that have a list on this host, and whether each of them lives."""
        found = {path: path.name.removeprefix("worker-") for path in self._folder.glob("worker-*")}
        return {int(name): is_locked(path) for path, name in found.items() if name.isdigit() and path != self.path}

    def _others(self, here: dict[int, bool]) -> dict[int, bool]:
        """The workers that are in the table, and whether the server holds their locks. A list that is left of one that is
        not in it any more, because the process that released its rows was killed then, is removed."""
        others: dict[int, bool] = dict(self._session.rows("workers.others", {"worker": self._session.worker}))
        for worker, lives in here.items():
            if not lives and worker not in others:
                path_in(self._folder, worker).unlink(missing_ok=True)
        return others

    def when_cut_off(self, callback: Callable[[bool], object]) -> None:
        self._session.cut_off = callback

    def forget(self, worker: int) -> None:
        self._session.departed.discard(worker)
        self._away.pop(worker, None)
        self._others(self._lists())

    def leave(self) -> None:
        self.path.unlink(missing_ok=True)
        if self._folder.name.startswith(ALONE):
            self._folder.rmdir()
        self.vanish()

    def vanish(self) -> None:
        super().vanish()
        self._session.close()
