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
    coverage: float  # the share of its apps' keywords that was searched
    typical: tuple[str, ...] = ()  # keywords that the store was not asked to complete yet
    names: tuple[str, ...] = ()  # words that most of its ratings have in their titles: each may be a franchise
    franchise: str | None = None  # the one of them that has an owner


@dataclass(frozen=True, slots=True)
class Computed:
    markets: list[Market]
    near: list[tuple[int, int, float]]  # neighbours, by their places in `markets`
    keywords: int
    apps: int
    resolution: float
