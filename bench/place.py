"""Where one measurement happens: a database with nothing in it, on either store, and a folder beside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import psycopg
from psycopg import sql

from penstock.stores import is_postgres
from tests.postgres_server import PostgresServer, running_server

# What the server for tests sets otherwise, as it comes: fsync and synchronous_commit are on with it. No socket file: its
# path may be too long for one.
AS_IT_COMES = ("shared_buffers=128MB", "autovacuum_naptime=1min", "deadlock_timeout=1s", "unix_socket_directories=")
SENT_AND_ACKED = (
    "select coalesce(sum(sent), 0), coalesce(sum(acked), 0) from penstock.penstock_counters where queue = %s"
)
WAITING = "select count(*) from penstock.penstock_messages where queue = %s"
WRITTEN = "select count(*) from results"


@dataclass(frozen=True, slots=True)
class Place:
    database: str
    folder: Path

    @property
    def store(self) -> str:
        return "postgres" if is_postgres(self.database) else "sqlite"

    def row(self, query: str, *bound: Any) -> tuple[Any, ...]:
        """The only row of a query, which is written for PostgreSQL."""
        if self.store == "postgres":
            with psycopg.connect(self.database) as server:
                found = server.execute(query.encode(), bound).fetchone()
                assert found is not None
                return found
        with closing(apsw.Connection(self.database)) as connection:
            text = query.replace("penstock.penstock_", "penstock_").replace("%s", "?")
            return next(connection.execute(text, bound))

    def check_counts(self, expected: dict[str, tuple[int, int, int]], *, results: int | None = None) -> None:
        """Work that was not done is quick: what was sent, acked and is waiting must be what it should."""
        for queue, should in expected.items():
            found = tuple(map(int, (*self.row(SENT_AND_ACKED, queue), *self.row(WAITING, queue))))
            assert found == should, f"{queue}: sent, acked and waiting are {found}; they should be {should}"
        if results is not None:
            (written,) = self.row(WRITTEN)
            assert written == results, f"{written} of {results} rows were written"


def in_file(path: Path) -> Place:
    return Place(str(path), path.parent)


def database_of(server: str, name: str, folder: Path) -> Place:
    """A new database on a server, by the address of another one on it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
    return Place(f"{server.rpartition('/')[0]}/{name}", folder)


@contextmanager
def full_server(folder: Path) -> Iterator[PostgresServer]:
    """A server whose data lies in a folder of its own on the disk that is measured, with nothing about it made faster."""
    # It does not run as root, and a temporary folder is its owner's alone.
    folder.chmod(0o755)
    reached = os.getuid() != 0 or all(each.stat().st_mode & stat.S_IXOTH for each in folder.resolve().parents)
    # In somebody's private folder it could not start: then it lies among the temporary files, on whichever disk they are.
    with running_server(settings=AS_IT_COMES, inside=folder if reached else None) as server:
        yield server
