"""Bar charts as SVG, drawn by hand: panels of horizontal bars, with the rounds as dots and the limit as a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH = 860
MARGIN = 28
LABELS = 300  # room for the names on the left
VALUES = 90  # and for the figures on the right
LINE = 30
THICK = 14
SPACE = 26  # between two panels

INK, PALE, GRID = "#1f2933", "#66727f", "#dfe4e9"
OURS, BESIDE, LIMIT = "#1f77a4", "#a9b6c2", "#c2410c"
# By daylight as above; at night the same shapes on a dark ground, wherever the file is shown.
AT_NIGHT = {
    "#ffffff": "#14191f",
    INK: "#e3e8ed",
    PALE: "#9aa7b4",
    GRID: "#2f3944",
    OURS: "#4aa8d8",
    BESIDE: "#5d6b78",
    LIMIT: "#f0814a",
}
FONT = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


Across = Callable[[float], float]  # where on the page a value lies


@dataclass(frozen=True, slots=True)
class Line:
    """One bar. `dots` are single measurements, `limit` is what it had to reach or stay under, `pale` bars are there to
    be compared with."""

    label: str
    value: float
    shown: str
    dots: Sequence[float] = ()
    limit: float | None = None
    pale: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """`logarithmic` where the longest bar is a hundred times the shortest: the grid then goes up by tens."""

    title: str
    note: str
    lines: Sequence[Line]
    logarithmic: bool = False

    @property
    def height(self) -> int:
        return 50 + LINE * len(self.lines)

    @property
    def most(self) -> float:
        return max(max(line.value, line.limit or 0.0, *line.dots, 1e-9) for line in self.lines)

    @property
    def least(self) -> float:
        return min(min(line.value, *line.dots, math.inf) for line in self.lines)


def draw(title: str, subtitle: str, panels: Sequence[Panel], path: Path) -> Path:
    height = 2 * MARGIN + 44 + sum(panel.height + SPACE for panel in panels) - SPACE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'style="{FONT}">',
        night(),
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(MARGIN, MARGIN + 14, title, size=19, bold=True),
        _text(MARGIN, MARGIN + 34, subtitle, size=12, colour=PALE),
    ]
    top = MARGIN + 44 + 14
    for panel in panels:
        parts += _panel(panel, top)
        top += panel.height + SPACE
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")
    return path


def night() -> str:
    rules = "".join(
        f'[{name}="{by_day}"]{{{name}:{dark}}}' for by_day, dark in AT_NIGHT.items() for name in ("fill", "stroke")
    )
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


def _panel(panel: Panel, top: int) -> list[str]:
    left, right = MARGIN + LABELS, WIDTH - MARGIN - VALUES
    ticks, share = _logarithmic(panel) if panel.logarithmic else _linear(panel)
    floor = top + panel.height - 6

    def across(value: float) -> float:
        return left + (right - left) * share(value)

    parts = [
        _text(MARGIN, top + 8, panel.title, size=14, bold=True),
        _text(MARGIN, top + 24, panel.note, size=11, colour=PALE),
    ]
    for tick in ticks:
        x = across(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{top + 34}" x2="{x:.1f}" y2="{floor - 12}" stroke="{GRID}"/>')
        parts.append(_text(x, floor + 2, _short(tick), size=10, colour=PALE, anchor="middle"))
    for number, line in enumerate(panel.lines):
        parts += _line(line, top + 38 + LINE * number, left, right, across)
    return parts


def _linear(panel: Panel) -> tuple[list[float], Callable[[float], float]]:
    """The grid, and how far along it a value lies, from 0 to 1."""
    step = _step(panel.most)
    end = step * -(-panel.most // step)
    return [tick * step for tick in range(round(end / step) + 1)], lambda value: value / end


def _logarithmic(panel: Panel) -> tuple[list[float], Callable[[float], float]]:
    # A little below the least, so that the shortest bar can be seen.
    first = math.floor(math.log10(panel.least / 1.5))
    last = math.ceil(math.log10(panel.most))
    return [10.0**power for power in range(first, last + 1)], lambda value: (math.log10(value) - first) / (last - first)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:g}"


def _line(line: Line, top: float, left: float, right: float, across: Across) -> list[str]:
    middle = top + THICK / 2
    colour = BESIDE if line.pale else OURS
    parts = [
        _text(left - 12, middle + 4, line.label, size=12, anchor="end"),
        f'<rect x="{left}" y="{top}" width="{across(line.value) - left:.1f}" height="{THICK}" rx="2" fill="{colour}"/>',
        _text(right + 12, middle + 4, line.shown, size=12, bold=not line.pale),
    ]
    parts += [
        f'<circle cx="{across(dot):.1f}" cy="{middle}" r="3.5" fill="#ffffff" stroke="{INK}"/>' for dot in line.dots
    ]
    if line.limit is not None:
        x = across(line.limit)
        parts.append(
            f'<line x1="{x:.1f}" y1="{top - 5}" x2="{x:.1f}" y2="{top + THICK + 5}" stroke="{LIMIT}" stroke-width="2.5"/>'
        )
    return parts


def _text(
    x: float, y: float, text: str, *, size: int, colour: str = INK, bold: bool = False, anchor: str = "start"
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>'
        f"{escape(text)}</text>"
    )


def _step(most: float) -> float:
    """A round distance between grid lines that gives three to seven of them."""
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (0.2, 0.5, 1.0, 2.0) if most / (step * power) <= 6)
