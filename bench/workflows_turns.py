"""One turn of one contestant among the workflows: runs a second, on an empty database."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path

from bench import workflows_raw
from bench.disk import fdatasync_seconds
from bench.peers.dbos_workflows import Setting
from bench.place import Place, database_of, in_file
from bench.queues_processes import ANSWER_SECONDS_MAX, PeerFailed
from bench.queues_servers import last_line, postgres
from bench.report import ROOT
from bench.workflows_shape import Shape

Fresh = Callable[[], AbstractContextManager[Place]]  # an empty database, for as long as it is used


class Turns:
    def __init__(self, fresh: Fresh, folder: Path, python: Path) -> None:
        """`python` is the interpreter that has the peers."""
        self._fresh = fresh
        self._folder = folder
        self._python = python

    def pace(self) -> float:
        """Milliseconds that a synced append takes now."""
        return 1000 * fdatasync_seconds(self._folder)

    def raw(self, shape: Shape) -> float:
        gc.collect()
        with self._fresh() as place:
            return shape.runs / workflows_raw.seconds(place, shape)

    def penstock(self, shape: Shape) -> float:
        with self._fresh() as place:
            asked = (place.database, str(place.folder), str(shape.steps), str(shape.at_once), str(shape.runs))
            return shape.runs / _seconds([sys.executable, "-m", "bench.workflows_penstock", *asked])

    def dbos(self, shape: Shape, setting: Setting) -> float:
        with self._fresh() as place:
            asked = json.dumps({"address": place.database, "setting": asdict(setting), **asdict(shape)})
            return shape.runs / _seconds([str(self._python), "-m", "bench.peers.dbos_workflows", asked])


def _seconds(command: Sequence[str]) -> float:
    try:
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX)
    except subprocess.TimeoutExpired as late:
        raise PeerFailed(f"no answer in {ANSWER_SECONDS_MAX:.0f} s") from late
    if ended.returncode:
        raise PeerFailed(last_line(ended.stderr))
    seconds: float = json.loads(ended.stdout)["seconds"]
    return seconds


@contextmanager
def fresh_files(folder: Path) -> Iterator[Fresh]:
    @contextmanager
    def fresh() -> Iterator[Place]:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as made:
            yield in_file(Path(made) / "bench.db")

    yield fresh


@contextmanager
def fresh_databases(folder: Path) -> Iterator[Fresh]:
    """On one server, with fsync and synchronous_commit on as they come."""
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as data, postgres(Path(data)) as address:
        numbers = count(1)

        @contextmanager
        def fresh() -> Iterator[Place]:
            with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as beside:
                yield database_of(address, f"bench_{next(numbers)}", Path(beside))

        yield fresh


PLACES: dict[str, Callable[[Path], AbstractContextManager[Fresh]]] = {
    "sqlite": fresh_files,
    "postgres": fresh_databases,
}
