"""`penstock move`: a whole database from one store to the other, with everything that waits in it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.lookout import lookout_at
from penstock.cli.operating import progress, this_user
from penstock.cli.output import Output, fill, plain, table
from penstock.cli.reference import load
from penstock.contracts.audit import Audit
from penstock.contracts.presence import Departed
from penstock.contracts.workers import WorkerRow
from penstock.data import overview
from penstock.moving.copying import Copied, MigrationsFor, copy, departed, let_go, migrations_of, rows_to_copy
from penstock.moving.files import copy_file
from penstock.moving.sqlite_end import SqliteEnd
from penstock.moving.tables import CannotMove
from penstock.stores import store_at

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.moving.postgres_end import PostgresEnd

app_option = click.option("--app", "named", metavar="APP", help="The app whose migrations make your tables there.")


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("destination", metavar="TARGET")
@app_option
@click.pass_obj
def move(output: Output, source: str, destination: str, named: str | None) -> None:
    """Copy a whole database to another store.

    SOURCE is an app or a database, TARGET a file or a URL of PostgreSQL with nothing in it. Stop all workers first. Messages
    in every state go along, as do timers, objects, dead letters, counters, the history and your own tables, which the app's
    migrations make there. All of it is read back and compared. SOURCE stays as it is: name TARGET in PENSTOCK_DATABASE or
    penstock.toml before you start workers again.

    \b
    Example:
      penstock move market.py postgresql://ada@db.example/market
      penstock move market.db postgresql://ada@db.example/market --app market.py
      penstock move postgresql://ada@db.example/market market.db --app market.py
    """
    found = targets.find(source, None)
    app = load(named) if named is not None else found.app
    there = targets.Target(destination, found.config)
    gone = _nobody_works_on(found)
    _nobody_works_there(there)
    copied = transfer(output, "moving", found, there, app, alone=True)
    settle_in(there, gone, "move", found)
    output.show(told(found, there, copied), lambda console: draw(console, "Moved to", there, copied))


# -- what `restore` does too ------------------------------------------------------------------------------


def transfer(
    output: Output, doing: str, source: targets.Target, there: targets.Target, app: App | None, *, alone: bool
) -> list[Copied]:
    """Row by row, or as a file where both are of one kind."""
    with _reading(source, alone=alone) as read:
        if alone:  # once more, now that nobody new can begin
            with targets.reading_again(source) as reading:
                _refuse_if_alive(source, reading)
        if source.file is not None and there.file is not None and read.origin == "sqlite":
            with progress(output, doing, None) as moved:
                copy_file(source.file, there.file, skip_tokens=True, told=lambda done, _: moved(done))
            return []
        found: MigrationsFor | None = None if app is None else app.migrations_found
        with closing(end_of(there)) as write:
            write.make(migrations_of(read, write.dialect, found), now=_now(there))
            with progress(output, doing, 2 * rows_to_copy(read)) as moved:
                return copy(read, write, kept=False, told=moved)


def end_of(target: targets.Target) -> SqliteEnd | PostgresEnd:
    if target.file is not None:
        return SqliteEnd(target.file)
    store_at(target.address)  # says what to install if it is not there
    from penstock.moving.postgres_end import PostgresEnd

    return PostgresEnd(target.address)


@contextmanager
def _reading(source: targets.Target, *, alone: bool) -> Iterator[SqliteEnd | PostgresEnd]:
    with targets.reading(source):
        pass  # says what is wrong with it
    with closing(end_of(source)) as read:
        read.begin_reading(alone=alone)
        yield read


def _nobody_works_on(source: targets.Target) -> list[Departed]:
    """Refuses to move what somebody works on; what those had begun who are gone."""
    with targets.reading(source) as reading:
        listed = _refuse_if_alive(source, reading)
        return departed(reading.lookout.cells, [worker.id for worker in listed])


def _nobody_works_there(there: targets.Target) -> None:
    if there.file is None and targets.is_there(there):
        with targets.reading(there) as reading:
            _refuse_if_alive(there, reading)


def _refuse_if_alive(found: targets.Target, reading: targets.OnlyReading) -> list[WorkerRow]:
    listed = asyncio.run(overview.processes(reading))
    # A file is on this host whatever name the host had then: its locks can be asked for here.
    alive = [worker for worker in listed if reading.lookout.is_alive(worker.id, socket.gethostname())]
    if alive:
        names = ", ".join(f"{worker.id} (pid {worker.pid} on {worker.host})" for worker in alive)
        raise CannotMove(
            f"Processes work on {found.database}: {names}. Stop them first; nothing was written.", code="in_use"
        )
    return listed


def settle_in(there: targets.Target, gone: Sequence[Departed], verb: str, source: targets.Target) -> None:
    now = _now(there)
    details = {"from": source.database}
    audit = Audit(os.urandom(16), now, this_user(), "cli", verb, "database", there.database, "", details)
    let_go(there.address, gone, now=now, audit=audit)


def _now(there: targets.Target) -> int:
    if there.file is not None:
        return time.time_ns() // 1_000
    with closing(lookout_at(there.address)) as lookout:
        now = lookout.server_time()
        assert now is not None
        return now


def told(source: targets.Target, there: targets.Target, copied: Sequence[Copied]) -> dict[str, Any]:
    return {
        "source": source.database,
        "target": there.database,
        "rows": sum(each.rows for each in copied),
        "tables": [each._asdict() for each in copied],
    }


def draw(console: Console, deed: str, there: targets.Target, copied: Sequence[Copied]) -> None:
    console.print(f"{deed} {plain(there.database)}, read back and compared.")
    if copied:
        rows = [(each.table, f"{each.rows:,}", each.checksum[:16]) for each in copied if each.rows]
        console.print(fill(table(("table", "left"), ("rows", "right"), ("checksum", "left")), rows))
    console.print(f"Start workers with PENSTOCK_DATABASE={plain(there.database)}.", soft_wrap=True)
