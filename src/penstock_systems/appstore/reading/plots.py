"""The geometry of the plots: markets on a plane of demand and ease, the pace over time, a line of scores. Pure numbers; the
template draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import msgspec

from penstock_systems.appstore.reading.facts import Market, PacePoint
from penstock_systems.appstore.reading.shown import day_shown, number

WIDE, NARROW = (960, 460), (400, 400)
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 28, 40
PARTINGS_MAX, PARTED = 60, 0.2  # rounds of moving points apart; units that two of them may overlap
PACE_WIDE, PACE_NARROW = (960, 280), (400, 240)
TICK_HOURS = (1, 2, 3, 6, 12, 24, 48, 96, 168)  # one of these lies between two marks on the time axis
STEPS = (40.0, 55.0, 70.0, 80.0)  # where the colours change; from 70 on a market is evaluated
SEARCHING = 0.2  # searches a minute from which on keywords were waiting
STORE_APPS = 1_800_000  # of the store of the United States
MINUTES_A_DAY = 1_440
LINE_WIDTH, SPARK_HEIGHT = 96, 24

Plot = dict[str, Any]


def shade(score: float | None) -> str:
    """The class of a score's colour."""
    return "s0" if score is None else f"s{sum(score >= step for step in STEPS)}"


# -- the plane --------------------------------------------------------------------------------------------------------


def plane(markets: Sequence[Market], franchises: Sequence[Market], ranks: Mapping[int, int]) -> list[Plot]:
    """One for wide screens and paper, one for phones. `ranks` are those of the opportunities, by market."""
    shown = sorted(
        (each for each in (*franchises, *reversed(markets)) if each.demand is not None),
        key=lambda each: -ranks.get(each.id, len(ranks) + 1),  # what has a number lies on top, the first on all
    )
    return (
        [_plane(shown, ranks, size, class_) for size, class_ in ((WIDE, "wide"), (NARROW, "narrow"))] if shown else []
    )


def _plane(shown: Sequence[Market], ranks: Mapping[int, int], size: tuple[int, int], class_: str) -> Plot:
    width, height = size

    def x(demand: float) -> float:
        return LEFT + demand / 100 * (width - LEFT - RIGHT)

    def y(ease: float) -> float:
        return height - BOTTOM - ease / 100 * (height - TOP - BOTTOM)

    points: list[Plot] = [
        {
            "x": round(x(each.demand or 0.0), 1),
            "y": round(y(100 - (each.competitiveness or 0.0)), 1),
            "r": 9 if each.id in ranks else 6,
            "rank": ranks.get(each.id, 0),
            "class": "owned" if each.franchise else shade(each.score),
            "market": each,
        }
        for each in shown
    ]
    _part([each for each in points if each["rank"]], width, height)
    ticks: list[Plot] = [
        {"value": value, "x": round(x(value), 1), "y": round(y(value), 1)} for value in (0, 25, 50, 75, 100)
    ]
    return {
        "class": class_,
        "width": width,
        "height": height,
        "left": LEFT,
        "right": width - RIGHT,
        "top": TOP,
        "bottom": height - BOTTOM,
        "points": points,
        "ticks": ticks,
        "good": {
            "x": round(x(50), 1),
            "y": round(y(100), 1),
            "w": round(x(100) - x(50), 1),
            "h": round(y(50) - y(100), 1),
        },
    }


def _part(points: Sequence[Plot], width: int, height: int) -> None:
    """Move points with a number so far apart that each number can be read; they stay near their places."""
    for _ in range(PARTINGS_MAX):
        moved = False
        for place, one in enumerate(points):
            for other in points[:place]:
                across, down = one["x"] - other["x"], one["y"] - other["y"]
                far = math.hypot(across, down)
                missing = one["r"] + other["r"] + 1 - far
                if missing > PARTED:
                    moved = True
                    if far < 1:
                        across, down, far = 1.0, 0.0, 1.0
                    for point, sign in ((one, missing / 2 / far), (other, -missing / 2 / far)):
                        point["x"] = round(min(width - RIGHT, max(LEFT, point["x"] + sign * across)), 1)
                        point["y"] = round(min(height - BOTTOM, max(TOP, point["y"] + sign * down)), 1)
        if not moved:
            return


# -- the pace ---------------------------------------------------------------------------------------------------------


def busy_points(points: Sequence[PacePoint]) -> list[PacePoint]:
    """The stretch from the first to the last moment at which work waited."""
    places = [place for place, point in enumerate(points) if point.busy]
    return list(points[places[0] : places[-1] + 1]) if places else []


class PaceFigures(msgspec.Struct, frozen=True):
    """What the pace was while work waited."""

    pace: float  # pages a minute
    share: float | None  # of what the store allowed
    refused: int
    requests: float
    idle_hours: float
    searches: float
    store_days: float | None  # for the whole store of the United States


def pace_figures(points: Sequence[PacePoint]) -> PaceFigures | None:
    busy = [point for point in points if point.busy and not point.out]
    if not busy:
        return None
    minutes = _step_minutes(points)
    searching = [point for point in points if point.searches >= SEARCHING]
    pace = sum(point.pace for point in busy) / len(busy)
    known = [point for point in busy if point.limit]
    allowed = sum(point.limit or 0.0 for point in known)
    return PaceFigures(
        pace=pace,
        share=sum(point.pace for point in known) / allowed if allowed else None,
        refused=sum(point.refused for point in points),
        requests=sum(point.pace for point in points) * minutes + sum(point.refused for point in points),
        idle_hours=(len(points) - len(busy_points(points))) * minutes / 60,
        searches=sum(point.searches for point in searching) / max(1, len(searching)),
        store_days=STORE_APPS / pace / MINUTES_A_DAY if pace else None,
    )


