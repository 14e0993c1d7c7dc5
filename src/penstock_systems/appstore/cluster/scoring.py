"""How promising a market is, from what is known of its keywords and apps. The formulas themselves are in `scores`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock_systems.appstore import founder, scores

KEYWORDS_COUNTED = 10  # a market is as wanted as its ten most wanted keywords
PLACES = scores.PLACES


@dataclass(frozen=True, slots=True)
class Score:
    demand: float
    competitiveness: float
    fragmentation: float
    opportunity: float
    dissatisfaction: float | None = None
    room: float | None = None
    scores: str = "article 1"
    known: float = 1.0  # how much of the score rests on something


def score(demands: Iterable[float], strengths: Sequence[tuple[float, float]], ratings: Sequence[int]) -> Score:
    """`strengths` are the competitiveness and the weight of each app, `ratings` how many rated each."""
    wanted = demand_of(demands)
    held = competitiveness_of(strengths)
    dispersed = scores.fragmentation(ratings)
    return Score(
        round(wanted, PLACES),
        round(held, PLACES),
        round(dispersed, PLACES),
        round(scores.opportunity(wanted, held, dispersed), PLACES),
    )


def founders_score(
    rivals: Sequence[founder.Rival], typed: Sequence[tuple[str, int]], usual: float, ratings_decide: float
) -> Score:
    found = founder.prospect(rivals, typed, usual=usual, ratings_decide=ratings_decide)
    return Score(
        round(found.demand or 0.0, PLACES),
        round(found.difficulty, PLACES),
        round(scores.fragmentation([app.ratings for app in rivals]), PLACES),
        round(found.score, PLACES),
        _rounded(found.dissatisfaction),
        _rounded(found.room),
        founder.VERSION,
        found.known,
    )


def _rounded(part: float | None) -> float | None:
    return None if part is None else round(part, PLACES)


def demand_of(demands: Iterable[float]) -> float:
    """The mean of the strongest: a long tail of keywords that few search for makes no market less wanted."""
    strongest = sorted(demands, reverse=True)[:KEYWORDS_COUNTED]
    return math.fsum(strongest) / len(strongest) if strongest else 0.0


def competitiveness_of(strengths: Sequence[tuple[float, float]]) -> float:
    """The mean over the apps, each as much as it is seen: nobody competes with an app that nobody finds."""
    total = math.fsum(weight for _, weight in strengths)
    return math.fsum(strength * weight for strength, weight in strengths) / total if total > 0 else 0.0
