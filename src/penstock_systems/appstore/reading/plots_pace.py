"""The pace over time against the limit that the store keeps to itself, and where it refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from penstock_systems.appstore.reading.facts import PacePoint
from penstock_systems.appstore.reading.markup import Markup, joined, tag
from penstock_systems.appstore.reading.shown import day_shown, number

LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 30
WIDE, NARROW = (960, 300), (400, 260)
TICK_HOURS = (1, 2, 3, 6, 12, 24, 48, 96, 168)  # one of these lies between two marks on the time axis


def pace_plot(points: Sequence[PacePoint]) -> Markup:
    return joined(_plot(points, *WIDE, class_="wide", ticks=9), _plot(points, *NARROW, class_="narrow", ticks=4))


def in_words(points: Sequence[PacePoint]) -> str:
    """What the plot shows, as a sentence."""
    pace = sum(point.pace for point in points) / len(points)
    known = [point for point in points if point.limit is not None]
    refused = sum(point.refused for point in points)
    told = f"{number(pace, 1)} pages a minute on average"
    if allowed := sum(point.limit or 0.0 for point in known):
        share = sum(point.pace for point in known) / allowed
        told += f", {share:.0%} of what the store allowed"
    often = "never refused" if not refused else f"refused {number(refused)} time{'' if refused == 1 else 's'}"
    return f"{told}; it {often}."


def _plot(points: Sequence[PacePoint], width: int, height: int, *, class_: str, ticks: int) -> Markup:
    times = [datetime.fromisoformat(point.at) for point in points]
    first, last = times[0], times[-1]
    span = max(1.0, (last - first).total_seconds())
    most = _round_up(max(1.0, *(max(point.pace, point.limit or 0.0) for point in points)) * 1.08)

    def x(at: datetime) -> str:
        return f"{LEFT + (at - first).total_seconds() / span * (width - LEFT - RIGHT):.1f}"

    def y(value: float) -> str:
        return f"{height - BOTTOM - value / most * (height - TOP - BOTTOM):.1f}"

    grid = [
        joined(
            tag("line", x1=LEFT, x2=width - RIGHT, y1=y(value), y2=y(value), class_="grid"),
            tag(
                "text",
                number(value, 0 if value == int(value) else 2),
                x=LEFT - 8,
                y=f"{float(y(value)) + 4:.1f}",
                class_="axis end",
            ),
        )
        for value in (most * part / 4 for part in range(5))
    ]
    marks = [tag("text", _when(at), x=x(at), y=height - 8, class_="axis") for at in _marks(first, last, ticks)]
    limits = [
        [(x(at), y(limit)) for at, limit in stretch]
        for _, group in groupby(
            zip(times, (point.limit for point in points), strict=True), key=lambda each: each[1] is None
        )
        if (stretch := [(at, limit) for at, limit in group if limit is not None])
    ]
    paces = [(x(at), y(point.pace)) for at, point in zip(times, points, strict=True)]
    refusals = [
        tag("circle", cx=x(at), cy=y(point.limit if point.limit is not None else point.pace), r="2.6", class_="refused")
        for at, point in zip(times, points, strict=True)
        if point.refused
    ]
    return tag(
        "svg",
        tag("title", "Pages a minute against the hidden limit"),
        *grid,
        *marks,
        *(tag("polyline", points=_stairs(stretch), class_="limit") for stretch in limits),
        tag("polyline", points=" ".join(f"{a},{b}" for a, b in paces), class_="pace"),
        *refusals,
        viewBox=f"0 0 {width} {height}",
        class_=f"plot {class_}",
        role="img",
        aria_label=in_words(points),
    )


def _stairs(corners: Sequence[tuple[str, str]]) -> str:
    """A limit holds until it changes. Where nobody knows one, as in an outage, the line has a gap."""
    path = [f"{corners[0][0]},{corners[0][1]}"]
    for (_, before), (at, now) in pairwise(corners):
        path += [f"{at},{before}", f"{at},{now}"] if before != now else [f"{at},{now}"]
    return " ".join(path)


def _marks(first: datetime, last: datetime, most: int) -> list[datetime]:
    """Full hours, as far apart as it takes for so many to fit."""
    hours = (last - first).total_seconds() / 3_600
    step = next((each for each in TICK_HOURS if hours / each <= most), TICK_HOURS[-1])
    start = first.replace(hour=0, minute=0, second=0)
    every = (start + timedelta(hours=number * step) for number in range(int(hours / step) + 26))
    return [at for at in every if first <= at <= last][: most + 1]


def _when(at: datetime) -> str:
    return day_shown(at) if at.hour == 0 else f"{at:%H:%M}"


def _round_up(value: float) -> float:
    """The next number that four lines divide well: 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50 ..."""
    scale = 1.0
    while 32 * scale < value:
        scale *= 10
    return next(scale * each for each in (4, 5, 6, 8, 10, 12, 16, 20, 24, 32) if scale * each >= value)
