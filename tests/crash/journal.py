"""A journal beside the database: lines that survive the process that wrote them, with times that all processes share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.extent import patient

JOURNAL_VARIABLE = "VICTIM_JOURNAL"


class Entry(msgspec.Struct, omit_defaults=True):
    """`at` is seconds on the machine's monotonic clock, the same for every process."""

    what: str
    at: float
    pid: int
    queue: str = ""
    number: int = 0
    id: str = ""
    seq: int = 0
    attempt: int = 0
    crashes: int = 0
    worker: int = 0
    released: int = 0
    suspected: int = 0
    charged: int = 0
    dead: int = 0
    exit_code: int = 0
    reason: str = ""
    error: str = ""


class Journal:
    """The writing end. One write a line, so lines of different processes never mix. A kill can tear a line where a page
    of the file ends, so every line also begins with a line's end: what follows a torn one is whole."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def note(self, what: str, **facts: Any) -> None:
        entry = {"what": what, "at": time.monotonic(), "pid": facts.pop("pid", os.getpid()), **facts}
        os.write(self._file, b"\n" + msgspec.json.encode(entry, enc_hook=str) + b"\n")


class JournalReader:
    """The reading end: remembers everything it has seen, and waits for what has not happened yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.touch()
        self._decode = msgspec.json.Decoder(Entry).decode
        self._read_to = 0
        self._rest = b""
        self._entries: dict[str, list[Entry]] = {}

    def _catch_up(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            text = file.read()
        self._read_to += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in filter(_is_whole, lines):
            entry = self._decode(line)
            self._entries.setdefault(entry.what, []).append(entry)

    def all(self, what: str, *, after: float = 0.0, **facts: object) -> list[Entry]:
        self._catch_up()
        return [
            entry
            for entry in self._entries.get(what, ())
            if entry.at >= after and all(getattr(entry, name) == value for name, value in facts.items())
        ]

    def wait(self, what: str, *, count: int = 1, seconds: float = 20.0, after: float = 0.0, **facts: object) -> Entry:
        """The count-th entry that fits, as soon as it is there."""
        found: list[Entry] = []

        def there() -> bool:
            found[:] = self.all(what, after=after, **facts)
            return len(found) >= count

        wait_until(there, f"{count} × {what} with {facts}", seconds)
        return found[count - 1]


def _is_whole(line: bytes) -> bool:
    """Its writer was not killed in the middle of it. No entry holds an object, so a brace at the end is the end."""
    return line.endswith(b"}")


def wait_until(condition: Callable[[], object], what: str, seconds: float = 20.0, *, every: float = 0.003) -> None:
    """Looks every few milliseconds. The deadline is there to fail, never to make a test pass, and later on a busy machine."""
    ends = time.monotonic() + patient(seconds)
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError(f"after {seconds:g} s there is still no {what}")
        time.sleep(every)
