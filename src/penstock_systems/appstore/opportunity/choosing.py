"""Which markets are worth looking into: those that score 70 or more, at most twenty; where fewer than ten do, the best ten.

A market that was looked into within seven days, or
another one of its lineage, is looked into again only if its score has moved by five points since, or across 70, and then on
another day.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.data import first_by

GOOD = 70.0
TOP, LEAST = 20, 10  # of one run; and where fewer are good
PERIOD_DAYS = 7
MOVED = 5.0


class Candidate(NamedTuple):
    cluster_id: int
    lineage_id: int
    score: float


def worthwhile(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best first, one of each lineage. Whether it was looked into lately is not asked here, so that the same markets are
    chosen again, and not ever weaker ones."""
    ranked = sorted(candidates, key=lambda each: (-each.score, each.cluster_id))
    best = first_by(ranked, lambda each: each.lineage_id)
    good = sum(each.score >= GOOD for each in best)
    return best[: min(TOP, max(LEAST, good))]


def is_news(score: float, before: float, *, same_day: bool) -> bool:
    """Whether a market that was looked into lately is to be looked into again: on another day, if its score has moved far, or
    has become good or ceased to be."""
    return not same_day and (abs(score - before) >= MOVED or (score >= GOOD) != (before >= GOOD))


def task_id(candidate: Candidate, day: str) -> str:
    """The name of the run that looks into it. Asked for twice on a day it is the same, and so is started once."""
    return f"market-{candidate.lineage_id}-{day}"
