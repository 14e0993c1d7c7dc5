"""An app with tables of its own in a temporary folder, for tests of the user's database and of the command line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import penstock as ps
from penstock.config import Config

T = TypeVar("T")

APPS = """
create table apps (
  id integer primary key, title text, price real, icon blob, facts text, seen_at text, description text
);
create index apps_seen on apps (seen_at);
"""


def market(folder: Path, sql: str = APPS, *, profile: str = "local", **limits: Any) -> ps.App:
    """Nothing waits for the disk here: what a power cut does is tested elsewhere."""
    migrations = folder / "migrations"
    migrations.mkdir(exist_ok=True)
    (migrations / "0001_market.sql").write_text(sql)
    config = Config(synchronous="off", profile=profile, overrides=limits)
    return ps.App("market", database=folder / "market.db", migrations=migrations, config=config)


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
        timeout=60,
    )
