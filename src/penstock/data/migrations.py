"""Reads the migrations that stand beside an app, in their order, and applies what is pending."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.model.errors import BadMigration
from penstock.model.migration import Migration, for_dialect, plan, read
from penstock.runtime.audit import audit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine


async def apply(engine: Engine, found: Sequence[Migration], *, counts_kept: Sequence[str] = ()) -> list[str]:
    """Applies what is pending, then sees to the counts that are kept of the tables; the names of what was applied."""
    upkeep = engine.writer.upkeep
    pending = plan(found, await engine.in_writer(upkeep.applied))
    done: list[str] = []
    if pending:
        noted = audit(engine, "migrate", "database", "", applied=[each.name for each in pending])
        migrate = partial(upkeep.migrate, pending, now=engine.clock.now())
        done = await engine.in_writer(engine.writer.audited, noted, migrate)
    if counts_kept:
        await engine.in_writer(upkeep.keep_counts, counts_kept)
    return done


def found_in(folder: Path, dialect: str) -> list[Migration]:
    """The migrations of a folder for one database; none where there is no folder."""
    if not folder.is_dir():
        return []
    files = sorted(path for path in folder.iterdir() if path.suffix == ".sql")
    return for_dialect([_read(path) for path in files], "sqlite" if dialect == "sqlite" else "postgres")


def _read(path: Path) -> Migration:
    try:
        return read(path.name, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise BadMigration(
            f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.", name=path.name
        ) from error
