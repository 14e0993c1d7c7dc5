"""Reads the migrations that stand beside an app, in their order."""

from __future__ import annotations

from pathlib import Path

from penstock.model.errors import BadMigration
from penstock.model.migration import Migration, for_dialect, read


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
