"""What a report says, as plain values: the same database gives the same report, to the byte. No clock is in it."""

from __future__ import annotations

from typing import Any

import msgspec

EARLY = 0.5  # below this coverage a market is judged early


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
    """A market; `number` is its place by score. One of a franchise has none: it is set apart."""

    number: int
    id: int
    name: str
    score: float | None
    change: float | None
    demand: float | None
    competitiveness: float | None
    dissatisfaction: float | None = None
    room: float | None = None
    coverage: float = 1.0
    franchise: str | None = None
    verdict: str | None = None
    apps: int
    keywords: int
    history: list[float]

    @property
    def early(self) -> bool:
        return self.coverage < EARLY


class Named(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    url: str | None = None


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A fact for or against a market, and the apps and keywords that it names."""

    text: str
    apps: list[Named] = []


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """One of the strongest apps of a market. `share` is its ratings divided by those of the strongest."""

    name: str
    ratings: int
    stars: float | None
    updated_years: float | None  # since its last update
    share: float
    url: str | None = None
    why: str | None = None  # it can be beaten


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """What a user wrote of an app, and how many complain about the same."""

    term: str
    reviews: int
    text: str
    app: str
    at: str


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """A keyword, and after how many letters the store completes it: 0 for never, None where it was not asked."""

    keyword: str
    letters: int | None


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
    """An evaluation of a market with all that belongs to it; `rank` is its place among them. Name and score are those of the
    market today; `judged` is the score that the evaluation was made at."""

    rank: int
    id: str
    market: int
    name: str
    score: float
    judged: float = 0.0
    early: bool = False
    verdict: str
    reason: str
    need: str = ""
    gap: str = ""
    price: str = ""
    parts: list[Titled] = []
    favour: list[Point] = []
    against: Point | None = None
    rivals: list[Rival] = []
    quotes: list[Quote] = []
    keywords: list[Typed] = []
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
    """One stretch of time: what was answered a minute, what the store would have borne, how often it refused. `busy` says
    whether work waited; `out` whether the store was out of order."""

    at: str
    pace: float
    limit: float | None = None
    refused: int = 0
    busy: bool = True
    out: bool = False
    searches: float = 0.0


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
    franchises: list[Market] = []
    opportunities: list[Opportunity]
    trends: dict[str, Any]
    pace: list[PacePoint]
    cost: Cost
    notes: list[str]
    version: int = 2
