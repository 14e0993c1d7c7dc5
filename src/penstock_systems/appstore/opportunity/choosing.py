"""Which markets are worth looking into: the best there are.

The best twenty are looked into, down to a score of 50; a good score of a market of which little is known counts for less. A
score above 70 is what calls a market good; but a catalogue of a few thousand apps has its best markets too, and somebody
waits for a first result. What was looked into within seven days, or anything of its lineage, is not looked into again, unless
its score has moved by five points since: then it is, but on another day.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.data import first_by
from penstock_systems.appstore.opportunity.evidence import believed

FLOOR = 50.0
TOP = 20  # of one run
PERIOD_DAYS = 7
MOVED = 5.0


class Candidate(NamedTuple):
    cluster_id: int
    lineage_id: int
    score: float
    known: float = 1.0  # how much the score rests on, from 0 to 1


def worthwhile(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best first, one of each lineage. Whether it was looked into lately is not asked here, so that the same markets are
    chosen again, and not ever weaker ones."""
    ranked = sorted(candidates, key=lambda each: (-believed(each.score, each.known), each.cluster_id))
    best = first_by(ranked, lambda each: each.lineage_id)
    return [each for each in best if each.score >= FLOOR][:TOP]


def is_news(score: float, before: float, *, same_day: bool) -> bool:
    """Whether a market that was looked into lately is to be looked into again."""
    return not same_day and abs(score - before) >= MOVED


def task_id(candidate: Candidate, day: str) -> str:
    """The name of the run that looks into it. Asked for twice on a day it is the same, and so is started once."""
    return f"market-{candidate.lineage_id}-{day}"
