"""What the store says, in one shape whichever of its endpoints said it. None means that it did not say."""

from __future__ import annotations

import msgspec


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An app as a chart, a search, a look-up or a shelf of similar apps shows it."""

    track_id: int
    title: str | None = None
    bundle_id: str | None = None
    developer: str | None = None
    developer_id: int | None = None
    developer_website: str | None = None
    score: float | None = None
    ratings: int | None = None
    genre: str | None = None
    genre_id: int | None = None
    price: float | None = None
    formatted_price: str | None = None
    icon: str | None = None
    url: str | None = None
    description: str | None = None
    released: str | None = None
    version: str | None = None
    version_released: str | None = None
    release_notes: str | None = None
    content_rating: str | None = None
    languages: tuple[str, ...] | None = None
    screenshots: tuple[str, ...] | None = None
    subtitle: str | None = None
    rank: int | None = None  # its place in a chart or a search, which a neighbour that cannot be read does not shift


class Purchase(msgspec.Struct, frozen=True):
    """Something to buy inside an app. The price is display text; `amount` is the number in it, where there is one."""

    name: str
    price: str
    amount: float | None = None


class Version(msgspec.Struct, frozen=True):
    version: str
    released: str | None = None
    notes: str | None = None


class Review(msgspec.Struct, frozen=True, kw_only=True):
    review_id: str
    rating: int
    title: str = ""
    body: str = ""
    author: str | None = None
    version: str | None = None
    updated: str | None = None


class ReviewPage(msgspec.Struct, frozen=True):
    """`believed` is false where an empty answer may be a refusal: then it says nothing about the app."""

    reviews: tuple[Review, ...]
    believed: bool


class Ratings(msgspec.Struct, frozen=True):
    """How many stars were given, one star first."""

    total: int
    histogram: tuple[int, int, int, int, int]

    @property
    def average(self) -> float | None:
        counted = sum(self.histogram)
        return sum(stars * count for stars, count in enumerate(self.histogram, 1)) / counted if counted else None


class Portfolio(msgspec.Struct, frozen=True):
    developer_id: int
    name: str | None
    apps: tuple[Found, ...]


class PageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a product page holds. A shelf that is not there is empty: the app has none of that."""

    track_id: int
    title: str | None = None
    subtitle: str | None = None
    developer: str | None = None
    bundle_id: str | None = None
    description: str | None = None
    ratings: Ratings | None = None
    average: float | None = None
    purchases: tuple[Purchase, ...] = ()
    similar: tuple[Found, ...] = ()
    more_by_developer: tuple[Found, ...] = ()
    versions: tuple[Version, ...] = ()
    screenshots: tuple[str, ...] = ()
    reviews: tuple[Review, ...] = ()
    content_rating: str | None = None
    languages: tuple[str, ...] = ()
    seller: str | None = None
    genre: str | None = None
    icon: str | None = None
    price: float | None = None
    formatted_price: str | None = None
    rating_count: int | None = None  # also where there is no histogram
    information: tuple[tuple[str, str], ...] = ()  # the rows of the table at its end, as they are titled there
    form: str = "data"  # what it was read from: data, shoebox or markup
