"""What the processes of a crash test stand on: a fresh database on either store, looked at through connections of our own."""

from __future__ import annotations

import fcntl
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import psycopg

from penstock.model.statement import to_psycopg
from penstock.storage.postgres.store import PostgresStore
from tests.crash.lookout import RunningList
from tests.postgres import server

Ask = Callable[..., list[tuple[Any, ...]]]


class CrashDatabase(ABC):
    """One database. `address` is what an app is told, and `store` says where it is kept."""

    store: str
    address: str

    @abstractmethod
    @contextmanager
    def reading(self) -> Iterator[Ask]:
        """Asks any number of questions of one snapshot."""

    @abstractmethod
    def change(self, statement: str) -> int:
        """Does something by hand that no process of the test would do; how many rows it changed."""

    @abstractmethod
    def damage(self) -> list[str]: ...

    @abstractmethod
    def lists(self) -> list[Path]:
        """The files in which workers keep what they run, of the living and of those whose rows nobody has returned."""

    @abstractmethod
    def writing(self, pid: int) -> bool:
        """Whether this process is inside a transaction that has written something."""

    @abstractmethod
    def in_transaction(self, pid: int) -> bool:
        """Whether it is inside a transaction at all, and may hold locks."""

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """The test is over, and all its processes are gone."""

    def running_list_of(self, pid: int) -> RunningList | None:
        for path in self.lists():
            try:
                found = RunningList(path)
            except (OSError, ValueError):
                continue  # just made, or just removed
            if found.pid == pid:
                return found
        return None


class SqliteCrashDatabase(CrashDatabase):
    store = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "victim.db"
        self._turn = Path(f"{self._path}-turn")
        self.address = str(self._path)

    @contextmanager
    def reading(self) -> Iterator[Ask]:
        connection = apsw.Connection(self.address, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(30_000)
        try:
            with connection:
                yield lambda sql, **bound: list(connection.execute(sql, bound))
        finally:
            connection.close()

    def change(self, statement: str) -> int:
        connection = apsw.Connection(self.address)
        connection.set_busy_timeout(30_000)
        connection.execute(statement)
        changes = connection.changes()
        connection.close()
        return changes

    def damage(self) -> list[str]:
        with self.reading() as ask:
            found = [str(line) for (line,) in ask("pragma quick_check")]
        return [] if found == ["ok"] else found

    def lists(self) -> list[Path]:
        return list(self._path.parent.glob(f"{self._path.name}-worker-*"))

    def writing(self, pid: int) -> bool:
        """The process that holds the lock on the turn file holds the database; where nobody says who it is (elsewhere than
        on Linux), it may be any."""
        try:
            inode = f":{self._turn.stat().st_ino}"
            lines = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return self._is_taken()
        locks = map(str.split, lines)
        return any(lock[1] == "FLOCK" and lock[5].endswith(inode) and int(lock[4]) == pid for lock in locks)

    def in_transaction(self, pid: int) -> bool:
        return self.writing(pid)

    def _is_taken(self) -> bool:
        with self._turn.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False


ONLOOKER = "penstock tests"  # the name of our own connection, for tests that end those of others
BEGIN = "begin isolation level repeatable read"
# A worker's connection is the one that holds its lock. Its transaction has a number once it has written something.
INSIDE = """
select backend_xid is not null
from penstock.penstock_workers as workers
join pg_locks on locktype = 'advisory' and classid = 20550 and objid = workers.id
join pg_stat_activity on pg_stat_activity.pid = pg_locks.pid
where workers.pid = %s
and pg_stat_activity.datname = current_database()
and xact_start is not null
"""
UNSOUND = """
select conrelid::regclass || ': ' || conname from pg_constraint where not convalidated
union all
select indexrelid::regclass::text from pg_index where not indisvalid
"""


class PostgresCrashDatabase(CrashDatabase):
    store = "postgres"

    def __init__(self, runtime: Path) -> None:
        """`runtime` is where processes of this host keep what they share."""
        self._runtime = runtime
        self._looking: psycopg.Connection[Any] | None = None
        self._identity = ""
        self.server = server()
        self.address = self.server.new_database(template())

    @contextmanager
    def reading(self) -> Iterator[Ask]:
        looking = self._begun()
        try:
            yield lambda sql, **bound: looking.execute(to_psycopg(sql).encode(), bound).fetchall()
        finally:
            if not looking.closed:
                looking.execute("rollback")

    def change(self, statement: str) -> int:
        with psycopg.connect(self.address, options="-c search_path=public,penstock") as connection:
            return connection.execute(statement.encode()).rowcount

    def damage(self) -> list[str]:
        with self.reading() as ask:
            return [str(line) for (line,) in ask(UNSOUND)]

    def lists(self) -> list[Path]:
        if not self._identity:
            with self.reading() as ask:
                for (value,) in ask("select value from penstock_facts where name = 'identity'"):
                    self._identity = value
        folder = self._runtime / f"penstock-{os.getuid()}" / self._identity
        return list(folder.glob("worker-*")) if self._identity else []

    def writing(self, pid: int) -> bool:
        return (True,) in self._inside(pid)

    def in_transaction(self, pid: int) -> bool:
        return bool(self._inside(pid))

    def _inside(self, pid: int) -> list[tuple[Any, ...]]:
        return self._looker().execute(INSIDE, [pid]).fetchall()

    def _begun(self) -> psycopg.Connection[Any]:
        """A connection with a snapshot: the one there is, or a new one where a test or its server has ended that."""
        try:
            self._looker().execute(BEGIN)
        except psycopg.OperationalError:
            self._looker().execute(BEGIN)
        return self._looker()

    def _looker(self) -> psycopg.Connection[Any]:
        """One for all looks: to make a connection takes the server longer than to answer."""
        if self._looking is None or self._looking.closed:
            options = "-c search_path=public,penstock"
            self._looking = psycopg.connect(self.address, autocommit=True, options=options, application_name=ONLOOKER)
        return self._looking

    def close(self) -> None:
        if self._looking is not None:
            self._looking.close()


@cache
def template() -> str:
    """A database that has the engine's tables already: making them takes longer than many a test."""
    url = server().new_database()
    PostgresStore(url).open_writer(now=1).close()
    with psycopg.connect(url) as connection:
        connection.execute("truncate penstock.penstock_workers restart identity")
        connection.execute("delete from penstock.penstock_facts where name <> 'schema'")
    return url.rpartition("/")[2]


def crash_database(store: str, folder: Path, runtime: Path) -> CrashDatabase:
    return SqliteCrashDatabase(folder) if store == "sqlite" else PostgresCrashDatabase(runtime)
