"""Which markets are worth looking into: the good ones, or in a small catalogue the best there are.

Markets that score above 70 are looked into, the best first, at most 20 at a time. Where fewer than three reach that, the best
three do, down to a score of 50: a catalogue of a few hundred apps has its best markets too, and somebody waits for a first
result. What was looked into within seven days, or anything of its lineage, is not looked into again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import penstock as ps

GOOD = 70.0
FLOOR = 50.0
FEW = 3
TOP = 20  # of one run
PERIOD_DAYS = 7


class Candidate(NamedTuple):
    cluster_id: int
    lineage_id: int
    score: float


def worthwhile(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best first, one of each lineage. Whether it was looked into lately is not asked here, so that the same markets are
    chosen again, and not ever weaker ones."""
    ranked = sorted(candidates, key=lambda each: (-each.score, each.cluster_id))
    best = ps.first_by(ranked, lambda each: each.lineage_id)
    good = [each for each in best if each.score > GOOD][:TOP]
    return good if len(good) >= FEW else [each for each in best if each.score >= FLOOR][:FEW]


def task_id(candidate: Candidate, day: str) -> str:
    """The name of the run that looks into it. Asked for twice on a day it is the same, and so is started once."""
    return f"market-{candidate.lineage_id}-{day}"
