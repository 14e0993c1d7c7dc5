"""Named SQL statements, kept in .sql files beside the Python that runs them."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)
_SOURCE = Path(__file__).parent.parent.parent  # importlib.resources takes long to load
BOTH = "penstock.storage"  # what every database understands


def load(package: str, file: str, dialect: str = "") -> dict[str, str]:
    """The statements of one file by name, in the order they stand there. A line that begins with `--postgres` is for that
    dialect alone."""
    text = _SOURCE.joinpath(*package.split("."), file).read_text(encoding="utf-8")
    if dialect:
        text = text.replace(f"--{dialect} ", "")
    parts = _NAME.split(text)[1:]
    # The engine's texts carry their name, so that no user's text can ever share a cached statement with them.
    return {
        name: f"/* penstock {name} */ " + _COMMENT.sub("", body).strip().rstrip(";")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def load_all(package: str, dialect: str = "") -> dict[str, str]:
    """All statements of a store, by file and name: those for every database, and over them the store's own."""
    return {
        f"{file.name.removesuffix('.sql')}.{name}": sql
        for folder in (BOTH, package)
        for file in _SOURCE.joinpath(*folder.split(".")).glob("*.sql")
        for name, sql in load(folder, file.name, dialect).items()
    }
