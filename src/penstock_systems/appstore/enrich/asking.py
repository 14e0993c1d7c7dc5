"""Asks the store all there is to ask about one app, at once and within the limit on what is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

from penstock_systems.appstore.app import app, html_cache, settings, web
from penstock_systems.appstore.enrich.ahead import Ahead
from penstock_systems.appstore.enrich.outbound import Outbound
from penstock_systems.appstore.enrich.parts import Answer, Part, Parts
from penstock_systems.appstore.outside import feeding, searching, store
from penstock_systems.appstore.store.client import AppStore
from penstock_systems.appstore.store.facts import Found, PageFacts, Ratings, Review

PART_SECONDS = 50.0  # of one part, with the wait for its turn: less than an item may take altogether
REVIEWS_A_PAGE = 50
# Charts and reviews share a pace that may be slower than that of pages. An app does not wait for it: without its feed it
# has the reviews that its page shows.
REVIEWS_WAIT_SECONDS_MAX = 0.2
PORTFOLIO_WAIT_SECONDS_MAX = 5.0  # then its message goes back, and lets others go first


class Pace(Protocol):
    def permit(
        self, item: str | None = None, *, max_wait: float | None = None
    ) -> AbstractAsyncContextManager[None]: ...


class Impatient:
    """A pace for what can also be left out, or done later."""

    def __init__(self, pace: Pace, seconds: float) -> None:
        self._pace = pace
        self._seconds = seconds

    def permit(self, item: str | None = None) -> AbstractAsyncContextManager[None]:
        return self._pace.permit(item, max_wait=self._seconds)


outbound = Outbound(settings.outbound_max)
ahead = Ahead(app._opened, store, outbound)
beside = AppStore(
    web,
    app.page_cache(html_cache, web),
    settings,
    searching=Impatient(searching, PORTFOLIO_WAIT_SECONDS_MAX),
    feeding=Impatient(feeding, REVIEWS_WAIT_SECONDS_MAX),
)


async def ask(track_id: int, *, refresh: bool) -> Parts:
    """The look-up, the page with the purchases on it, the reviews, and the ratings where the page does not show them. What
    one lacks takes nothing from the others."""
    async with asyncio.TaskGroup() as tasks:
        lookup = tasks.create_task(_part(lambda: ahead.get(track_id)))
        page = tasks.create_task(_part(lambda: _within(lambda: store.page(track_id, refresh=refresh))))
        ratings = tasks.create_task(_part(lambda: _ratings(track_id, page)))
        reviews = tasks.create_task(_part(lambda: _reviews(track_id, lookup)))
    return Parts(lookup.result(), page.result(), ratings.result(), reviews.result())


async def _part(asked: Callable[[], Awaitable[Answer | None]]) -> Part[Answer]:
    try:
        async with asyncio.timeout(PART_SECONDS):
            return Part(await asked())
    except Exception as error:
        return Part(error=error)


async def _within(asked: Callable[[], Awaitable[Answer]]) -> Answer:
    async with outbound:
        return await asked()


async def _ratings(track_id: int, page: asyncio.Task[Part[PageFacts]]) -> Ratings | None:
    """Those of the page. Only where it shows none is the store asked for them."""
    shown = (await asyncio.shield(page)).value
    return shown.ratings if shown and shown.ratings else await _within(lambda: store.ratings(track_id))


async def _reviews(track_id: int, lookup: asyncio.Task[Part[Found]]) -> tuple[Review, ...] | None:
    """None where an empty answer is not believed. Who has no ratings has no reviews, and is not asked about."""
    found = (await asyncio.shield(lookup)).value
    rated = None if found is None or found.ratings is None else found.ratings > 0
    if rated is False:
        return ()
    told: list[Review] = []
    for number in range(1, settings.review_pages + 1):
        try:
            page = await _within(partial(beside.reviews, track_id, number, rated=rated))
        except Exception:
            if told:
                break  # what was heard before is kept
            raise
        if not page.believed:
            return None
        told += page.reviews
        if len(page.reviews) < REVIEWS_A_PAGE:
            break
    return tuple(told)
