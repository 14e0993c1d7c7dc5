"""What is known of a market when it is looked into: figures out of the database, and nothing else is argued with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from penstock_systems.appstore.founder import Figures
from penstock_systems.appstore.opportunity.complaints import Complaint

VISIBLE = 10  # the apps that people see: so many count as the market's leaders
WEAK_STARS = 4.0  # an app with fewer is weak, however many know it
PER_CENT = 100.0


class AppFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An app of the market. None where nobody knows."""

    track_id: int
    name: str
    seller: str
    weight: float
    ratings: int
    stars: float | None = None
    strength: float | None = None  # how hard it is to compete with
    velocity: float | None = None  # new ratings a day
    price: float | None = None
    shown_price: str | None = None  # as the store shows it, with the currency
    purchases: list[float] = []  # what it sells inside costs
    shown_purchases: list[str] = []  # the same as the store shows it
    languages: int | None = None
    genre: str | None = None
    age_days: int | None = None
    idle_days: int | None = None  # since its last version
    url: str | None = None
    reviews: int = 0  # that were read
    unhappy: int = 0  # of those

    @property
    def is_weak(self) -> bool:
        return self.stars is not None and self.stars < WEAK_STARS


class KeywordFacts(msgspec.Struct, frozen=True):
    keyword: str
    demand: float | None
    typed: int | None = None  # letters after which the store completes it; 0: never


class MarketFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A market, with its most visible apps and heaviest keywords first."""

    cluster_id: int
    lineage_id: int
    name: str
    score: float
    demand: float
    competitiveness: float
    fragmentation: float
    apps_count: int
    keywords_count: int
    apps: list[AppFacts]
    keywords: list[KeywordFacts]
    ratings_total: int
    ratings_first: int  # of the app that has the most
    dissatisfaction: float | None = None
    room: float | None = None
    coverage: float = 1.0  # the share of its apps' keywords that was searched
    franchise: str | None = None
    figures: Figures = Figures()
    strongest: list[AppFacts] = []  # the most rated first
    complaints: list[Complaint] = []
    change: float | None = None  # of its score, since the oldest snapshot of the last month
    neighbours: list[str] = []
    concept: str | None = None  # what the design agent would build

    @property
    def row(self) -> str:
        """The id of its figures among the evidence."""
        return f"market:{self.cluster_id}"

    @property
    def visible(self) -> list[AppFacts]:
        return self.apps[:VISIBLE]

    @property
    def leader(self) -> AppFacts | None:
        apps = self.strongest or self.visible
        return max(apps, key=lambda app: (app.ratings, -app.track_id), default=None)

    @property
    def weak(self) -> list[AppFacts]:
        return [app for app in self.visible if app.is_weak]

    @property
    def stars(self) -> float | None:
        """The mean of the visible apps that have any."""
        known = [app.stars for app in self.visible if app.stars is not None and app.ratings > 0]
        return math.fsum(known) / len(known) if known else None

    @property
    def first_share(self) -> float:
        return share(self.ratings_first, self.ratings_total)

    @property
    def reviews(self) -> int:
        return sum(app.reviews for app in self.visible)

    @property
    def unhappy(self) -> int:
        return sum(app.unhappy for app in self.visible)

    @property
    def unhappy_share(self) -> float:
        return share(self.unhappy, self.reviews)


def share(part: float, whole: float) -> float:
    """In per cent; nothing of nothing is nothing."""
    return PER_CENT * part / whole if whole > 0 else 0.0


def priced(prices: Iterable[tuple[float, str | None]]) -> str:
    """The median price as the store shows it, with its currency; the bare number where it shows none."""
    ordered = sorted(prices, key=lambda each: each[0])
    amount, shown = ordered[len(ordered) // 2]
    return shown or f"{amount:.2f}"


def middle(values: Sequence[float]) -> float:
    """The median."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if not ordered:
        return 0.0
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
