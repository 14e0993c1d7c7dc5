"""What the crawl knows, read a page at a time into columns of numbers: millions of rankings in a few dozen megabytes."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import groupby, repeat
from typing import Any

from penstock_systems.appstore.app import db

PAGE_ROWS = 10_000  # as many as a read may bring
LOWEST = -(2**63)
NOT_KNOWN = math.nan
DAYS_KEPT = 10_000

# A page goes on after the last row of the one before, by the whole key: no keyword is cut in two.
RANKINGS = db.hot(
    """
select keyword, track_id, rank
from crawl_rankings
where (keyword, track_id) > (:keyword, :track_id)
order by keyword, track_id
limit :size
"""
)
APPS = db.hot(
    """
select track_id, rating_count, average_rating, rating_velocity_7d, competitiveness_score, developer_id, primary_genre,
  enrich_priority, track_name, release_date, version_released_at, reviews_read, reviews_unhappy
from app_registry
where track_id > :after
order by track_id
limit :size
"""
)
KEYWORDS = db.hot(
    """
select keyword, demand, priority, typed, titles, status
from crawl_keywords
where keyword > :after
order by keyword
limit :size
"""
)


def longs() -> array[int]:
    return array("q")


def doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Places:
    """One entry a place in a ranking. The keyword is a number: its place in `keywords`."""

    keywords: list[str] = field(default_factory=list)
    keyword: array[int] = field(default_factory=longs)
    track_id: array[int] = field(default_factory=longs)
    rank: array[int] = field(default_factory=longs)


@dataclass(slots=True)
class Registry:
    """One entry an app, by track id. A number that nobody knows is not a number; an unknown developer or genre is -1."""

    track_id: array[int] = field(default_factory=longs)
    ratings: array[int] = field(default_factory=longs)
    stars: array[float] = field(default_factory=doubles)
    velocity: array[float] = field(default_factory=doubles)
    score: array[float] = field(default_factory=doubles)
    developer: array[int] = field(default_factory=longs)
    genre: array[int] = field(default_factory=longs)
    priority: array[int] = field(default_factory=longs)
    title: list[str] = field(default_factory=list)
    released: array[int] = field(default_factory=longs)  # days are numbers; 0 where nobody knows
    updated: array[int] = field(default_factory=longs)
    reviews: array[int] = field(default_factory=longs)
    unhappy: array[int] = field(default_factory=longs)

    def priority_of(self, track_id: int) -> int | None:
        at = bisect_left(self.track_id, track_id)
        return self.priority[at] if at < len(self.track_id) and self.track_id[at] == track_id else None


@dataclass(slots=True)
class KeywordFacts:
    demand: dict[str, float] = field(default_factory=dict)  # where it is known
    priority: dict[str, int] = field(default_factory=dict)
    typed: dict[str, int] = field(default_factory=dict)  # after so many letters the store completes it; 0: never
    waiting: dict[str, int] = field(default_factory=dict)  # keywords that were not searched, by the titles they are in


@dataclass(slots=True)
class Crawled:
    places: Places
    registry: Registry
    keywords: KeywordFacts
    today: int = 0


async def crawled() -> Crawled:
    return Crawled(await _places(), await _registry(), await _keywords(), _day(await db.now()))


async def _places() -> Places:
    places = Places()
    last: str | None = None
    async for page in _ranking_pages():
        keywords, track_ids, ranks = zip(*page, strict=True)
        for keyword, same in groupby(keywords):
            if keyword != last:
                places.keywords.append(keyword)
                last = keyword
            places.keyword.extend(repeat(len(places.keywords) - 1, len(list(same))))
        places.track_id.extend(track_ids)
        places.rank.extend(ranks)
    return places


async def _ranking_pages() -> AsyncIterator[list[Any]]:
    keyword, track_id = "", LOWEST
    while page := await db.rows(RANKINGS, keyword=keyword, track_id=track_id, size=PAGE_ROWS):
        yield page
        keyword, track_id = page[-1][0], page[-1][1]
        if len(page) < PAGE_ROWS:
            return


async def _registry() -> Registry:
    apps = Registry()
    genres: dict[str, int] = {}
    async for page in db.pages(APPS, key="track_id", size=PAGE_ROWS):
        # By columns: a million rows are too many for a turn of Python each.
        ids, ratings, stars, velocity, score, developer, genre, priority, titles, *more = zip(*page, strict=True)
        apps.track_id.extend(ids)
        apps.ratings.extend(ratings)
        for known, told in ((apps.stars, stars), (apps.velocity, velocity), (apps.score, score)):
            known.extend([NOT_KNOWN if each is None else each for each in told])
        apps.developer.extend([-1 if each is None else each for each in developer])
        apps.genre.extend([-1 if each is None else genres.setdefault(each, len(genres)) for each in genre])
        apps.priority.extend(priority)
        apps.title.extend(titles)
        released, updated, reviews, unhappy = more
        for days, told in ((apps.released, released), (apps.updated, updated)):
            days.extend([_day(each) if each else 0 for each in told])
        for counts, told in ((apps.reviews, reviews), (apps.unhappy, unhappy)):
            counts.extend([each or 0 for each in told])
    return apps


@lru_cache(DAYS_KEPT)
def _day(moment: str) -> int:
    """The number of a day; 0 for what is no date."""
    try:
        return date.fromisoformat(moment[:10]).toordinal()
    except ValueError:
        return 0


async def _keywords() -> KeywordFacts:
    facts = KeywordFacts()
    async for page in db.pages(KEYWORDS, key="keyword", size=PAGE_ROWS, after=""):
        for keyword, demand, priority, typed, titles, status in page:
            facts.priority[keyword] = priority
            if typed is not None:
                facts.typed[keyword] = typed
            if status == "pending":
                facts.waiting[keyword] = titles
            if demand is not None:
                facts.demand[keyword] = demand
    return facts
