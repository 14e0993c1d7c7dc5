"""What a good market lends to its apps and keywords: one boost over their own priority, never more, and taken back slowly.

A priority has two parts: what others gave the subject, its base, and what is lent. Runs that find the same market good
again change nothing; a market that is good no longer takes half back at each run.
"""

from __future__ import annotations

from dataclasses import dataclass

GOOD = 70.0  # a market above this score is good
DECAY = 0.5  # what is left of a boost after a run in which its market was not good
LEAST = 1.0  # a smaller boost is none


@dataclass(frozen=True, slots=True)
class Boost:
    """How much a good market lends, and the priority that no boost exceeds."""

    step: int
    ceiling: int


APP = Boost(step=10, ceiling=100)
KEYWORD = Boost(step=5, ceiling=50)


@dataclass(frozen=True, slots=True)
class Held:
    """What a subject has been lent. `base` is its own priority."""

    base: int
    boost: float


@dataclass(frozen=True, slots=True)
class Change:
    """What to write: the priority, and what is held from now on; None if nothing is."""

    priority: int
    held: Held | None


def lent(priority: int, held: Held | None, *, good: bool, kind: Boost) -> Change | None:
    """What becomes of a subject's priority in this run; None if nothing does."""
    base = priority if held is None else held.base + priority - _raised(held, kind)
    boost = float(kind.step) if good else 0.0 if held is None else held.boost * DECAY
    after = Held(base, boost) if boost >= LEAST else None
    wanted = base if after is None else _raised(after, kind)
    if wanted == priority and after == held:
        return None
    return Change(wanted, after)


def _raised(held: Held, kind: Boost) -> int:
    """Somebody else's priority may be above the ceiling already; then it stays there."""
    return max(held.base, min(kind.ceiling, held.base + round(held.boost)))
