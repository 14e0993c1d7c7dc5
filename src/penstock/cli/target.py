"""Which database a command looks at, opened for reading only: looking changes nothing and disturbs no worker."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from penstock.app import App
from penstock.cli.reference import load
from penstock.config import Config
from penstock.contracts.store import Reader
from penstock.contracts.workers import WorkerRow
from penstock.model.errors import BadConfig, StoreUnavailable
from penstock.model.row import Row, row_type
from penstock.storage.sqlite import schema
from penstock.storage.sqlite.presence import path_of
from penstock.storage.sqlite.store import SqliteStore

ROWS_MAX = 10_000
NEXT_STEP = (
    "Name it (`--database market.db`), set PENSTOCK_DATABASE, or start one: `penstock run market.py` makes it when it "
    "first runs."
)
VERSIONS = """
select user_version, application_id
from pragma_user_version, pragma_application_id
"""

target_argument = click.argument("target", required=False, metavar="[APP | DATABASE]")
database_option = click.option("--database", metavar="PATH", help="The database file, instead of an app's.")


@dataclass(frozen=True, slots=True)
class Target:
    database: Path
    config: Config
    app: App | None = None


def find(target: str | None, database: str | None) -> Target:
    """By option, argument, PENSTOCK_DATABASE, penstock.toml, or the only Penstock database in this folder."""
    if database is None and target is not None and not _is_file(target):
        app = load(target)
        return Target(_local(app.database), app.config, app)
    config = Config.load()
    named = database or target or os.environ.get("PENSTOCK_DATABASE") or config.database or _only_one_here()
    if named is None:
        raise StoreUnavailable(f"There is no Penstock database in {os.getcwd()}.", hint=NEXT_STEP)
    return Target(_local(named), config)


def _is_file(target: str) -> bool:
    return target.endswith((".db", ".sqlite", ".sqlite3")) or (Path(target).is_file() and not target.endswith(".py"))


def _local(database: str) -> Path:
    if database.startswith(("postgresql://", "postgres://")):
        raise BadConfig("PostgreSQL is not supported yet; name a file instead.", field="database", value=database)
    return Path(database)


def _only_one_here() -> str | None:
    found = [path for path in sorted(Path().glob("*.db")) if _is_ours(path)]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise BadConfig(f"There are several databases here: {names}. Say which: `--database {found[0].name}`.")
    return found[0].name if found else None


class Header(NamedTuple):
    """What the first bytes of a SQLite file tell. What was written last may still be in its log."""

    log_is_on: bool
    application: int


def header(path: Path) -> Header | None:
    """Reads without SQLite. Only while SQLite has the file not open here: closing it would drop SQLite's locks."""
    try:
        with path.open("rb") as file:
            start = file.read(72)
    except OSError:
        return None
    if not start.startswith(b"SQLite format 3\0"):
        return None
    return Header(start[18] == 2, int.from_bytes(start[68:], "big"))


def _is_ours(path: Path) -> bool:
    start = header(path)
    return start is not None and (start.application == schema.APPLICATION_ID or Path(f"{path}-turn").exists())


class FileReading:
    """Runs queries on a file, one after the other."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def rows(self, sql: str, given: object = None, /, **named: Any) -> list[Row]:
        return self.ask(sql, **named)

    def ask(self, sql: str, **named: Any) -> list[Row]:
        found = self._reader.read(sql, named, rows_max=ROWS_MAX)
        made = row_type(found.columns)
        return [made(value) for value in found.values]


@contextmanager
def reading(target: Target) -> Iterator[FileReading]:
    """Opens the database for reading, or says why it cannot be."""
    path = target.database
    if not path.exists():
        raise StoreUnavailable(f"There is no database {path}.", path=str(path), hint=NEXT_STEP)
    _refuse_others(path)
    reader = SqliteStore(path, metered=False).open_reader()
    try:
        version, application = reader.read(VERSIONS, {}, rows_max=1).values[0]
        if not version or application != schema.APPLICATION_ID:
            raise StoreUnavailable(f"{path} has none of Penstock's tables.", path=str(path), hint=NEXT_STEP)
        schema.check(version, str(path))
        yield FileReading(reader)
    finally:
        reader.close()


def _refuse_others(path: Path) -> None:
    """Every database of ours keeps a write-ahead log; one without could not even be opened for reading only."""
    start = header(path)
    if start is not None and not start.log_is_on and start.application == schema.APPLICATION_ID:
        raise StoreUnavailable(
            f"Another program has turned the write-ahead log of {path} off.",
            path=str(path),
            hint="Start a worker: it turns the log on again. Then find out which program it was.",
        )
    if (start is not None and not start.log_is_on) or (path.is_file() and not path.stat().st_size):
        raise StoreUnavailable(f"{path} has none of Penstock's tables.", path=str(path), hint=NEXT_STEP)


def size_bytes(database: Path) -> int:
    """The file and its log."""
    return sum(path.stat().st_size for path in (database, Path(f"{database}-wal")) if path.exists())


def is_alive(database: Path, worker: WorkerRow) -> bool | None:
    """Whether a worker still holds its lock; None where it runs on another host and nobody here can tell."""
    if worker.host != socket.gethostname():
        return None
    return is_locked(path_of(database.absolute(), worker.id))


def is_locked(path: Path) -> bool:
    """Asks for the lock of a process without waiting, and lets go of it at once: nobody is disturbed."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(file)
