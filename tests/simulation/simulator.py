"""Runs the history of one seed and says which law it broke, if any."""

from __future__ import annotations

import gc
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from penstock.storage.sqlite.store import SqliteStore
from penstock.testing.loop import OutOfPatience, Stuck, run
from tests.simulation.features import planned
from tests.simulation.runs.plan import planned as runs_planned
from tests.simulation.runs.world import RunsWorld
from tests.simulation.stage import Stage, Trace
from tests.simulation.watch import QUEUES, RUNS, Watch, columns_of
from tests.simulation.world import World

FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None
TABLES = "create table effects (id blob, handler text, token integer, kind text)"
LINES_SHOWN = 40
PATIENCE_SECONDS = 5.0  # real ones in which no time passes: something spins
HUNG_SECONDS = 10.0  # real ones, where most histories take a twentieth of one


class Hung(BaseException):
    """A history that takes so long runs in a circle where no time passes and nobody waits."""


@contextmanager
def _watchdog() -> Iterator[None]:
    def bark(_signal: int, _frame: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, HUNG_SECONDS, 1.0)  # and again, should something swallow it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True, slots=True)
class History:
    world: str
    seed: int
    broken: str | None
    lines: list[str]
    seconds: float  # virtual ones
    size: int  # messages, or runs

    @property
    def digest(self) -> str:
        return blake2b("\n".join(self.lines).encode(), digest_size=16).hexdigest()


class Kind(NamedTuple):
    """A kind of world: how the one of a seed is made, and which tables its law watches."""

    make: Callable[[int, Path, Trace], Stage[Any, Any]]
    tables: Set[str]


WORLDS = {
    "messages": Kind(lambda seed, database, trace: World(planned(seed), database, trace), QUEUES),
    "runs": Kind(lambda seed, database, trace: RunsWorld(runs_planned(seed), database, trace), RUNS),
}


class Simulator:
    """Keeps an empty database to copy from, since making one takes longer than most histories."""

    def __init__(self, world: str = "messages") -> None:
        self._name = world
        self._kind = WORLDS[world]
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-simulation-", dir=FOLDER))
        self._empty = self._folder / "empty.db"
        writer = SqliteStore(self._empty, synchronous="off", reserve_bytes=0, metered=False).open_writer(now=0)
        writer.workers.retire(writer.workers.me, now=0)
        writer.close()
        connection = apsw.Connection(str(self._empty))
        connection.execute(TABLES)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._columns = columns_of(connection)
        connection.close()

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def history(self, seed: int) -> History:
        folder = self._folder / str(seed)
        folder.mkdir()
        database = folder / "world.db"
        shutil.copyfile(self._empty, database)
        trace = Trace()
        worlds: list[Stage[Any, Any]] = []

        async def main() -> float:
            world = self._kind.make(seed, database, trace)
            worlds.append(world)
            with Watch(self._columns, self._kind.tables, world.committed).on():
                await world.run()
            return world.now()

        seconds = 0.0
        try:
            with _watchdog():
                seconds = run(main, seed=seed, patience=PATIENCE_SECONDS)
            broken = worlds[0].broken
        except Hung:
            broken = f"hung for {HUNG_SECONDS:g} real seconds"
        except (Stuck, OutOfPatience) as error:
            broken = f"{type(error).__name__}: {error}"
        except Exception as error:
            broken = f"the simulator fell over: {type(error).__name__}: {error}"
            trace.lines.append(repr(error))
        if broken is None:
            broken = worlds[0].verdict(database)
        shutil.rmtree(folder, ignore_errors=True)
        size = worlds[0].size if worlds else 0
        worlds.clear()
        gc.collect(0)
        return History(self._name, seed, broken, trace.lines, seconds, size)
