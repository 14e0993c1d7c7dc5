"""`penstock backup` and `penstock restore`: a database as it is at one moment, in one file; and a database from that file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from penstock.cli import target as targets
from penstock.cli.move import draw, end_of, settle_in, told, transfer
from penstock.cli.operating import progress, refuse
from penstock.cli.output import Output, bytes_shown, plain
from penstock.cli.reference import load
from penstock.model.migration import Migration
from penstock.moving.copying import Copied, copy, rows_to_copy
from penstock.moving.files import copy_file
from penstock.moving.sqlite_end import SqliteEnd
from penstock.moving.tables import copied as copied_tables
from penstock.stores import checked_address, is_address


@click.command()
@click.argument("file", metavar="TARGET")
@targets.target_argument
@targets.database_option
@click.pass_obj
def backup(output: Output, file: str, target: str | None, database: str | None) -> None:
    """Save a database as it is at this moment into a file.

    Workers may go on meanwhile. TARGET is a file that is not there yet: a copy of a SQLite database, which can be used as
    it is, or the rows of a PostgreSQL one. `penstock restore TARGET` makes a database of it again.

    \b
    Example:
      penstock backup backups/2026-11-15.db market.py
      penstock backup backups/2026-11-15.db --database postgresql://ada@db.example/market
    """
    if is_address(file):
        raise refuse("TARGET is a file to be made. To copy a database to a server, use `penstock move`.")
    found = targets.find(target, database)
    with targets.reading(found):
        pass  # says what is wrong with it
    rows = [] if found.file is not None else _keep_rows(output, found, Path(file))
    if found.file is not None:
        with progress(output, "copying", None) as moved:
            copy_file(found.file, Path(file), skip_tokens=False, told=lambda done, _: moved(done))
    size = Path(file).stat().st_size
    facts: dict[str, Any] = {"source": found.database, "target": file, "bytes": size}
    facts["tables"] = [each._asdict() for each in rows]
    sentence = f"Saved {plain(found.database)} in {plain(file)}, {bytes_shown(size)}."
    output.show(facts, lambda console: console.print(sentence, soft_wrap=True))


def _keep_rows(output: Output, found: targets.Target, file: Path) -> list[Copied]:
    """Users' tables are kept as they come, without keys and rules: a restore makes those from the app's migrations."""
    with closing(end_of(found)) as read, closing(SqliteEnd(file)) as write:
        read.begin_reading(alone=False)
        tables = copied_tables(read.tables())
        write.generic = {table.name: table for table in tables if not table.is_engines}
        applied = [Migration(name, checksum, ()) for name, checksum in read.applied()]
        write.make(applied, now=0)
        with progress(output, "saving", 2 * rows_to_copy(read)) as moved:
            return copy(read, write, kept=True, told=moved)


@click.command()
@click.argument("file", metavar="SOURCE")
@targets.target_argument
@targets.database_option
@click.pass_obj
def restore(output: Output, file: str, target: str | None, database: str | None) -> None:
    """Make a database of a backup.

    It becomes the database of the app that is named, or the one that `--database` names: a file that is not there yet, or
    a PostgreSQL database with nothing in it. Messages that were under way at the moment of the backup run again. A backup of
    one store can be restored on the other; your tables are then made by the app's migrations, so name the app.

    \b
    Example:
      penstock restore backups/2026-11-15.db market.py
      penstock restore backups/2026-11-15.db market.py --database postgresql://ada@db.example/market
    """
    app = load(target) if target is not None and not targets.is_database(target) else None
    named = database or (app.database if app is not None else None)
    there = targets.find(None if app is not None else target, named)
    source = targets.Target(checked_address(file), there.config)
    rows = transfer(output, "restoring", source, there, app, alone=False)
    settle_in(there, (), "restore", source)
    output.show(told(source, there, rows), lambda console: draw(console, "Restored to", there, rows))
