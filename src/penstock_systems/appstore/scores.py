"""The formulas by which apps, keywords and markets are scored: pure, between 0 and 100, the same wherever they are used."""

from __future__ import annotations

import math
from collections.abc import Sequence

MANY_RATINGS_LOG = 6.0  # a million ratings count in full, and more count no more
FAST_RATINGS_A_DAY = 100.0  # so many new ratings a day count in full
STARS_MOST = 5.0
RANKS_COUNTED = 10
HARMONIC = sum(1 / rank for rank in range(1, RANKS_COUNTED + 1))
WEIGHTS = {"ratings": 50.0, "stars": 30.0, "velocity": 20.0}  # of competitiveness
OPPORTUNITY = {"demand": 0.4, "ease": 0.35, "fragmentation": 0.25}
PLACES = 4  # of a score that is stored


def competitiveness(rating_count: int, average_rating: float | None, velocity: float | None) -> float:
    """How hard an app is to compete with: how many rated it, how well, and how many more do so each day."""
    return math.fsum(competitiveness_parts(rating_count, average_rating, velocity))


def competitiveness_parts(
    rating_count: int, average_rating: float | None, velocity: float | None
) -> tuple[float, float, float]:
    """What its number of ratings, its stars and its new ratings a day contribute."""
    many = min(1.0, math.log10(1 + max(0, rating_count)) / MANY_RATINGS_LOG)
    loved = min(1.0, max(0.0, average_rating or 0.0) / STARS_MOST)
    growing = min(1.0, max(0.0, velocity or 0.0) / FAST_RATINGS_A_DAY)
    return WEIGHTS["ratings"] * many, WEIGHTS["stars"] * loved, WEIGHTS["velocity"] * growing


def demand(counts: Sequence[int]) -> float:
    """How much a keyword is wanted, from the rating counts of the apps that rank for it, the first rank first.

    Ten apps with a million ratings each make 100."""
    ranked = enumerate(counts[:RANKS_COUNTED], 1)
    raw = math.fsum(math.log10(1 + max(0, count)) / rank for rank, count in ranked)
    return min(100.0, 100 * raw / (MANY_RATINGS_LOG * HARMONIC))


def fragmentation(counts: Sequence[int]) -> float:
    """How dispersed a market is: 0 where one app has all the ratings, near 100 where many have a few each.

    A market in which nobody was rated has no leader, so its apps share it evenly."""
    known = [max(0, count) for count in counts]
    total = sum(known)
    if not total:
        return 100 * (1 - 1 / len(known)) if known else 0.0
    return max(0.0, 100 * (1 - math.fsum((count / total) ** 2 for count in known)))


def opportunity(demand: float, competitiveness: float, fragmentation: float) -> float:
    """How promising a market is: wanted, not held by strong apps, and not one leader's."""
    return math.fsum(
        (
            OPPORTUNITY["demand"] * demand,
            OPPORTUNITY["ease"] * (100 - competitiveness),
            OPPORTUNITY["fragmentation"] * fragmentation,
        )
    )
