"""What four agents make of a market, each from its own figures. One that has none says nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from penstock_systems.appstore.opportunity.facts import MarketFacts

CONTENT_STARS, MISERABLE_STARS = 4.6, 3.0  # the means at which nobody and everybody is waiting for something better
REVIEWS_LEAST = 10  # that have to be read before they count
UNHAPPY_FULL = 60.0  # per cent of unhappy reviews that count in full
WEIGHTS = {"demand": 0.35, "rivals": 0.25, "users": 0.20, "room": 0.20}


class Opinion(msgspec.Struct, frozen=True):
    """`score` is 0 to 100, the higher the better for a newcomer."""

    agent: str
    score: float
    says: str


def opinions(facts: MarketFacts) -> list[Opinion]:
    found = [_demand(facts), _rivals(facts), _users(facts), _room(facts)]
    return [each for each in found if each is not None]


def overall(said: Sequence[Opinion]) -> float:
    """The weighted mean of those who said something."""
    weight = math.fsum(WEIGHTS[each.agent] for each in said)
    return round(math.fsum(WEIGHTS[each.agent] * each.score for each in said) / weight, 2) if weight else 0.0


def _demand(facts: MarketFacts) -> Opinion:
    known = [word for word in facts.keywords if word.demand is not None]
    strongest = max(known, key=lambda word: (word.demand or 0.0, word.keyword), default=None)
    says = f"The strongest keywords of this market have a demand of {facts.demand:.0f} of 100"
    if strongest is not None:
        says += f'; the strongest is "{strongest.keyword}" with {strongest.demand:.0f}'
    return Opinion("demand", _bounded(facts.demand), says + ".")


def _rivals(facts: MarketFacts) -> Opinion:
    says = f"The strength of the apps that users find here is {facts.competitiveness:.0f} of 100"
    if (leader := facts.leader) is not None:
        stars = "no stars yet" if leader.stars is None else f"{leader.stars:.1f} stars"
        says += f"; the best known, {leader.name}, has {leader.ratings:,} ratings and {stars}"
    return Opinion("rivals", _bounded(100 - facts.competitiveness), says + ".")


def _users(facts: MarketFacts) -> Opinion | None:
    """How much people would like something better: from the stars they give, and from what they write."""
    parts, said = [], []
    if facts.stars is not None:
        parts.append(100 * (CONTENT_STARS - facts.stars) / (CONTENT_STARS - MISERABLE_STARS))
        said.append(f"the visible apps have {facts.stars:.1f} stars on average")
    if facts.reviews >= REVIEWS_LEAST:
        parts.append(100 * facts.unhappy_share / UNHAPPY_FULL)
        said.append(f"{facts.unhappy} of the {facts.reviews} newest reviews of them are unhappy")
    if not parts:
        return None
    text = " and ".join(said)
    return Opinion("users", _bounded(math.fsum(map(_bounded, parts)) / len(parts)), f"{text[:1].upper()}{text[1:]}.")


def _room(facts: MarketFacts) -> Opinion:
    says = f"{facts.apps_count:,} apps share {facts.ratings_total:,} ratings"
    if facts.ratings_total:
        says += f"; the first has {facts.first_share:.0f} % of them, the first three {facts.three_share:.0f} %"
    return Opinion("room", _bounded(facts.fragmentation), says + ".")


def _bounded(score: float) -> float:
    return round(min(100.0, max(0.0, score)), 2)
