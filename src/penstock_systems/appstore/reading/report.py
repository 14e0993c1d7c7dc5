"""A report: what the pipeline found, out of its database, and what only the one who ran it knows, such as a hidden limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from penstock_systems.appstore.reading import answers, report_parts
from penstock_systems.appstore.reading.facts import Figures, Opportunity, PacePoint, Report
from penstock_systems.appstore.reading.queries import Reading, ask_one
from penstock_systems.appstore.reading.report_parts import LINE_MOST, NAME_MOST, total
from penstock_systems.appstore.reading.shown import calm

TITLE = "App Store market report"
MOVED_MOST = 10  # apps and markets in each list of what moved
POINTS_MOST = 480  # of the pace: two to a column of a wide screen's plot
OFFLINE = "offline "  # how those that ask no model begin their names

DEMAND = (
    "Demand is estimated from what the store completes while a user types, from ratings gained a day and from new apps. "
    "It is not a search volume."
)
BY_RULES = (
    "The evaluations were written by {}: fixed rules over the figures shown here. No language model was used, so a reason "
    "states only what the figures show."
)
BY_MODEL = "Evaluations were written by {}. A model can be wrong; the figures next to its text do not come from it."


async def gather(
    reading: Reading,
    *,
    title: str = TITLE,
    pace: Sequence[PacePoint] = (),
    notes: Sequence[str] = (),
    made_up: bool = False,
) -> Report:
    """Reads a report out of the database. `notes` are sentences that belong into it. Apps that are `made_up` get no link."""
    begins = await ask_one(reading, "oldest")
    ends = await answers.newest(reading)
    funnel = await report_parts.funnel(reading)
    opportunities = await report_parts.opportunities(reading, links=not made_up)
    verdicts = {each.market: each.verdict for each in opportunities}
    markets, franchises = await report_parts.markets(reading, verdicts)
    counted = {stage.name: stage.apps for stage in funnel}
    return Report(
        title=calm(title, NAME_MOST) or TITLE,
        begins=begins["at"] if begins else None,
        ends=ends,
        figures=Figures(
            apps=counted["discovered"],
            enriched=counted["enriched"],
            developers=await total(reading, "developers_known"),
            keywords=await reading.count("crawl_keywords"),
            rankings=await reading.count("crawl_rankings"),
            reviews=await reading.count("app_reviews"),
            markets=await total(reading, "markets_known"),
            opportunities=len(opportunities),
        ),
        funnel=funnel,
        markets=markets,
        franchises=franchises,
        opportunities=opportunities,
        trends=await _trends(reading),
        pace=thinned(pace),
        cost=await report_parts.cost(reading, ends),
        notes=[*_honest(opportunities), *(calm(note, LINE_MOST) for note in notes)],
    )


def as_json(report: Report) -> bytes:
    """The report as a file: one line a fact, so that two can be compared."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def from_json(text: bytes | str) -> Report:
    return msgspec.json.decode(text, type=Report)


def thinned(points: Sequence[PacePoint]) -> list[PacePoint]:
    """So few points that a plot can show them: the means of stretches of equal length, and all refusals in them."""
    size = -(-len(points) // POINTS_MOST) or 1
    return [_mean(points[start : start + size]) for start in range(0, len(points), size)]


def _mean(points: Sequence[PacePoint]) -> PacePoint:
    limits = [point.limit for point in points if point.limit is not None]
    return PacePoint(
        at=points[0].at,
        pace=round(sum(point.pace for point in points) / len(points), 3),
        limit=round(sum(limits) / len(limits), 3) if limits else None,
        refused=sum(point.refused for point in points),
        busy=any(point.busy for point in points),
        out=any(point.out for point in points),
        searches=round(sum(point.searches for point in points) / len(points), 2),
    )


async def _trends(reading: Reading) -> dict[str, Any]:
    found = await answers.trends(reading, most=MOVED_MOST)
    return {"since": found["since"]} | {
        kind: [{name: _plain(value) for name, value in row.items()} for row in found[kind]]
        for kind in ("rising_apps", "climbers", "rising_clusters")
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return report_parts.rounded(value)
    return calm(value, NAME_MOST) if isinstance(value, str) else value


def _honest(opportunities: Sequence[Opportunity]) -> Iterator[str]:
    """What a reader has to know about how this came about."""
    yield DEMAND
    makers = sorted({each.made_by for each in opportunities})
    rules = [maker for maker in makers if maker.startswith(OFFLINE)]
    models = [maker for maker in makers if not maker.startswith(OFFLINE)]
    if rules:
        yield BY_RULES.format(", ".join(rules))
    if models:
        yield BY_MODEL.format(", ".join(models))
