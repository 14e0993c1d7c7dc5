"""How much a market's figures rest on: a good score of one of which little is known is believed less.

Few apps with few ratings are easy to compete with by the figures, and all that is known is that they are few.
"""

from __future__ import annotations

MIDDLE = 50.0  # no market of which nothing is known is better
# At so many half of a score is believed.
APPS_HALF, KEYWORDS_HALF, RATINGS_HALF = 10, 5, 1_000


def evidence(*, apps: int, keywords: int, ratings: int | None = None) -> float:
    """From 0 to 1. A market is known as well as that of which there is least; ratings count where they were counted."""
    known = [_part(apps, APPS_HALF), _part(keywords, KEYWORDS_HALF)]
    if ratings is not None:
        known.append(_part(ratings, RATINGS_HALF))
    return min(known)


def believed(score: float, known: float) -> float:
    """A good score, moved to the middle as far as nothing is known. A bad one stays: not to be known makes nothing better."""
    return round(min(score, MIDDLE + (score - MIDDLE) * known), 2)


def _part(count: int, half: int) -> float:
    return max(0, count) / (max(0, count) + half)
