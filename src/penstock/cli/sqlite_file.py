"""What the first bytes of a SQLite file tell, before SQLite itself opens it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from penstock.storage.sqlite import schema


class Header(NamedTuple):
    """What was written last may still be in its log."""

    log_is_on: bool
    application: int


class Problem(NamedTuple):
    message: str
    hint: str = ""


def header(path: Path) -> Header | None:
    """Reads without SQLite. Only while SQLite has the file not open here: closing it would drop SQLite's locks."""
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
    """Every database of ours keeps a write-ahead log; one without could not even be opened for reading only."""
    start = header(path)
    if start is not None and not start.log_is_on and start.application == schema.APPLICATION_ID:
        return Problem(
            f"Another program has turned the write-ahead log of {path} off.",
            "Start a worker: it turns the log on again. Then find out which program it was.",
        )
    if (start is not None and not start.log_is_on) or (path.is_file() and not path.stat().st_size):
        return Problem(f"{path} has none of Penstock's tables.")
    return None
