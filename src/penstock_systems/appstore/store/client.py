"""The store as the stages see it: one method a question, facts for an answer, and its refusals as errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import penstock as ps
from penstock.data import chunks
from penstock_systems.appstore.settings import Settings
from penstock_systems.appstore.store import hints, ratings
from penstock_systems.appstore.store.charts import ENTRIES_MAX, chart_url, parse_chart
from penstock_systems.appstore.store.decoding import Read
from penstock_systems.appstore.store.facts import Found, PageFacts, Portfolio, Ratings, ReviewPage
from penstock_systems.appstore.store.genres import genres_url, parse_genres
from penstock_systems.appstore.store.lookup import IDS_A_CALL, lookup_url, parse_lookup, parse_portfolio
from penstock_systems.appstore.store.page import page_key, page_url, parse_page
from penstock_systems.appstore.store.reviews import PAGES_MAX, TOO_DEEP, parse_reviews, reviews_url
from penstock_systems.appstore.store.search import parse_search, search_url
from penstock_systems.appstore.store.storefronts import HEADER, storefront
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.appstore.store.together import Joined, OneAtATime
from penstock_systems.appstore.store.values import identity

TOO_FAST = frozenset({403})  # by which the store means 429
JOINED_SECONDS = 0.01  # ids asked for within this are looked up in one call

T = TypeVar("T")


class Answer(Protocol):
    @property
    def body(self) -> bytes: ...


class Web(Protocol):
    """What is needed of the HTTP client: it raises for everything that is not a 2xx, and names no User-Agent."""

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, refusals: Set[int] = ...) -> Answer: ...


class Pages(Protocol):
    """What is needed of the page cache."""

    async def get(
        self,
        url: str,
        *,
        key: str,
        bypass: bool = False,
        good: Callable[[Any], bool] | None = None,
        headers: Mapping[str, str] | None = None,
        robots: bool = False,
        refusals: Set[int] = ...,
    ) -> Answer: ...


class Pace(Protocol):
    def permit(self, item: str | None = None) -> AbstractAsyncContextManager[None]: ...


class AppStore:
    """Raises Throttled (403, 429), Unavailable (5xx, time-outs), Gone (404) and Unparsable."""

    def __init__(
        self,
        web: Web,
        pages: Pages,
        settings: Settings,
        *,
        searching: Pace | None = None,
        feeding: Pace | None = None,
        hinting: Pace | None = None,
    ) -> None:
        """Searches and look-ups share one pace, all feeds another. Pages and ratings are the caller's to pace."""
        self._web = web
        self._pages = pages
        self._settings = settings
        self._searching = searching
        self._feeding = feeding
        self._hinting = hinting
        self._storefront = storefront(settings.country)
        self._country, self._language = settings.country, settings.language
        self._itunes = settings.bases.itunes.rstrip("/")
        self._apps = settings.bases.apps.rstrip("/")
        self._search_host = settings.bases.search.rstrip("/")
        self._lookups: Joined[int, Found] = Joined(self._looked_up, window=JOINED_SECONDS, most=IDS_A_CALL)
        self._fetches: OneAtATime[tuple[int, bool], PageFacts] = OneAtATime()
        self.skipped: Counter[str] = Counter()  # entries that could not be read, by endpoint

    async def chart(self, collection: str, genre_id: int | None = None, limit: int = ENTRIES_MAX) -> list[Found]:
        """The apps of a chart in rank order."""
        url = chart_url(self._itunes, collection, country=self._country, genre_id=genre_id, limit=limit)
        body = await self._call(url, self._feeding, item=f"{collection}/{genre_id}")
        return self._kept("chart", parse_chart(body, genre_id=genre_id, limit=limit))

    async def search(self, term: str, limit: int = 25) -> list[Found]:
        """The apps for a term in rank order. Nothing is found for a term of nothing."""
        plain = cleaned(term)
        if plain is None:
            return []
        url = search_url(self._itunes, plain, country=self._country, language=self._language, limit=limit)
        body = await self._call(url, self._searching, item=plain)
        return self._kept("search", parse_search(body, limit=limit))

    async def lookup(self, track_id: int) -> Found | None:
        """One app; None if it is unknown here. Ids asked for at the same moment go into one call."""
        return await self._lookups.get(track_id) if identity(track_id) else None

    async def lookup_many(self, ids: Iterable[int]) -> dict[int, Found]:
        """Any number of apps by their ids. One that is unknown here is not among them."""
        apps: dict[int, Found] = {}
        wanted = [track_id for track_id in dict.fromkeys(ids) if identity(track_id)]
        for chunk in chunks(wanted, IDS_A_CALL):
            apps |= await self._looked_up(list(chunk))
        return {track_id: apps[track_id] for track_id in wanted if track_id in apps}

    async def portfolio(self, developer_id: int) -> Portfolio:
        """All apps of a developer, as far as they are sold here."""
        url = self._lookup_url([developer_id], limit=IDS_A_CALL)
        return self._kept("portfolio", parse_portfolio(await self._call(url, self._searching), developer_id))

    async def page(self, track_id: int, refresh: bool = False) -> PageFacts:
        """What the product page says, from the cache unless `refresh`. Callers at the same time share one fetch."""
        fresh = refresh or self._fetches.has((track_id, True))
        return await self._fetches.get((track_id, fresh), lambda: self._page(track_id, fresh))

    async def ratings(self, track_id: int) -> Ratings | None:
        """The histogram; None if the store does not show one."""
        url = ratings.ratings_url(self._itunes, track_id, country=self._country)
        return ratings.parse_ratings(await self._call(url, None, headers=self._front(ratings.CLIENT)))

    async def reviews(self, track_id: int, page: int = 1, *, rated: bool | None = None) -> ReviewPage:
        """A page of reviews, the newest first, from the first of the configured feeds that has any.

        An empty answer is believed where nobody rated the app (`rated=False`), and behind the first page: whoever asks
        for the second has seen reviews in the first.
        """
        assert page >= 1, page  # the store answers page 0 as if it were down
        if page > PAGES_MAX:
            return ReviewPage((), believed=True)
        failure: ps.Permanent | None = None
        answered = False
        for feed in self._settings.review_feeds:
            url = reviews_url(self._itunes, track_id, country=self._country, page=page, form=feed.form)
            headers = {"User-Agent": feed.user_agent} if feed.user_agent else {}
            try:
                body = await self._call(url, self._feeding, headers=headers, item=str(track_id))
                found = self._kept("reviews", parse_reviews(body, feed.form))
            except ps.Permanent as error:
                if TOO_DEEP in str(error.facts.get("excerpt", "")).lower():
                    return ReviewPage((), believed=True)
                failure = error
                continue  # one form may be gone while the other is still there
            answered = True
            if found or rated is False:
                return ReviewPage(found, believed=True)
        if failure and not answered:
            raise failure
        return ReviewPage((), believed=page > 1)

    async def hints(self, prefix: str) -> list[str]:
        """What people go on to type."""
        plain = cleaned(prefix)
        if plain is None:
            return []
        url = hints.hints_url(self._search_host, plain)
        body = await self._call(url, self._hinting, headers=self._front(hints.CLIENT), item=plain)
        return self._kept("hints", hints.parse_hints(body))

    async def genres(self) -> dict[int, str]:
        """The names of all genres by id."""
        url = genres_url(self._itunes, country=self._country)
        return self._kept("genres", parse_genres(await self._call(url, self._feeding)))

    async def _looked_up(self, ids: list[int]) -> dict[int, Found]:
        return self._kept("lookup", parse_lookup(await self._call(self._lookup_url(ids), self._searching)))

    def _lookup_url(self, ids: list[int], limit: int | None = None) -> str:
        return lookup_url(self._itunes, ids, country=self._country, language=self._language, limit=limit)

    async def _page(self, track_id: int, refresh: bool) -> PageFacts:
        read: list[Read[PageFacts]] = []
        wrong: list[ps.Permanent] = []

        def good(page: Answer) -> bool:
            try:
                read.append(parse_page(page.body, track_id, country=self._country))
            except (ps.Unparsable, ps.Gone) as error:
                wrong.append(error)
                return False
            return True

        try:
            await self._pages.get(
                page_url(self._apps, track_id, country=self._country, language=self._language),
                key=page_key(track_id),
                bypass=refresh,
                good=good,
                headers={"Accept-Language": self._language},
                robots=self._settings.robots,
                refusals=TOO_FAST,
            )
        except ps.Unparsable as error:
            if not wrong:
                raise
            if isinstance(wrong[-1], ps.Gone):
                raise wrong[-1] from None
            raise ps.Unparsable(f"{wrong[-1]} {error}", **{**error.facts, **wrong[-1].facts}) from error
        return self._kept("page", read[-1])

    async def _call(
        self, url: str, pace: Pace | None = None, *, headers: Mapping[str, str] | None = None, item: str | None = None
    ) -> bytes:
        async with pace.permit(item) if pace else nullcontext():
            return (await self._web.get(url, headers=headers, refusals=TOO_FAST)).body

    def _front(self, client: str) -> dict[str, str]:
        return {HEADER: f"{self._storefront},{client}", "Accept-Language": self._language}

    def _kept(self, endpoint: str, read: Read[T]) -> T:
        if read.skipped:
            self.skipped[endpoint] += read.skipped
        return read.facts
