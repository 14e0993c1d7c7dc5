"""Which database a command looks at, opened for reading only: looking changes nothing and disturbs no worker."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click

from penstock.app import App
from penstock.cli.lookout import Lookout, lookout_at
from penstock.cli.reference import is_module, load
from penstock.config import Config
from penstock.contracts.store import Reader, Store
from penstock.contracts.workers import WorkerRow
from penstock.data import counts
from penstock.model.errors import BadConfig, SchemaTooOld, StoreUnavailable
from penstock.model.redaction import address_shown
from penstock.model.row import Row, row_type
from penstock.storage.schema import VERSION
from penstock.storage.sqlite import schema
from penstock.stores import checked_address, is_address, is_postgres, store_at

ROWS_MAX = 10_000
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
NEXT_STEP = (
    "Name it (`--database market.db`), set PENSTOCK_DATABASE, or start one: `penstock run market.py` makes it when it "
    "first runs."
)

target_argument = click.argument("target", required=False, metavar="[APP | DATABASE]")
database_option = click.option("--database", metavar="PATH|URL", help="The database, instead of an app's.")


@dataclass(frozen=True, slots=True)
class Target:
    """`address` may hold a password: only `database` is ever shown."""

    address: str
    config: Config
    app: App | None = None

    @property
    def database(self) -> str:
        return address_shown(self.address)

    @property
    def file(self) -> Path | None:
        """The file that it is; None where it is on a server."""
        return None if is_postgres(self.address) else Path(self.address)

    @property
    def name(self) -> str:
        return Path(urlsplit(self.address).path).name or "penstock" if self.file is None else self.file.stem

    def store(self) -> Store:
        return store_at(self.address, synchronous=self.config.synchronous, metered=False)


def find(target: str | None, database: str | None, *, usual: str | None = None) -> Target:
    """By option, argument, PENSTOCK_DATABASE, penstock.toml, the file that is usual if it is there, or the only Penstock
    database in this folder."""
    if database is None and target is not None and not is_database(target):
        app = load(target)
        return Target(app.database, app.config, app)
    config = Config.load()
    there = usual if usual is not None and Path(usual).is_file() else None
    said = database or target or os.environ.get("PENSTOCK_DATABASE") or config.database
    named = said or there or _only_one_here()
    if named is None:
        raise StoreUnavailable(f"There is no Penstock database in {os.getcwd()}.", hint=NEXT_STEP)
    return Target(checked_address(named), config)


def is_database(target: str) -> bool:
    """Whether a word names a database rather than an app."""
    if is_address(target) or target.endswith((".db", ".sqlite", ".sqlite3")):
        return True
    return Path(target).is_file() and not target.endswith(".py")


def names_one(word: str) -> bool:
    """Whether a word that may also be a name is written as an app or a database is: market.py, market.db, package:app."""
    if is_database(word) or word.partition(":")[0].endswith(".py"):
        return True
    return _REFERENCE.fullmatch(word) is not None and is_module(word.partition(":")[0])


def behind(words: Sequence[str], *, least: int = 1) -> tuple[list[str], str | None]:
    """Names, of which there are so many at least, and the app or database that the last word may be."""
    if len(words) > least and names_one(words[-1]):
        return list(words[:-1]), words[-1]
    return list(words), None


def _only_one_here() -> str | None:
    found = [path for path in sorted(Path().glob("*.db")) if is_ours(path)]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise BadConfig(f"There are several databases here: {names}. Say which: `--database {found[0].name}`.")
    return found[0].name if found else None


class OnlyReading:
    """Runs queries on a database, one after the other, and sees who works on it."""

    def __init__(self, reader: Reader, lookout: Lookout) -> None:
        self._reader = reader
        self.lookout = lookout

    async def rows(self, sql: str, given: object = None, /, **named: Any) -> list[Row]:
        return self.ask(sql, **named)

    def ask(self, sql: str, **named: Any) -> list[Row]:
        found = self._reader.read(sql, named, rows_max=ROWS_MAX)
        made = row_type(found.columns)
        return [made(value) for value in found.values]

    async def count(self, table: str, /) -> int:
        """How many rows a table has: any number where the app keeps the count, else it is counted."""
        kept = self.ask(counts.KEPT, name=table)
        return int((kept or self.ask(counts.all_of(table)))[0][0])

    def is_alive(self, worker: WorkerRow) -> bool | None:
        return self.lookout.is_alive(worker.id, worker.host)

    def now(self) -> int:
        """The time by which the workers go: the server's, where there is one."""
        return self.lookout.server_time() or time.time_ns() // 1_000


@contextmanager
def reading(target: Target) -> Iterator[OnlyReading]:
    """Opens the database for reading, or says why it cannot be."""
    with _looking(target) as lookout:
        found = lookout.schema_version()
        if not found:
            raise StoreUnavailable(f"{target.database} has none of Penstock's tables.", hint=NEXT_STEP)
        if found < VERSION:
            raise SchemaTooOld(
                f"{target.database} has schema {found} of an older Penstock; this one reads {VERSION}.",
                hint="`penstock migrate APP` or `penstock run APP` upgrades it. Keep a backup of the file.",
            )
    with reading_again(target) as opened:
        yield opened


@contextmanager
def reading_again(target: Target) -> Iterator[OnlyReading]:
    """For a database that was found sound, and may be open here: then its file must not be touched behind SQLite's back."""
    with closing(lookout_at(target.address)) as lookout, closing(target.store().open_reader()) as reader:
        yield OnlyReading(reader, lookout)


def is_there(target: Target) -> bool:
    """Whether there is anything to look at yet."""
    if target.file is not None:
        return target.file.exists()
    with _looking(target) as lookout:
        return lookout.schema_version() > 0


@contextmanager
def _looking(target: Target) -> Iterator[Lookout]:
    if target.file is not None:
        if not target.file.exists():
            raise StoreUnavailable(f"There is no database {target.file}.", path=str(target.file), hint=NEXT_STEP)
        if problem := problem_with(target.file):
            raise StoreUnavailable(problem.message, path=str(target.file), hint=problem.hint or NEXT_STEP)
    with closing(lookout_at(target.address)) as lookout:
        yield lookout


class Header(NamedTuple):
    """What was written last may still be in its log."""

    log_is_on: bool
    application: int


class Problem(NamedTuple):
    message: str
    hint: str = ""


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


def is_ours(path: Path) -> bool:
    start = header(path)
    return start is not None and (start.application == schema.APPLICATION_ID or Path(f"{path}-turn").exists())


def problem_with(path: Path) -> Problem | None:
    """Every database of ours keeps a write-ahead log; one without could not even be opened for reading only."""
    start = header(path)
    if start is not None and not start.log_is_on and start.application == schema.APPLICATION_ID:
        return Problem(
            f"Another program has turned the write-ahead log of {path} off.",
            "Start a worker: it turns the log on again. Then find out which program it was.",
        )
    if (start is not None and not start.log_is_on) or (path.is_file() and not path.stat().st_size):
        return Problem(f"{path} has none of Penstock's tables.")
    return None
