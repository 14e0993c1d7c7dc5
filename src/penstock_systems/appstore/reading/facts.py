"""What a report says, as plain values: the same database gives the same report, to the byte. No clock is in it."""

from __future__ import annotations

from typing import Any

import msgspec


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What there is."""

    apps: int
    enriched: int
    developers: int
    keywords: int
    rankings: int
    reviews: int
    markets: int
    opportunities: int


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """How many apps have come through a stage."""

    name: str
    apps: int
    meaning: str


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """A market; `number` is its place by score, and what it is called by on the map."""

    number: int
    id: int
    name: str
    score: float | None
    change: float | None
    demand: float | None
    competitiveness: float | None
    fragmentation: float | None
    apps: int
    keywords: int
    history: list[float]


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """Two markets that have apps or keywords in common, by their ids."""

    a: int
    b: int
    weight: float


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An app that an evaluation refers to. Its address is left out unless it is one that a browser may follow safely."""

    id: int
    name: str
    role: str
    ratings: int | None
    stars: float | None
    price: str | None
    url: str | None


class Titled(msgspec.Struct, frozen=True, kw_only=True):
    """A text under a title: who said it, what it is called."""

    title: str
    text: str
    score: float | None = None


class Opportunity(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluation of a market with all that belongs to it; `rank` is its place among them."""

    rank: int
    id: str
    market: int
    name: str
    score: float
    verdict: str
    reason: str
    made_by: str
    at: str
    reference_apps: list[Reference]
    tips: list[str]
    methods: list[Titled]
    debates: list[str]
    messages: list[Titled]
    playbooks: list[str]
    concepts: list[Titled]


class PacePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of time: what was answered a minute, what the store would have borne, how often it refused."""

    at: str
    pace: float
    limit: float | None = None
    refused: int = 0


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of usage in the month, and what a platform would charge for it."""

    name: str
    used: float
    usd: float


class PaidCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that somebody is paid for."""

    provider: str
    operation: str
    calls: int
    usd: float


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What the month of the newest data has used, and all calls that were paid for."""

    month: str
    lines: list[CostLine]
    usd: float
    paid: list[PaidCalls]
    paid_usd: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `begins` and `ends` are the oldest and the newest moment in the data."""

    title: str
    begins: str | None
    ends: str | None
    figures: Figures
    funnel: list[Stage]
    markets: list[Market]
    relations: list[Relation]
    opportunities: list[Opportunity]
    trends: dict[str, Any]
    pace: list[PacePoint]
    cost: Cost
    notes: list[str]
    version: int = 1
