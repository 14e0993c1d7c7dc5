"""How promising a market is, from what is known of its keywords and apps. The formulas themselves are in `scores`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock_systems.appstore import scores

KEYWORDS_COUNTED = 10  # a market is as wanted as its ten most wanted keywords
PLACES = scores.PLACES


@dataclass(frozen=True, slots=True)
class Score:
    demand: float
    competitiveness: float
    fragmentation: float
    opportunity: float


def score(demands: Iterable[float], strengths: Sequence[tuple[float, float]], ratings: Sequence[int]) -> Score:
    """`strengths` are the competitiveness and the weight of each app, `ratings` how many rated each."""
    wanted = demand_of(demands)
    held = competitiveness_of(strengths)
    dispersed = scores.fragmentation(ratings)
    return Score(
        *(round(each, PLACES) for each in (wanted, held, dispersed, scores.opportunity(wanted, held, dispersed)))
    )


def demand_of(demands: Iterable[float]) -> float:
    """The mean of the strongest: a long tail of keywords that few search for makes no market less wanted."""
    strongest = sorted(demands, reverse=True)[:KEYWORDS_COUNTED]
    return math.fsum(strongest) / len(strongest) if strongest else 0.0


def competitiveness_of(strengths: Sequence[tuple[float, float]]) -> float:
    """The mean over the apps, each as much as it is seen: nobody competes with an app that nobody finds."""
    total = math.fsum(weight for _, weight in strengths)
    return math.fsum(strength * weight for strength, weight in strengths) / total if total > 0 else 0.0
