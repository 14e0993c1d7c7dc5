"""A market as a run computed it, before anybody knows which one it is."""

from __future__ import annotations

from dataclasses import dataclass

from penstock_systems.appstore.cluster.scoring import Score


@dataclass(frozen=True, slots=True)
class Market:
    """Keywords and apps have weights, the heaviest first: the most typical keyword and the most visible app have 1."""

    name: str
    score: Score
    keywords: dict[str, float]
    apps: dict[int, float]


@dataclass(frozen=True, slots=True)
class Computed:
    markets: list[Market]
    near: list[tuple[int, int, float]]  # neighbours, by their places in `markets`
    keywords: int
    apps: int
    resolution: float
