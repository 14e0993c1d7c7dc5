"""Small plots: the funnel of the stages, a line of scores, a bar."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_systems.appstore.reading.facts import Stage
from penstock_systems.appstore.reading.markup import Markup, tag
from penstock_systems.appstore.reading.shown import number

ROW, BAR = 46, 20
LINE_WIDTH, LINE_HEIGHT = 96, 24


def funnel(stages: Sequence[Stage], width: int = 640) -> Markup:
    """A bar a stage, each as long as the share of apps that came so far."""
    most = max(1, *(stage.apps for stage in stages))
    rows = []
    for place, stage in enumerate(stages):
        top = place * ROW
        share = f" · {stage.apps / stages[0].apps:.0%}" if place and stages[0].apps else ""
        rows += [
            tag("text", stage.name, x=0, y=top + 14, class_="stage"),
            tag("text", f"{number(stage.apps)}{share}", x=width, y=top + 14, class_="axis end"),
            tag("rect", x=0, y=top + BAR, width=width, height=BAR - 8, rx=4, class_="track"),
            tag(
                "rect",
                x=0,
                y=top + BAR,
                width=f"{max(3.0 if stage.apps else 0.0, stage.apps / most * width):.1f}",
                height=BAR - 8,
                rx=4,
                class_="bar",
            ),
        ]
    return tag(
        "svg",
        tag("title", "Apps by stage"),
        *rows,
        viewBox=f"0 -2 {width} {len(stages) * ROW}",
        class_="plot funnel",
        role="img",
        aria_label=", ".join(f"{stage.name} {number(stage.apps)}" for stage in stages),
    )


def score_line(values: Sequence[float]) -> Markup | None:
    """How a score went; nothing where there are no two of them."""
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    span = max(4.0, high - low)
    middle = (low + high) / 2
    points = " ".join(
        f"{3 + place / (len(values) - 1) * (LINE_WIDTH - 6):.1f},"
        f"{LINE_HEIGHT / 2 - (value - middle) / span * (LINE_HEIGHT - 8):.1f}"
        for place, value in enumerate(values)
    )
    end = points.rpartition(" ")[2].split(",")
    return tag(
        "svg",
        tag("title", f"from {number(values[0], 1)} to {number(values[-1], 1)}"),
        tag("polyline", points=points),
        tag("circle", cx=end[0], cy=end[1], r="2.4"),
        viewBox=f"0 0 {LINE_WIDTH} {LINE_HEIGHT}",
        width=LINE_WIDTH,
        height=LINE_HEIGHT,
        class_="spark",
        role="img",
    )
