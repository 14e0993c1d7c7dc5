"""What really arrived: a line in a file before any answer leaves, so that no kill of a process takes it back."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any


class Arrivals:
    """A list of arrivals, kept in a file if one is named. A server that starts again reads what it knew."""

    def __init__(self, path: Path | None = None) -> None:
        self.all: list[dict[str, Any]] = []
        self._file: int | None = None
        if path is not None:
            self.all = read_arrivals(path)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, server: str, **facts: Any) -> None:
        """Note one arrival."""
        self.all.append({"server": server, **facts})
        if self._file is not None:
            os.write(self._file, json.dumps(self.all[-1]).encode() + b"\n")  # one call: a line is whole or not there

    def of(self, server: str) -> list[dict[str, Any]]:
        """Return what arrived at one server."""
        return [each for each in self.all if each["server"] == server]

    def doubled(self) -> list[tuple[str, str]]:
        """Return each server with the fire that it got more than once: the same reminder, for the same time."""
        counts = Counter((each["server"], each["about"]) for each in self.all if each.get("about"))
        return [counted for counted, times in counts.items() if times > 1]

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_arrivals(path: Path) -> list[dict[str, Any]]:
    """Return the arrivals in a file, without a last line that a kill cut off."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
