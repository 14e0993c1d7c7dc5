"""The parts of a report, each read out of the database: how far apps have come, markets, opportunities, what it took."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from penstock.commands import month_usage
from penstock_systems.appstore.opportunity.case import OFFLINE, decided
from penstock_systems.appstore.reading import answers, cards
from penstock_systems.appstore.reading.facts import (
    EARLY,
    Cost,
    CostLine,
    Market,
    Opportunity,
    PaidCalls,
    Reference,
    Stage,
    Titled,
)
from penstock_systems.appstore.reading.queries import Reading, ask
from penstock_systems.appstore.reading.shown import calm, cut
from penstock_systems.appstore.reading.stage_map import STAGES

MARKETS_MOST = 60  # more points are no plane any more
HISTORY_MOST = 40  # scores of a market: ten days
OPPORTUNITIES_MOST, OPPORTUNITIES_LEAST = 20, 10
GOOD = 70.0  # a market that no longer scores so much is watched, whatever it was judged before
PROVIDERS_MOST = 100
NAME_MOST, LINE_MOST, BODY_MOST = 120, 600, 4_000  # characters


async def total(reading: Reading, name: str) -> int:
    """What a statement that counts has counted."""
    return int((await ask(reading, name))[0]["total"])


async def funnel(reading: Reading) -> list[Stage]:
    """How many apps have passed each stage. What was discovered is all there is, and its count is kept."""
    found = {"discovered": await reading.count("app_registry")}
    for stage in STAGES[1:]:
        found[stage.reached] = await total(reading, stage.reached)
    return [Stage(name=stage.reached, apps=found[stage.reached], meaning=stage.meaning) for stage in STAGES]


async def markets(reading: Reading, verdicts: Mapping[int, str]) -> tuple[list[Market], list[Market]]:
    """The best markets, and apart from them those of franchises."""
    found = await answers.clusters(reading, most=MARKETS_MOST)
    free = [each for each in found if each["franchise"] is None]
    owned = [each for each in found if each["franchise"] is not None]
    return (
        [await _market(reading, number, each, verdicts) for number, each in enumerate(free, start=1)],
        [await _market(reading, 0, each, verdicts) for each in owned],
    )


async def _market(reading: Reading, number: int, each: dict[str, Any], verdicts: Mapping[int, str]) -> Market:
    return Market(
        number=number,
        id=each["id"],
        name=calm(each["name"], NAME_MOST),
        score=rounded(each["opportunity_score"]),
        change=rounded(each["change"]),
        demand=rounded(each["demand"]),
        competitiveness=rounded(each["competitiveness"]),
        dissatisfaction=rounded(each["dissatisfaction"]),
        room=rounded(each["room"]),
        coverage=rounded(each["coverage"]) or 0.0,
        franchise=None if each["franchise"] is None else calm(each["franchise"], NAME_MOST),
        verdict=verdicts.get(each["id"]),
        apps=each["apps"],
        keywords=each["keywords"],
        history=await _history(reading, each["id"]),
    )


async def opportunities(reading: Reading, *, links: bool) -> list[Opportunity]:
    """Those that score 70 or more today, or the best ten."""
    found = await ask(reading, "opportunities", most=OPPORTUNITIES_MOST)
    good = sum((each["score"] or 0.0) >= GOOD for each in found)
    shown = found[: max(OPPORTUNITIES_LEAST, good)]
    return [await _opportunity(reading, rank, each, links) for rank, each in enumerate(shown, start=1)]


async def cost(reading: Reading, ends: str | None) -> Cost:
    """What the month of the newest data has used, and all that was paid for."""
    at = datetime(1970, 1, 1, tzinfo=UTC) if ends is None else datetime.fromisoformat(ends).replace(tzinfo=UTC)
    usage = await month_usage(reading, None, now=int(at.timestamp()) * 1_000_000)
    paid = [
        PaidCalls(
            provider=calm(each["provider"], NAME_MOST),
            operation=calm(each["operation"], NAME_MOST),
            calls=each["calls"],
            usd=round(each["usd"] or 0.0, 6),
        )
        for each in await ask(reading, "paid_calls", most=PROVIDERS_MOST)
    ]
    return Cost(
        month=usage.month,
        lines=[
            CostLine(name=line.name, used=round(line.used, 3), usd=round(line.usd, 6))
            for line in usage.bill.lines
            if line.used
        ],
        usd=round(usage.usd, 6),
        paid=paid,
        paid_usd=round(sum(each.usd for each in paid), 6),
    )


def rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 2) + 0.0


async def _history(reading: Reading, id: int) -> list[float]:
    rows = await ask(reading, "cluster_history", id=id, most=HISTORY_MOST)
    return [round(row["opportunity_score"], 2) for row in reversed(rows) if row["opportunity_score"] is not None]


async def _opportunity(reading: Reading, rank: int, row: dict[str, Any], links: bool) -> Opportunity:
    found = await answers.opportunity(reading, row["id"])
    assert found is not None
    known: Mapping[str, Any] = found["facts"] if isinstance(found["facts"], dict) else {}
    told = cards.told(known, links=links)
    return Opportunity(
        rank=rank,
        id=found["id"],
        market=found["cluster_id"],
        name=calm(row["name"], NAME_MOST),
        score=round(row["score"] or 0.0, 2),
        judged=round(found["score"], 2),
        early=(row["coverage"] or 0.0) < EARLY,
        verdict=_today(found, known, row),
        reason=calm(found["reason"], LINE_MOST),
        need=told.need,
        gap=told.gap,
        price=told.price,
        parts=told.parts,
        favour=told.favour,
        against=told.against,
        rivals=told.rivals,
        quotes=told.quotes,
        keywords=told.keywords,
        made_by=calm(found["made_by"], NAME_MOST),
        at=found["created_at"],
        reference_apps=[_reference(each, links) for each in found["reference_apps"]],
        tips=[calm(each["text"], LINE_MOST) for each in found["tips"]],
        methods=[
            Titled(
                title=calm(each["name"] or each["method_id"], NAME_MOST),
                text=calm(each["reason"], LINE_MOST),
                score=rounded(each["score"]),
            )
            for each in found["methods"]
        ],
        debates=[calm(each["summary"], BODY_MOST) for each in found["debates"]],
        messages=[
            Titled(title=calm(each["agent"], NAME_MOST), text=calm(each["text"], LINE_MOST))
            for debate in found["debates"]
            for each in debate["messages"]
        ],
        playbooks=[_lines(each["body"]) for each in found["playbooks"]],
        concepts=[
            Titled(title=calm(each["title"], NAME_MOST), text=calm(each["body"], BODY_MOST))
            for each in found["concepts"]
        ],
    )


def _today(found: Mapping[str, Any], known: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What the rules say of today's score, until the market is evaluated again. The ruling of a model stands, but nothing is
    built that is not good any more."""
    score, against = row["score"] or 0.0, known.get("against")
    if found["made_by"] == OFFLINE and isinstance(against, dict):
        return decided(score, final=bool(against.get("final")), early=(row["coverage"] or 0.0) < EARLY)
    verdict = calm(found["verdict"], NAME_MOST)
    return "watch" if verdict == "build" and score < GOOD else verdict


def _reference(row: dict[str, Any], links: bool) -> Reference:
    return Reference(
        id=row["track_id"],
        name=calm(row["track_name"] or f"app {row['track_id']}", NAME_MOST),
        role=calm(row["role"], NAME_MOST),
        ratings=row["rating_count"],
        stars=rounded(row["average_rating"]),
        price=None if row["formatted_price"] is None else calm(row["formatted_price"], NAME_MOST),
        url=cards.safe_url(row["track_view_url"], links),
    )


def _lines(text: str) -> str:
    """A body keeps its line breaks."""
    return cut("\n".join(calm(line) for line in text.splitlines()), BODY_MOST)
