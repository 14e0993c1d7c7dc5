"""`penstock migrate`: the migrations that an app's database has, and those that are pending."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.command import CliCommand, by_this_user
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Listed, Title
from penstock.cli.reference import load
from penstock.data.migrations import apply
from penstock.model.errors import BadMigration
from penstock.model.migration import Migration, lint, plan
from penstock.model.redaction import address_shown
from penstock.model.statement import one_line
from penstock.stores import is_postgres
from penstock.views.observer import Target
from penstock.views.view import Column, View, counted

APPLIED = "select name, checksum from penstock_migrations order by name"
LOCK_SECONDS = "set local lock_timeout = '5s'"  # a worker's transaction waits no longer


MIGRATIONS = View(
    "migrations",
    (Column("name", "migration"), Column("state", "", "state")),
    empty="There are no migrations. Write the first: migrations/0001_start.sql beside the app.",
)


@click.command(cls=CliCommand)
@click.argument("app", metavar="APP")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if any is pending, 2 if it cannot be applied.")
def migrate(app: str, check: bool) -> Answer:
    """Apply the SQL files in the migrations folder beside an app.

    Files are applied in the order of their numbers, each once and each in one transaction. A file that was applied must not
    change: write a new one. `penstock run` does the same when it starts.

    Example:
      penstock migrate market.py --check
      penstock migrate market.py
    """
    loaded = load(app)
    _refuse_problems(loaded)
    found = loaded._migrations_found(loaded._store().dialect)
    before = asyncio.run(_applied(loaded))
    planned = plan(found, before)
    pending = [migration.name for migration in planned]
    try:
        if check and pending:
            _try_out(loaded, planned)
        done = [] if check else asyncio.run(_apply(loaded))
    except BadMigration as error:
        raise _located(loaded, error) from error
    left = [name for name in pending if name not in done]
    database, applied = address_shown(loaded.database), [name for name, _ in before]
    facts = {
        "database": database,
        "folder": str(loaded.migrations),
        "applied": applied + done,
        "applied_now": done,
        "pending": left,
    }
    rows = [{"name": name, "state": "applied"} for name in applied]
    rows += [{"name": name, "state": "applied now"} for name in done] + [
        {"name": each, "state": "pending"} for each in left
    ]
    after = f"Applied {counted(len(done), 'migration')} to {database}." if done else ""
    next_step = f"Apply with: penstock migrate {app}" if left else after
    parts = [
        Title(f"{database}, from {loaded.migrations}"),
        "",
        Listed(MIGRATIONS, rows),
        *(["", next_step] if next_step else []),
    ]
    return Answer(facts, *parts, code=BAD_ANSWER if left else FINE)


def _refuse_problems(app: App) -> None:
    """Raise BadMigration with every problem in the files and its line: found_in stops at the first."""
    problems = [
        f"{path}:{problem.line}: {problem.message} {problem.fix}".rstrip()
        for path in sorted(app.migrations.glob("*.sql"))
        for problem in lint(path.read_text(encoding="utf-8", errors="replace"))
    ]
    if problems:
        raise BadMigration("\n".join([f"{len(problems)} problems in the migrations:", *problems]), problems=problems)
    app._migrations_found(app._store().dialect)


def _try_out(app: App, pending: Sequence[Migration]) -> None:
    """Run pending migrations and keep nothing: in a temporary SQLite file, or in a transaction that is rolled back."""
    if is_postgres(app.database):
        try_out(app.database, pending)
        return
    with TemporaryDirectory(prefix="penstock-check-") as folder:
        before, app.database = app.database, str(Path(folder, "check.db"))
        try:
            asyncio.run(_apply(app))
        finally:
            app.database = before


def _located(app: App, error: BadMigration) -> BadMigration:
    """Name the file and the line of the statement that the database refused."""
    statement = str(error.facts.get("statement") or "")
    for path in sorted(app.migrations.glob("*.sql")) if statement else ():
        text = path.read_text(encoding="utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
        if path.name.startswith(f"{error.facts['name']}.") and (at := text.find(statement)) >= 0:
            return BadMigration(f"{path}:{text.count(chr(10), 0, at) + 1}: {error}", **error.facts)
    return error


async def _applied(app: App) -> list[tuple[str, str]]:
    target = Target(app.database, app.config, app)
    if not targets.is_there(target):
        return []
    with targets.reading(target) as reading:
        return [(row.name, row.checksum) for row in await reading.rows(APPLIED)]


async def _apply(app: App) -> list[str]:
    engine = await app._open(migrate=False)
    try:
        with by_this_user():
            return await apply(engine, app._migrations_found(engine.store.dialect), counts_kept=app.db.counts_kept)
    finally:
        await app.close()


def try_out(address: str, migrations: Sequence[Migration]) -> None:
    """Run every statement and keep nothing. Raise BadMigration for the first that the server refuses."""
    import psycopg  # of the extra `postgres`

    from penstock.storage.postgres.connection import PostgresSettings, connect, first_line

    with closing(connect(PostgresSettings(address))) as connection:
        connection.execute("begin")
        connection.execute(LOCK_SECONDS)
        for migration in migrations:
            for statement in migration.statements:
                try:
                    connection.execute(statement.encode())
                except psycopg.Error as error:
                    raise BadMigration(
                        f"{migration.name}: {first_line(error)}. The statement was: {one_line(statement)}.",
                        name=migration.name,
                        statement=statement,
                    ) from error
