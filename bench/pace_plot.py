"""The plots of the pace bench: shares as bars, and what was done a second against the hidden limit."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from xml.sax.saxutils import escape

from bench.plot import FONT, GRID, INK, LIMIT, OURS, PALE, Line, Panel, draw

COLUMNS, WIDTH, HEIGHT, EDGE, TOP = 3, 300, 150, 30, 70
POINTS_MOST = 240  # along one curve


class Drawn(Protocol):
    """What a trial tells the plots."""

    kind: str
    seed: int
    paces: list[tuple[float, float, float]]
    refusals: list[float]

    @property
    def share(self) -> float: ...
    @property
    def refused_share(self) -> float: ...


def draw_shares(trials: Sequence[Drawn], path: Path, least: float) -> Path:
    """A bar for each kind of limit, a dot for each service of it."""
    panels = [
        Panel("share of what was possible, %", f"longer is better; dots: single services; line: {least:g} %", []),
        Panel("refused, %", "shorter is better; dots: single services", []),
    ]
    lines: list[list[Line]] = [[], []]
    for kind, those in by_kind(trials).items():
        for place, values in enumerate(([t.share for t in those], [t.refused_share for t in those])):
            dots = [100 * value for value in values]
            mean = statistics.mean(dots)
            lines[place].append(Line(kind, mean, f"{mean:.1f}", dots, least if place == 0 else None))
    filled = [Panel(panel.title, panel.note, each) for panel, each in zip(panels, lines, strict=True)]
    return draw(
        "The adaptive limiter against services that it knows nothing about", f"{len(trials)} services", filled, path
    )


def draw_pace(trials: Sequence[Drawn], path: Path) -> Path:
    """For each kind the service where it did worst: what was done a second, and the hidden limit above it."""
    worst = [min(those, key=lambda trial: trial.share) for those in by_kind(trials).values()]
    rows = -(-len(worst) // COLUMNS)
    width, height = COLUMNS * (WIDTH + EDGE) + EDGE, TOP + rows * (HEIGHT + 50)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="{FONT}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(EDGE, 30, "What was done a second, and the hidden limit: the worst service of each kind", 16),
        _text(EDGE, 50, "blue: done; red: limit; in minutes", 11, PALE),
    ]
    for place, trial in enumerate(worst):
        left, top = EDGE + (place % COLUMNS) * (WIDTH + EDGE), TOP + (place // COLUMNS) * (HEIGHT + 50)
        parts += _curves(trial, left, top)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")
    return path


def draw_day(trial: Drawn, path: Path) -> Path:
    """One service that bans, over its day: the rate, the hidden limit, and each refusal."""
    wide, high, left, top = 880, 260, 50, 60
    step = -(-len(trial.paces) // (2 * POINTS_MOST))
    points = [
        tuple(statistics.mean(column) for column in zip(*trial.paces[first : first + step], strict=True))
        for first in range(0, len(trial.paces), step)
    ]
    end, most = max(points[-1][0], 1.0), 1.25 * max(limit for _, _, limit in points)

    def at(seconds: float, rate: float) -> str:
        return f"{left + wide * seconds / end:.1f},{top + high * (1 - min(rate, most) / most):.1f}"

    def line(place: int, colour: str) -> str:
        path = " ".join(at(point[0], point[place]) for point in points)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'

    marks = [
        f'<circle cx="{x}" cy="{y}" r="4" fill="none" stroke="{LIMIT}" stroke-width="1.5"/>'
        for x, y in (at(seconds, 1.18 * most / 1.25).split(",") for seconds in trial.refusals)
    ]
    hours = [
        _text(left + wide * hour * 3_600 / end - 8, top + high + 18, f"{hour} h", 11, PALE)
        for hour in range(0, int(end / 3_600) + 1, 4)
    ]
    title = f"A service that bans, over a day: {100 * trial.share:.1f} % of what was possible, {len(trial.refusals)} refusals"
    path.write_text(
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="980" height="370" viewBox="0 0 980 370" style="{FONT}">',
                '<rect width="980" height="370" fill="#ffffff"/>',
                _text(left, 24, title, 16),
                _text(
                    left,
                    44,
                    f"blue: done a second; red: the hidden limit, {points[0][2]:.2g} a second; circles: refusals",
                    11,
                ),
                f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="{GRID}"/>',
                line(2, LIMIT),
                line(1, OURS),
                *marks,
                *hours,
                "</svg>",
                "",
            ]
        ),
        encoding="utf-8",
    )
    return path


def by_kind(trials: Sequence[Drawn]) -> dict[str, list[Drawn]]:
    found: dict[str, list[Drawn]] = {}
    for trial in trials:
        found.setdefault(trial.kind, []).append(trial)
    return found


def _curves(trial: Drawn, left: float, top: float) -> list[str]:
    step = -(-len(trial.paces) // POINTS_MOST)
    points = [
        tuple(statistics.mean(column) for column in zip(*trial.paces[first : first + step], strict=True))
        for first in range(0, len(trial.paces), step)
    ]
    end, most = max(points[-1][0], 1.0), 1.15 * max(max(done, limit) for _, done, limit in points)

    def line(place: int, colour: str) -> str:
        path = " ".join(
            f"{left + WIDTH * point[0] / end:.1f},{top + 20 + HEIGHT * (1 - point[place] / most):.1f}"
            for point in points
        )
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.3"/>'

    return [
        _text(left, top + 12, f"{trial.kind}, seed {trial.seed}: {100 * trial.share:.1f} %", 12),
        f'<rect x="{left}" y="{top + 20}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{GRID}"/>',
        line(2, LIMIT),
        line(1, OURS),
        _text(left, top + HEIGHT + 34, f"0 to {end / 60:.0f} minutes, up to {most:.2g} a second", 10, PALE),
    ]


def _text(x: float, y: float, text: str, size: int, colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
