"""Copies a SQLite file as it is at one moment, with its history, while others go on writing to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.model.errors import StoreCorrupt
from penstock.moving.copying import TOKENS_APART
from penstock.moving.sqlite_end import put_in_place, remove
from penstock.moving.tables import CannotMove
from penstock.storage.sqlite import connection, history

PAGES = 1_000  # copied at once: others get their turn in between
SKIP_TOKENS = "update penstock_tokens set last = last + :apart"

Progress = Callable[[int, int], None]


def copy_file(source: Path, target: Path, *, skip_tokens: bool, progress: Progress) -> int:
    """Gives the size of the copy. With `skip_tokens` it begins with tokens that no client can hold."""
    for path in (target, history.path_of(target)):
        if path.exists():
            raise CannotMove(f"{path} already exists. Move it away, or name another file; nothing was written.")
    filling = Path(f"{target.absolute()}-filling")
    parts = [(source, filling), (history.path_of(source), history.path_of(filling))]
    try:
        for read, made in parts:
            if read.exists():
                _copy(read, made, progress)
        if skip_tokens:
            with connection.translated(filling):
                changed = connection.open_file(filling)
                changed.execute(SKIP_TOKENS, {"apart": TOKENS_APART})
                changed.close(True)
        size = filling.stat().st_size
        put_in_place(filling, target.absolute())
    finally:
        for _, made in parts:
            remove(made)
    return size


def _copy(source: Path, made: Path, progress: Progress) -> None:
    remove(made)
    with connection.translated(source):
        read = connection.connect(source.absolute(), synchronous="full", vfs=None, read_only=True)
        written = connection.open_file(made)
        try:
            read.execute("begin")
            read.execute("select count(*) from sqlite_schema").fetchall()  # from here on it is one moment
            with written.backup("main", read, "main") as backup:
                while not backup.done:
                    backup.step(PAGES)
                    progress(backup.page_count - backup.remaining, backup.page_count)
            answer = written.execute("pragma quick_check(1)").fetchall()
        finally:
            read.close(True)
            written.close(True)
    if answer != [("ok",)]:
        raise StoreCorrupt(f"{source} is damaged: {answer[0][0]}. The copy was deleted.", path=str(source))
