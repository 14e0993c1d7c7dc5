"""The plots of the pace bench: shares as bars, and what was done a second against the hidden limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw_shares(trials: Any, path: Path) -> None:
    pass


def draw_pace(trials: Any, path: Path) -> None:
    pass
