"""Which app and which database a command means, and whether the database can be read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from penstock.cli.reference import APPS, is_module, load
from penstock.config import Config
from penstock.contracts.store import Lookout
from penstock.model.errors import BadConfig, SchemaTooOld, StoreUnavailable
from penstock.storage.schema import VERSION
from penstock.storage.sqlite import schema
from penstock.stores import checked_address, is_address, lookout_at
from penstock.views.observer import Observer, Target, observe

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
NEXT_STEP = (
    "Name it (`--database market.db`), set PENSTOCK_DATABASE, or create one: `penstock run market.py` does when it first "
    "runs."
)

target_argument = click.argument("target", required=False, metavar="[APP | DATABASE]")
database_option = click.option("--database", metavar="PATH|URL", help="The database, instead of the app's.")


def find(target: str | None, database: str | None, *, usual: str | None = None) -> Target:
    """By option, argument, PENSTOCK_DATABASE, penstock.toml, the file that is usual if it is there, or the only Penstock
    database in this folder."""
    if database is None and target is not None and not is_database(target):
        app = load(target)
        return Target(app.database, app.config, app)
    config = Config.load()
    there = usual if usual is not None and Path(usual).is_file() else None
    named = database or target or os.environ.get("PENSTOCK_DATABASE") or config.database or there or _only_one_here()
    if named is None:
        raise StoreUnavailable(f"There is no Penstock database in {os.getcwd()}.", hint=NEXT_STEP)
    return Target(checked_address(named), config)


def is_database(target: str) -> bool:
    """Return whether a word names a database rather than an app."""
    if is_address(target) or target.endswith((".db", ".sqlite", ".sqlite3")):
        return True
    return Path(target).is_file() and not target.endswith(".py")


def names_target(word: str) -> bool:
    """Return whether a word that may also be an object's name is written as an app or a database is: market.py, market.db,
    package:app."""
    if is_database(word) or word.partition(":")[0].endswith(".py") or word in APPS:
        return True
    return _REFERENCE.fullmatch(word) is not None and is_module(word.partition(":")[0])


def split(words: Sequence[str], *, least: int = 1) -> tuple[list[str], str | None]:
    """Return the names, at least `least`, and the app or database that the last word may be."""
    if len(words) > least and names_target(words[-1]):
        return list(words[:-1]), words[-1]
    return list(words), None


def _only_one_here() -> str | None:
    found = [path for path in sorted(Path().glob("*.db")) if is_ours(path)]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise BadConfig(
            f"There are several databases here: {names}. Name one: `--database {found[0].name}`.",
            hint="Or name the app, or set PENSTOCK_DATABASE.",
        )
    return found[0].name if found else None


@contextmanager
def reading(target: Target) -> Iterator[Observer]:
    """Open the database for reading, or raise why it cannot be read."""
    with _looking(target) as lookout:
        found = lookout.schema_version()
        if not found:
            raise StoreUnavailable(f"{target.database} has none of Penstock's tables.", hint=NEXT_STEP)
        if found < VERSION:
            raise SchemaTooOld(
                f"{target.database} has schema {found} of an older Penstock; this one reads {VERSION}.",
                hint="`penstock migrate APP` or `penstock run APP` upgrades it. Keep a backup of the file.",
            )
    with observe(target) as opened:
        yield opened


def is_there(target: Target) -> bool:
    """Return whether the database exists and has Penstock's tables."""
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
    """The first bytes of a database file. What was written last may still be in its log."""

    log_is_on: bool
    application: int


class Problem(NamedTuple):
    message: str
    hint: str = ""


def header(path: Path) -> Header | None:
    """Read without SQLite. Only while SQLite has the file not open here: closing it would drop SQLite's locks."""
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
    """Every Penstock database keeps a write-ahead log; one without could not even be opened for reading only."""
    start = header(path)
    if start is not None and not start.log_is_on and start.application == schema.APPLICATION_ID:
        return Problem(
            f"Another program has turned the write-ahead log of {path} off.",
            "Start a worker: it turns the log on again. Then find out which program it was.",
        )
    if (start is not None and not start.log_is_on) or (path.is_file() and not path.stat().st_size):
        return Problem(f"{path} has none of Penstock's tables.")
    return None
