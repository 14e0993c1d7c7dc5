"""Bars on a time axis, as numbers for SVG: a page under a strict policy may not set a width by style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.model.times import iso_z
from penstock.views.view import span_text, took_text

WIDTH = 1_000.0  # of the axis, in its own unit
LEAST = 3.0  # of a bar that is too short to see
STEPS = (
    *(size * unit for unit in (0.001, 0.01, 0.1) for size in (1, 2, 5)),
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 6 * 3_600, 12 * 3_600, 86_400, 7 * 86_400),
)
MARKS = 5  # on an axis, at most


@dataclass(frozen=True, slots=True)
class Bar:
    """`begins` and `ends` are microseconds; `x` and `width` follow from all bars of an axis."""

    name: str
    state: str
    begins: int
    ends: int
    depth: int = 0
    id: str = ""
    note: str = ""
    kind: str = ""
    attempts: int = 1
    is_open: bool = False
    x: float = 0.0
    width: float = 0.0

    def row(self) -> dict[str, Any]:
        times = {"begins": iso_z(self.begins), "ends": iso_z(self.ends)}
        places = {"x": round(self.x, 2), "width": round(self.width, 2)}
        return asdict(self) | times | places | {"took": took_text((self.ends - self.begins) / 1_000)}


def bars_of(bars: Sequence[Bar], *, since: int | None = None, until: int | None = None) -> list[Bar]:
    """Return the bars with their places on one axis."""
    if not bars:
        return []
    first = min(bar.begins for bar in bars) if since is None else since
    last = max(bar.ends for bar in bars) if until is None else until
    scale = WIDTH / max(1, last - first)
    placed = []
    for bar in bars:
        width = max(LEAST, (bar.ends - bar.begins) * scale)
        placed.append(replace(bar, x=min((bar.begins - first) * scale, WIDTH - LEAST), width=min(width, WIDTH)))
    return placed


def seconds_of(bars: Sequence[Bar]) -> float:
    """Return how long the axis is on which these bars were placed."""
    widest = max(bars, key=lambda bar: bar.ends - bar.begins, default=None)
    if widest is not None and widest.width > LEAST:
        return (widest.ends - widest.begins) / 1_000_000 / widest.width * WIDTH
    ordered = sorted(bars, key=lambda bar: bar.begins)
    if len(ordered) < 2 or ordered[0].x == ordered[-1].x:
        return 0.0
    return (ordered[-1].begins - ordered[0].begins) / 1_000_000 / (ordered[-1].x - ordered[0].x) * WIDTH


def marks(seconds: float) -> list[tuple[float, str]]:
    """Return the places of an axis that are named, and their names."""
    step = next((each for each in STEPS if seconds / each <= MARKS), STEPS[-1])
    count = min(MARKS, int(seconds // step)) if seconds > 0 else 0
    return [(round(index * step / seconds * WIDTH, 1), _mark(index * step)) for index in range(1, count + 1)]


def _mark(seconds: float) -> str:
    return f"{seconds * 1_000:g} ms" if seconds < 1 else span_text(seconds)