def in_words(points: Sequence[PacePoint]) -> str:
    """What the plot shows, as sentences."""
    found = pace_figures(points)
    if found is None:
        return "No work waited."
    told = [_rate(found.pace)]
    if found.share is not None:
        told.append(f"{100 * found.share:.0f} % of what the store would have borne")
    often = f"{100 * found.refused / found.requests:.1f} % of the requests were refused" if found.requests else ""
    text = f"While work waited, it read {', '.join(told)}; {often}."
    if any(point.out for point in points):
        text += " It stopped for the outage and came back."
    if found.idle_hours >= 1:
        text += f" Then all was read, for {number(found.idle_hours)} hours."
    return text


def _rate(pace: float) -> str:
    return f"{number(pace, 1)} pages a minute" if pace >= 1 else f"{number(60 * pace)} pages an hour"


def pace_plots(points: Sequence[PacePoint]) -> list[Plot]:
    shown = busy_points(points)
    if not shown:
        return []
    return [
        _pace(shown, *size, class_=class_, ticks=ticks)
        for size, class_, ticks in ((PACE_WIDE, "wide", 9), (PACE_NARROW, "narrow", 4))
    ]


def _step_minutes(points: Sequence[PacePoint]) -> float:
    if len(points) < 2:
        return 20.0
    first, second = (datetime.fromisoformat(point.at) for point in points[:2])
    return max(1.0, (second - first).total_seconds() / 60)


def _pace(points: Sequence[PacePoint], width: int, height: int, *, class_: str, ticks: int) -> Plot:
    times = [datetime.fromisoformat(point.at) for point in points]
    first, last = times[0], times[-1]
    span = max(1.0, (last - first).total_seconds())
    highest = max(1e-9, *(max(point.pace, point.limit or 0.0) for point in points))
    unit, factor = ("a minute", 1.0) if highest >= 2 else ("an hour", 60.0)
    most = _round_up(highest * factor * 1.12)

    def x(at: datetime) -> float:
        return round(LEFT + (at - first).total_seconds() / span * (width - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(height - BOTTOM - value * factor / most * (height - TOP - BOTTOM), 1)

    pairs = list(zip(times, points, strict=True))
    limits = [
        [(x(at), y(point.limit)) for at, point in group if point.limit is not None]
        for known, group in groupby(pairs, key=lambda each: each[1].limit is not None)
        if known
    ]
    line = [(x(at), y(point.pace)) for at, point in pairs]
    outages = [
        (x(stretch[0][0]), max(4.0, x(stretch[-1][0]) - x(stretch[0][0]) + 4))
        for out, group in groupby(pairs, key=lambda each: each[1].out)
        if out and (stretch := list(group))
    ]
    return {
        "class": class_,
        "width": width,
        "height": height,
        "left": LEFT,
        "right": width - RIGHT,
        "top": TOP,
        "bottom": height - BOTTOM,
        "unit": unit,
        "grid": [(number(most * part / 4, 0 if most >= 4 else 2), y(most * part / 4 / factor)) for part in range(5)],
        "marks": [(x(at), day_shown(at) if at.hour == 0 else f"{at:%H:%M}") for at in _marks(first, last, ticks)],
        "limits": [_stairs(corners) for corners in limits],
        "line": _path(line),
        "area": _path([(line[0][0], height - BOTTOM), *line, (line[-1][0], height - BOTTOM)]),
        "refused": [(x(at), y(point.pace)) for at, point in pairs if point.refused],
        "outages": outages,
    }


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{a},{b}" for a, b in points)


def _stairs(corners: Sequence[tuple[float, float]]) -> str:
    """A limit holds until it changes."""
    path = [corners[0]]
    for (_, before), (at, now) in pairwise(corners):
        path += [(at, before), (at, now)] if before != now else [(at, now)]
    return _path(path)


def _marks(first: datetime, last: datetime, most: int) -> list[datetime]:
    """Full hours, as far apart as it takes for so many to fit."""
    hours = (last - first).total_seconds() / 3_600
    step = next((each for each in TICK_HOURS if hours / each <= most), TICK_HOURS[-1])
    start = first.replace(hour=0, minute=0, second=0)
    every = (start + timedelta(hours=place * step) for place in range(int(hours / step) + 26))
    return [at for at in every if first <= at <= last][: most + 1]


def _round_up(value: float) -> float:
    """The next number that four lines divide well: 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50 ..."""
    scale = 1.0
    while 32 * scale < value:
        scale *= 10
    return next(scale * each for each in (4, 5, 6, 8, 10, 12, 16, 20, 24, 32) if scale * each >= value)


# -- small ------------------------------------------------------------------------------------------------------------


def score_line(values: Sequence[float]) -> Plot | None:
    """How a score went; nothing where there are no two of them."""
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    span, middle = max(4.0, high - low), (low + high) / 2
    points = [
        (
            round(3 + place / (len(values) - 1) * (LINE_WIDTH - 6), 1),
            round(SPARK_HEIGHT / 2 - (value - middle) / span * (SPARK_HEIGHT - 8), 1),
        )
        for place, value in enumerate(values)
    ]
    return {"points": _path(points), "end": points[-1], "first": number(values[0], 1), "last": number(values[-1], 1)}
