"""The market map: a bubble a market, as large as its demand, as strong in colour as its score, joined to its neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_systems.appstore.reading import labels, layout
from penstock_systems.appstore.reading.facts import Market, Relation
from penstock_systems.appstore.reading.markup import Markup, joined, tag
from penstock_systems.appstore.reading.shown import number

STEPS = (40.0, 55.0, 70.0, 80.0)  # where the colours change; above 70 a market is worth a closer look
NAMES = ("below 40", "40 to 55", "55 to 70", "70 to 80", "80 and more")
WIDE, NARROW = 960, 400


def shade(score: float | None) -> str:
    """The class of a score's colour."""
    return "s0" if score is None else f"s{sum(score >= step for step in STEPS)}"


def market_map(markets: Sequence[Market], relations: Sequence[Relation]) -> Markup:
    """One picture for wide screens and paper, one for phones; the page shows the one that fits."""
    many = len(markets)
    return joined(
        _map(markets, relations, WIDE, 320 + 9 * many, class_="wide"),
        _map(markets, relations, NARROW, 300 + 15 * many, class_="narrow"),
    )


def legend() -> Markup:
    swatches = [
        tag("span", tag("i", class_=f"swatch s{place}"), name, class_="key") for place, name in enumerate(NAMES)
    ]
    return tag("p", tag("span", "opportunity score: ", class_="key"), *swatches, class_="legend")


def _map(markets: Sequence[Market], relations: Sequence[Relation], width: int, height: int, *, class_: str) -> Markup:
    places = {market.id: place for place, market in enumerate(markets)}
    ties = {(places[each.a], places[each.b]): each.weight for each in relations}
    bubbles = layout.placed([market.demand or 0.0 for market in markets], ties, width=width, height=height)
    named = labels.placed([market.name for market in markets], bubbles, width=width, height=height)
    lines = [
        tag(
            "line",
            x1=f"{bubbles[a].x:.1f}",
            y1=f"{bubbles[a].y:.1f}",
            x2=f"{bubbles[b].x:.1f}",
            y2=f"{bubbles[b].y:.1f}",
            stroke_width=f"{1 + 4 * min(1.0, weight):.1f}",
        )
        for (a, b), weight in ties.items()
    ]
    return tag(
        "svg",
        tag("title", "Market map"),
        tag("g", *lines, class_="ties"),
        *(_bubble(*each) for each in zip(markets, bubbles, named, strict=True)),
        viewBox=f"0 0 {width} {height}",
        class_=f"plot {class_}",
        role="img",
        aria_label=f"Map of {len(markets)} markets; the table below lists the figures.",
    )


def _bubble(market: Market, bubble: layout.Bubble, label: labels.Label | None) -> Markup:
    inside = label is not None and label.inside
    figure = tag(
        "text",
        market.number,
        x=f"{bubble.x:.1f}",
        y=f"{bubble.y - (3 if inside else -5):.1f}",
        class_="number" if bubble.radius >= 14 else "number small",
    )
    told = (
        f"{market.number}. {market.name}: score {number(market.score, 1)}, demand {number(market.demand, 1)}, "
        f"strength of its apps {number(market.competitiveness, 1)}, {market.apps} apps"
    )
    return tag(
        "g",
        tag("title", told),
        tag("circle", cx=f"{bubble.x:.1f}", cy=f"{bubble.y:.1f}", r=f"{bubble.radius:.1f}"),
        figure,
        *_name(label),
        class_=f"bubble {shade(market.score)}",
    )


def _name(label: labels.Label | None) -> list[Markup]:
    """A text a line, so that each keeps its own direction."""
    if label is None:
        return []
    class_ = "name in" if label.inside else "name"
    return [
        tag("text", line, x=f"{label.x:.1f}", y=f"{label.y + place * labels.HIGH:.1f}", class_=class_)
        for place, line in enumerate(label.lines)
    ]
