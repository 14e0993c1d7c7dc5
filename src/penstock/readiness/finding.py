"""What a check before a deploy has found: where it is, what is wrong with it, and the way out."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    file: str
    line: int
    message: str
    fix: str
