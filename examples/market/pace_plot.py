"""The pace over time against the limit that the store keeps to itself: in the terminal, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

ROWS, COLUMNS = 8, 72
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 360, 60, 50, 40
INK, PALE, OURS, LIMIT, BAD = "#1f2933", "#66727f", "#1f77a4", "#c2410c", "#b91c1c"


class Point(NamedTuple):
    """One minute: what was answered and refused, the hidden limit, and the pace that was meant, all a minute."""

    at: datetime
    pace: float
    limit: float
    refused: int
    meant: float


def sketch(points: Sequence[Point]) -> Text:
    """In characters: # is the pace, - the hidden limit."""
    columns = [
        points[len(points) * column // COLUMNS : max(1, len(points) * (column + 1) // COLUMNS)]
        for column in range(COLUMNS)
    ]
    most = max(1.0, *(max(point.pace, point.limit) for point in points)) * 1.1
    drawn = Text()
    for row in range(ROWS, 0, -1):
        drawn.append(f"{most * row / ROWS:5.0f} ", style="dim")
        for column in columns:
            part = column or points[-1:]
            pace = sum(point.pace for point in part) / len(part)
            limit = part[-1].limit
            at_limit = round(limit / most * ROWS) == row
            filled = pace / most * ROWS >= row - 0.5
            drawn.append(
                "-" if at_limit and not filled else "#" if filled else " ",
                style="red" if at_limit and not filled else "cyan",
            )
        drawn.append("\n")
    drawn.append("      pages a minute: # answered, - the limit that the store does not tell", style="dim")
    return drawn


def draw(points: Sequence[Point], path: Path) -> None:
    most = max(1.0, *(max(point.pace, point.limit) for point in points)) * 1.15
    first, span = points[0].at.timestamp(), max(1.0, points[-1].at.timestamp() - points[0].at.timestamp())

    def x(at: datetime) -> float:
        return LEFT + (at.timestamp() - first) / span * (WIDTH - LEFT - 20)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)

    def line(values: Sequence[tuple[datetime, float]], colour: str, width: float) -> str:
        path_ = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in values)
        return f'<polyline points="{path_}" fill="none" stroke="{colour}" stroke-width="{width}"/>'

    smooth = [
        (point.at, sum(each.pace for each in points[max(0, index - 4) : index + 1]) / min(5, index + 1))
        for index, point in enumerate(points)
    ]
    marks = "".join(
        f'<circle cx="{x(point.at):.1f}" cy="{y(point.limit) - 9:.1f}" r="3" fill="{BAD}"/>'
        for point in points
        if point.refused
    )
    grid = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dfe4e9"/>'
        f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="{PALE}">{value}</text>'
        for value in range(0, int(most) + 1, max(1, int(most) // 5))
    )
    hours = "".join(
        f'<text x="{x(point.at):.1f}" y="{HEIGHT - 16}" text-anchor="middle" fill="{PALE}">{point.at:%H:%M}</text>'
        for point in points
        if point.at.minute == 0
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="13" '
        f"style=\"font-family: system-ui, 'DejaVu Sans', sans-serif; background: white\">"
        f'<text x="{LEFT}" y="24" fill="{INK}" font-size="16" font-weight="600">Pages a minute, and the limit that '
        f"the store does not tell</text>{grid}{hours}"
        f"{line([(point.at, point.limit) for point in points], LIMIT, 2)}{line(smooth, OURS, 2.5)}{marks}"
        f'<text x="{LEFT}" y="42" fill="{OURS}">answered (five-minute mean)</text>'
        f'<text x="{LEFT + 210}" y="42" fill="{LIMIT}">hidden limit (0 in an outage)</text>'
        f'<text x="{LEFT + 430}" y="42" fill="{BAD}">● a refusal in that minute</text></svg>\n',
        encoding="utf-8",
    )
