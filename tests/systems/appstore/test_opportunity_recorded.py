"""Everything that is said of twenty-four markets, compared with the recorded text.

Their figures lie on both sides of every threshold. After an intended change of a rule or a sentence, `python -m
tests.systems.appstore.test_opportunity_recorded` records the text anew, and the difference of `evaluations.txt` is reviewed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

from penstock_systems.appstore.founder import Figures
from penstock_systems.appstore.opportunity.advice import playbook, tips
from penstock_systems.appstore.opportunity.case import case_of, reason
from penstock_systems.appstore.opportunity.complaints import Complaint
from penstock_systems.appstore.opportunity.facts import AppFacts, KeywordFacts, MarketFacts
from penstock_systems.appstore.opportunity.methods import method_scores
from penstock_systems.appstore.opportunity.references import references

RECORDED = Path(__file__).with_name("evaluations.txt")
MARKETS = 24
T = TypeVar("T")


def turn(number: int, step: int, values: list[T]) -> T:
    """One of the values for each market. Steps differ, so that the values of different figures meet each other."""
    return values[(number // step) % len(values)]


def app(number: int, at: int) -> AppFacts:
    return AppFacts(
        track_id=100 * number + at,
        name=f"App {at}",
        seller=f"Seller {at % 4}",
        weight=1.0 / at,
        ratings=turn(number + 3 * at, 1, [500_000, 0, 12, 900, 500_001, 7_000, 60]),
        stars=turn(number + at, 1, [4.0, 3.99, None, 4.7, 2.5, 4.5, 3.1, 4.9]),
        velocity=turn(number + at, 2, [0.0, None, 0.4, -3.0, 12.5, 81.0]),
        price=turn(number + at, 3, [0.0, 1.99, None, 4.99]) if number % 3 else turn(at, 1, [0.0, None]),
        languages=turn(number + at, 1, [1, 2, None, 1]),
        genre=turn(number + at, 2, ["Games", None, "Business"]),
        reviews=turn(number + at, 1, [0, 5, 4, 10, 1]),
        unhappy=turn(number + at, 1, [0, 2, 4, 3, 1]),
        idle_days=turn(number + at, 3, [None, 365, 366, 12, 1_200]),
    )


def market(number: int) -> MarketFacts:
    total = turn(number, 1, [0, 1_000, 40, 3_000_000])
    apps = [app(number, at) for at in range(1, turn(number, 1, [0, 1, 4, 12, 13]) + 1)]
    complaint = Complaint(
        "crashes", 7, "It crashes when I open it.", f"r{number}", 100 * number + 1, "App 1", "2026-01-01"
    )
    leader = max((each.ratings for each in apps), default=0)
    figures = Figures(
        leader_ratings=leader,
        follower_ratings=turn(number, 2, [0, 900, 12]),
        total_ratings=total,
        stars=turn(number, 2, [None, 3.9, 3.91, 4.39, 4.4, 3.0]),
        leaders_known=5,
        leaders_abandoned=number % 4,
        apps_dated=turn(number, 3, [0, 12]),
        young=turn(number, 5, [3, 0]),
        young_gain=turn(number, 2, [None, 1.25, 0.0]),
        old_gain=turn(number, 3, [None, 0.5]),
        gain=turn(number, 2, [None, 0.9, 12.0, 340.0]),
        momentum=turn(number, 3, [None, 0.19, 0.2, 0.201, 0.9]),
        typed=turn(number, 2, [(), (("sleep", 0), ("nap", 0)), (("sleep", 4), ("nap", 5)), (("nap", 3), ("sleep", 2))]),
    )
    return MarketFacts(
        cluster_id=number,
        lineage_id=number,
        name=f"Market {number}",
        score=turn(number, 1, [69.9, 70.0, 49.9, 50.0, 88.0]),
        dissatisfaction=turn(number, 2, [None, 20.0, 71.0]),
        room=turn(number, 1, [None, 60.0, 59.9, 35.0, 34.9]),
        coverage=turn(number, 7, [1.0, 0.5, 0.49]),
        franchise="blokoria" if number % 9 == 8 else None,
        figures=figures,
        strongest=sorted(apps, key=lambda each: -each.ratings)[:10],
        demand=turn(number, 1, [60.0, 59.9, 40.0, 39.9, 95.0]),
        competitiveness=turn(number, 2, [45.0, 45.1, 65.0, 65.1, 12.0]),
        fragmentation=turn(number, 3, [70.0, 69.9, 20.0]),
        apps_count=turn(number, 1, [3, 10, 4_000]),
        keywords_count=turn(number, 2, [50, 5, 51, 1]),
        apps=apps,
        keywords=[
            KeywordFacts(words, turn(number + at, 1, [None, 81.0, 33.3, 81.0]))
            for at, words in enumerate(["habit tracker", "daily habit", "sleep", "sleep tracker"][: number % 5])
        ],
        ratings_total=total,
        ratings_first=int(total * turn(number, 4, [0.6, 0.601, 0.3])),
        complaints=turn(number, 2, [[], [complaint]]),
        change=turn(number, 1, [None, 1.0, 0.9, -1.0, -0.9, 7.25, -4.5]),
        neighbours=turn(number, 3, [[], ["Sleep, noise"], ["Diet", "Yoga", "Running"]]),
        concept=turn(number, 5, [None, "a calm one"]),
    )


def evaluated(facts: MarketFacts) -> str:
    case = case_of(facts)
    methods = method_scores(facts)
    lines = [f"== {facts.name}: {case.verdict}{' early' if case.early else ''}"]
    lines += [f"+ {each.part} {each.weight:.2f}: {each.text} {', '.join(each.rows)}" for each in case.favour]
    against = case.against
    lines.append(f"- {against.part} {against.weight:.2f}: {against.text} {', '.join(against.rows)} {against.final}")
    lines += [f"beat {each.name}: {each.why}" for each in case.beat]
    lines.append(reason(case))
    lines += [f"{each.method_id} {each.score}: {each.reason}" for each in methods]
    lines += [f"{each.app.name} is {each.role}" for each in references(facts)]
    lines += [f"tip: {tip}" for tip in tips(facts)]
    if facts.cluster_id % 6 == 0:  # a playbook repeats what is above
        lines.append(playbook(facts, case.verdict, methods, {"forums": "Forums"}, tips(facts)))
    return "\n".join(lines) + "\n"


@pytest.mark.slow("postgres")
@pytest.mark.parametrize("number", range(MARKETS))
def test_a_market_is_evaluated_as_recorded(number: int) -> None:
    recorded = RECORDED.read_text("utf-8").split("\n\n\n")

    assert evaluated(market(number)).rstrip("\n") == recorded[number].rstrip("\n")


if __name__ == "__main__":
    RECORDED.write_text("\n\n".join(evaluated(market(number)) for number in range(MARKETS)), encoding="utf-8")
