"""An app with tables of its own in a temporary folder, for tests of the user's database and of the command line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import penstock as ps
from penstock.config import Config
from tests.extent import patient

T = TypeVar("T")

APPS = """
create table apps (
  id integer primary key, title text, price real, icon blob, facts text, seen_at text, description text
);
create index apps_seen on apps (seen_at);
"""


# Where tests that run on a server keep their database; None for a file.
SERVER: ContextVar[str | None] = ContextVar("SERVER", default=None)


def market(folder: Path, sql: str = APPS, *, profile: str = "local", **limits: Any) -> ps.App:
    """Nothing waits for the disk here: what a power cut does is tested elsewhere."""
    migrations = folder / "migrations"
    migrations.mkdir(exist_ok=True)
    (migrations / "0001_market.sqlite.sql").write_text(sql)
    (migrations / "0001_market.postgres.sql").write_text(on_server(sql))
    config = Config(synchronous="off", profile=profile, overrides=limits)
    database = SERVER.get() or str(folder / "market.db")
    return ps.App("market", database=database, migrations=migrations, config=config)


def on_server(sql: str) -> str:
    """The same tables in the words of PostgreSQL."""
    for ours, theirs in ((" blob", " bytea"), (" real", " double precision"), (" integer", " bigint")):
        sql = sql.replace(ours, theirs)
    return sql


def run(app: ps.App, work: Coroutine[Any, Any, T]) -> T:
    """Opens the app, does the work and closes it."""

    async def main() -> T:
        async with app:
            return await work

    try:
        return asyncio.run(main())
    finally:
        work.close()  # where the app could not be opened it never began


async def add(app: ps.App, *rows: dict[str, Any], table: str = "apps") -> None:
    async with app.unit():
        app.db.insert_many(table, rows)


def python(script: str, folder: Path, *, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, with no setting of ours in its environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**clean, **environ},
        capture_output=True,
        text=True,
        check=check,
        timeout=patient(60),
    )
