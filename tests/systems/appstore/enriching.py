"""Hands for tests of the enrichment: the app with all its tasks at rest, and a store that answers as a test wants it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import outside, stages
from penstock_systems.appstore.enrich import asking
from penstock_systems.appstore.store.facts import Found, PageFacts, Portfolio, Ratings, Review, ReviewPage
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling

ALL = stages  # their handlers are there once they are imported
db = shared.db
GONE = ps.Gone("404")
REFUSED = ps.Throttled("403")
DOWN = ps.Unavailable("503")
STRANGE = ps.Unparsable("no data")
APP = 700


@asynccontextmanager
async def enriching(pipeline: Opened, **given: Any) -> AsyncIterator[Pipeline]:
    """As `crawling`, and the enrichment runs."""
    async with crawling(pipeline, **given) as it:
        await shared.app.controllers.operate("enrichment", "start")
        yield it


def page(track_id: int = APP, **more: Any) -> PageFacts:
    return PageFacts(track_id=track_id, **{"title": f"App {track_id}", **more})


def found(track_id: int = APP, **more: Any) -> Found:
    return Found(track_id=track_id, **{"title": f"App {track_id}", "developer": "Example Labs", **more})


def review(number: int, **more: Any) -> Review:
    usual = {"title": "Love it", "body": "Great", "updated": "2025-12-30 10:00:00"}
    return Review(review_id=f"r{number}", **{"rating": 5, **usual, **more})


class Store:
    """What the store says about any app: a value, an exception to raise, or a function of the app's id."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.page: Any = page
        self.lookup: Any = found
        self.ratings: Any = None
        self.reviews: Any = ()
        self.believed = True
        self.portfolio: Any = ()
        self.asked: list[tuple[str, int]] = []
        self.refreshed: list[int] = []
        for name in ("page", "ratings", "lookup", "lookup_many"):
            monkeypatch.setattr(outside.store, name, getattr(self, f"_{name}"))
        for name in ("reviews", "portfolio"):
            monkeypatch.setattr(asking.beside, name, getattr(self, f"_{name}"))

    def count(self, kind: str) -> int:
        return sum(asked == kind for asked, _ in self.asked)

    def _answer(self, kind: str, track_id: int) -> Any:
        self.asked.append((kind, track_id))
        answer = getattr(self, kind)
        answer = answer(track_id) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _page(self, track_id: int, refresh: bool = False) -> PageFacts:
        self.refreshed += [track_id] if refresh else []
        told: PageFacts = self._answer("page", track_id)
        return told

    async def _ratings(self, track_id: int) -> Ratings | None:
        told: Ratings | None = self._answer("ratings", track_id)
        return told

    async def _lookup(self, track_id: int) -> Found | None:
        told: Found | None = self._answer("lookup", track_id)
        return told

    async def _lookup_many(self, ids: Iterable[int]) -> dict[int, Found]:
        wanted = list(ids)
        self.asked.append(("lookup_many", len(wanted)))
        answers = {track_id: self._answer("lookup", track_id) for track_id in wanted}
        return {track_id: told for track_id, told in answers.items() if told is not None}

    async def _reviews(self, track_id: int, number: int = 1, *, rated: bool | None = None) -> ReviewPage:
        return ReviewPage(tuple(self._answer("reviews", track_id)), self.believed)

    async def _portfolio(self, developer_id: int) -> Portfolio:
        return Portfolio(developer_id, "Example Labs", tuple(self._answer("portfolio", developer_id)))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


async def row_of(it: Pipeline, track_id: int = APP) -> Any:
    [row] = await it.sql(ROW, track_id=track_id)
    return row


ROW = """
select track_id, track_name, seller_name, average_rating, rating_count, primary_genre, price, formatted_price, description,
  version, content_rating, languages, developer_id, subtitle, screenshots, rating_histogram, in_app_purchases,
  iap_scraped_at, iap_scrape_status, similar_apps, data_source, last_seen_at, enriched_at, enrichment_source,
  enrich_priority, enrich_attempts, next_enrich_at, enrich_error
from app_registry
where track_id = :track_id
"""
