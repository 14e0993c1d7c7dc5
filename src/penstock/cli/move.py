"""`penstock move`, `backup` and `restore`: a whole database from one place to another, with everything that waits in it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.command import CliCommand, refuse, this_output, this_user
from penstock.cli.output import Answer, Listed, progress
from penstock.cli.reference import load
from penstock.contracts.audit import Audit
from penstock.contracts.presence import Departed
from penstock.contracts.workers import WorkerRow
from penstock.model.migration import Migration
from penstock.moving.copying import Copied, MigrationsFor, copy, departed, let_go, migrations_of, rows_to_copy
from penstock.moving.files import copy_file
from penstock.moving.sqlite_end import SqliteEnd
from penstock.moving.tables import CannotMove
from penstock.moving.tables import copied as copied_tables
from penstock.stores import checked_address, is_address, lookout_at, store_at
from penstock.views.observer import Observer, Target, observe
from penstock.views.queues import processes
from penstock.views.view import Column, View, bytes_text

if TYPE_CHECKING:
    from penstock.moving.postgres_end import PostgresEnd

CHECKSUM_SHOWN = 16  # digits
TABLES = View(
    "tables",
    (
        Column("table", "table"),
        Column("rows", "rows", "count"),
        Column("checksum", "checksum", rank=1, of=lambda row: row["checksum"][:CHECKSUM_SHOWN]),
    ),
)


@click.command(cls=CliCommand)
@click.argument("source", metavar="SOURCE")
@click.argument("destination", metavar="TARGET")
@click.option("--app", "named", metavar="APP", help="The app whose migrations create your tables there.")
def move(source: str, destination: str, named: str | None) -> Answer:
    """Copy a whole database to another store.

    SOURCE is an app or a database, TARGET a file or the URL of an empty PostgreSQL database. Stop all workers first. Messages
    in every state are copied, with timers, objects, dead letters, counters, the history and your own tables, which the app's
    migrations create there. All of it is read back and compared. SOURCE stays as it is: name TARGET in PENSTOCK_DATABASE or
    penstock.toml before you start workers again.

    Example:
      penstock move market.py postgresql://ada@db.example/market
      penstock move market.db postgresql://ada@db.example/market --app market.py
      penstock move postgresql://ada@db.example/market market.db --app market.py
    """
    found = targets.find(source, None)
    app = load(named) if named is not None else found.app
    there = Target(destination, found.config)
    with targets.reading(found) as observer:
        listed = _refuse_if_alive(found, observer)
        gone = departed(observer.lookout.cells, [worker.id for worker in listed])
    if there.file is None and targets.is_there(there):
        with targets.reading(there) as observer:
            _refuse_if_alive(there, observer)
    copied = _transfer("moving", found, there, app, alone=True)
    return _arrived("move", "Moved", found, there, copied, gone)


@click.command(cls=CliCommand)
@click.argument("file", metavar="TARGET")
@targets.target_argument
@targets.database_option
def backup(file: str, target: str | None, database: str | None) -> Answer:
    """Save a database as it is at this moment into a file.

    Workers may run meanwhile. TARGET is a new file: a copy of a SQLite database, which can be used as it is, or the rows of a
    PostgreSQL one. `penstock restore TARGET` makes a database of it again.

    Example:
      penstock backup backups/2026-11-15.db market.py
      penstock backup backups/today.db --database postgresql://ada@db/market
    """
    if is_address(file):
        raise refuse("TARGET is a new file. To copy a database to a server, use `penstock move`.")
    found = targets.find(target, database)
    with targets.reading(found):
        pass  # it says what is wrong with the database
    rows: list[Copied] = []
    if found.file is None:
        rows = _keep_rows(found, Path(file))
    else:
        _copy_file("backup", found.file, Path(file), skip_tokens=False)
    size = Path(file).stat().st_size
    facts = {"source": found.database, "target": file, "bytes": size, "tables": [each._asdict() for each in rows]}
    done = f"Saved {found.database} in {file}, {bytes_text(size)}."
    return Answer(facts, done, f"Restore it with: penstock restore {file} APP")


def _keep_rows(found: Target, file: Path) -> list[Copied]:
    """Users' tables are kept as they come, without keys and rules: a restore creates those from the app's migrations."""
    with closing(_end_of(found)) as read, closing(SqliteEnd(file)) as write:
        read.begin_reading(alone=False)
        tables = copied_tables(read.tables())
        write.generic = {table.name: table for table in tables if not table.is_engines}
        write.make([Migration(name, checksum, ()) for name, checksum in read.applied()], now=0)
        with progress(this_output(), "backup", 2 * rows_to_copy(read)) as moved:
            return copy(read, write, kept=True, progress=moved)


@click.command(cls=CliCommand)
@click.argument("file", metavar="SOURCE")
@targets.target_argument
@targets.database_option
def restore(file: str, target: str | None, database: str | None) -> Answer:
    """Restore a database from a backup.

    It becomes the database of the app that is named, or the one in `--database`: a new file, or an empty PostgreSQL database.
    Messages that were leased at the moment of the backup are delivered again. A backup of one store can be restored on the
    other; your tables are then created by the app's migrations, so name the app.

    Example:
      penstock restore backups/2026-11-15.db market.py
      penstock restore backups/today.db --database postgresql://ada@db/market
    """
    app = load(target) if target is not None and not targets.is_database(target) else None
    named = database or (app.database if app is not None else None)
    there = targets.find(None if app is not None else target, named)
    source = Target(checked_address(file), there.config)
    return _arrived("restore", "Restored", source, there, _transfer("restoring", source, there, app, alone=False))


# -- what they share ----------------------------------------------------------------------------------------


def _transfer(doing: str, source: Target, there: Target, app: App | None, *, alone: bool) -> list[Copied]:
    """Copy row by row, or the file where both are SQLite."""
    with _reading(source, alone=alone) as read:
        if alone:  # once more, now that no process can begin
            with observe(source) as observer:
                _refuse_if_alive(source, observer)
        if source.file is not None and there.file is not None and read.origin == "sqlite":
            _copy_file(doing, source.file, there.file, skip_tokens=True)
            return []
        found: MigrationsFor | None = None if app is None else app._migrations_found
        with closing(_end_of(there)) as write:
            write.make(migrations_of(read, write.dialect, found), now=_now(there))
            with progress(this_output(), doing, 2 * rows_to_copy(read)) as moved:
                return copy(read, write, kept=False, progress=moved)


def _copy_file(doing: str, source: Path, target: Path, *, skip_tokens: bool) -> None:
    with progress(this_output(), doing, 1.0, "{:.0%}".format) as moved:
        copy_file(
            source, target, skip_tokens=skip_tokens, progress=lambda done, total: moved(done / total if total else 1.0)
        )


def _end_of(target: Target) -> SqliteEnd | PostgresEnd:
    if target.file is not None:
        return SqliteEnd(target.file)
    store_at(target.address)  # it says what to install where the driver is missing
    from penstock.moving.postgres_end import PostgresEnd

    return PostgresEnd(target.address)


@contextmanager
def _reading(source: Target, *, alone: bool) -> Iterator[SqliteEnd | PostgresEnd]:
    with targets.reading(source):
        pass  # it says what is wrong with the database
    with closing(_end_of(source)) as read:
        read.begin_reading(alone=alone)
        yield read


def _refuse_if_alive(found: Target, observer: Observer) -> list[WorkerRow]:
    listed = asyncio.run(processes(observer))
    # A file is on this host, whatever name the host had then: its locks can be checked here.
    alive = [worker for worker in listed if observer.lookout.is_alive(worker.id, socket.gethostname())]
    if alive:
        names = ", ".join(f"{worker.id} (pid {worker.pid} on {worker.host})" for worker in alive)
        raise CannotMove(
            f"Processes use {found.database}: {names}. Stop them first; nothing was written.", code="in_use"
        )
    return listed


def _arrived(
    verb: str, done: str, source: Target, there: Target, copied: Sequence[Copied], gone: Sequence[Departed] = ()
) -> Answer:
    """Release what dead workers held, with the audit of the command, and answer with what was copied."""
    now = _now(there)
    details = {"from": source.database}
    audit = Audit(os.urandom(16), now, this_user(), "cli", verb, "database", there.database, "", details)
    let_go(there.address, gone, now=now, audit=audit)
    tables = [each._asdict() for each in copied]
    rows = sum(each.rows for each in copied)
    facts: dict[str, Any] = {"source": source.database, "target": there.database, "rows": rows, "tables": tables}
    filled = [row for row in tables if row["rows"]]
    listed = [Listed(TABLES, filled)] if filled else []
    sentence = f"{done} {source.database} to {there.database}, read back and compared."
    return Answer(facts, sentence, *listed, f"Start workers with: PENSTOCK_DATABASE={there.database} penstock run APP")


def _now(there: Target) -> int:
    if there.file is not None:
        return time.time_ns() // 1_000
    with closing(lookout_at(there.address)) as lookout:
        now = lookout.server_time()
        assert now is not None
        return now
