"""Where the bubbles of a map go: markets that are related near each other, none over another. Always the same places.

Only sums, products and square roots are used, which every machine rounds alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

# A turn by the golden angle: each next bubble begins where there is most room.
TURN_X, TURN_Y = -0.737368878078, 0.675490294261
STEPS, SETTLING = 260, 160
GAP = 30.0  # between two bubbles: room for a name
EDGE = 16.0  # between a bubble and the edge
PULL = 0.004  # towards the middle
SPRING = 0.05  # between related markets


class Bubble(NamedTuple):
    x: float
    y: float
    radius: float


def radii(sizes: Sequence[float], *, width: float, height: float, share: float = 0.2) -> list[float]:
    """Areas after the sizes, so that all bubbles together cover a share of the map."""
    areas = [max(size, 4.0) for size in sizes]
    scale = sqrt(share * width * height / 3.14159 / sum(areas)) if areas else 0.0
    largest = min(width, height) / 7
    return [min(largest, max(9.0, scale * sqrt(area))) for area in areas]


def placed(
    sizes: Sequence[float], ties: Mapping[tuple[int, int], float], *, width: float, height: float
) -> list[Bubble]:
    """One bubble a size, the first near the middle. `ties` are pairs of positions and how strongly they are related."""
    radius = radii(sizes, width=width, height=height)
    spots = _spiral(radius, width, height)
    for step in range(STEPS + SETTLING):
        if step < STEPS:
            _draw_together(spots, radius, ties, width, height)
        _push_apart(spots, radius)
        _keep_inside(spots, radius, width, height)
    return [Bubble(x, y, r) for (x, y), r in zip(spots, radius, strict=True)]


def _spiral(radius: Sequence[float], width: float, height: float) -> list[list[float]]:
    spots, x, y = [], 1.0, 0.0
    for number in range(len(radius)):
        far = sqrt((number + 0.2) / max(1, len(radius))) * 0.5
        spots.append([width / 2 + x * far * width, height / 2 + y * far * height])
        x, y = x * TURN_X - y * TURN_Y, x * TURN_Y + y * TURN_X
    return spots


def _draw_together(
    spots: list[list[float]],
    radius: Sequence[float],
    ties: Mapping[tuple[int, int], float],
    width: float,
    height: float,
) -> None:
    for spot in spots:
        spot[0] += (width / 2 - spot[0]) * PULL * (height / width) ** 2
        spot[1] += (height / 2 - spot[1]) * PULL
    for (a, b), weight in ties.items():
        dx, dy = spots[b][0] - spots[a][0], spots[b][1] - spots[a][1]
        apart = sqrt(dx * dx + dy * dy) or 1.0
        wanted = radius[a] + radius[b] + 2 * GAP
        move = SPRING * (0.4 + weight) * (apart - wanted) / apart / 2
        spots[a][0] += dx * move
        spots[a][1] += dy * move
        spots[b][0] -= dx * move
        spots[b][1] -= dy * move


def _push_apart(spots: list[list[float]], radius: Sequence[float]) -> None:
    for a in range(len(spots)):
        for b in range(a + 1, len(spots)):
            dx, dy = spots[b][0] - spots[a][0], spots[b][1] - spots[a][1]
            needed = radius[a] + radius[b] + GAP
            if dx * dx + dy * dy >= needed * needed:
                continue
            apart = sqrt(dx * dx + dy * dy)
            if apart < 0.01:  # in the same place: any direction will do, always the same
                dx, dy, apart = 1.0, 0.3 * (b - a), 1.0
            move = (needed - apart) / apart / 2
            spots[a][0] -= dx * move
            spots[a][1] -= dy * move
            spots[b][0] += dx * move
            spots[b][1] += dy * move


def _keep_inside(spots: list[list[float]], radius: Sequence[float], width: float, height: float) -> None:
    for spot, r in zip(spots, radius, strict=True):
        spot[0] = min(max(spot[0], r + EDGE), width - r - EDGE)
        spot[1] = min(max(spot[1], r + EDGE), height - r - EDGE)
