"""What the competitiveness agent believes about the store, from the charts as they are: never from what it believed before,
so that no event moves it twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from penstock_systems.appstore.app import db
from penstock_systems.appstore.evaluate.competitiveness import AGENT
from penstock_systems.appstore.evaluate.memory import believe

RATINGS_EXPLAIN_RANK = "many ratings make a high chart rank"
APPS_LEAST = 20  # in a chart that says anything
PLACES_MAX = 9_000  # of charts that are looked at

CHARTS = """
select category, chart_positions.rank, rating_count
from chart_positions
join app_registry on app_registry.track_id = chart_positions.track_id
where collection = 'topfreeapplications'
and enrichment_source in ('scraper', 'itunes')
order by category, chart_positions.rank, chart_positions.track_id
limit :most
"""


async def learn_from_charts(now: str) -> float | None:
    """Joins the unit. None, and nothing is believed, while no chart is known well enough."""
    charts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for category, rank, rating_count in await db.rows(CHARTS, most=PLACES_MAX):
        charts[category].append((rank, rating_count))
    found = explained(charts)
    if found is not None:
        places = sum(map(len, charts.values()))
        evidence = f"{places:,} places of {len(charts)} charts: rank and rating count correlate by {found:.2f}"
        believe(AGENT, RATINGS_EXPLAIN_RANK, found, evidence, now)
    return found


def explained(charts: Mapping[str, Sequence[tuple[int, int]]]) -> float | None:
    """From 0 to 1: how well the order of rating counts agrees with the order of ranks, over the charts that are long
    enough. Pure."""
    agreeing = [_agreement(chart) for chart in charts.values() if len(chart) >= APPS_LEAST]
    return max(0.0, sum(agreeing) / len(agreeing)) if agreeing else None


def _agreement(chart: Sequence[tuple[int, int]]) -> float:
    """Spearman's correlation of being high in the chart and being rated often."""
    heights = _places([-rank for rank, _ in chart])
    counts = _places([count for _, count in chart])
    middle = (len(chart) - 1) / 2
    shared = sum((height - middle) * (count - middle) for height, count in zip(heights, counts, strict=True))
    spread = [sum((place - middle) ** 2 for place in places) for places in (heights, counts)]
    return float(shared / (spread[0] * spread[1]) ** 0.5) if all(spread) else 0.0


def _places(values: Sequence[int]) -> list[float]:
    """The place of each value in their order; equal ones share the middle of theirs."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    places = [0.0] * len(values)
    start = 0
    for _, alike in groupby(order, key=lambda index: values[index]):
        group = list(alike)
        for index in group:
            places[index] = start + (len(group) - 1) / 2
        start += len(group)
    return places
