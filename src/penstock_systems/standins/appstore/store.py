"""The store: Apple's paths over a catalogue, behind its manners, with a book of what was answered and what was refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock_systems.standins.appstore import asked, listed, shown
from penstock_systems.standins.appstore.app import DAY_SECONDS, FIRST_DAY
from penstock_systems.standins.appstore.book import Book
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import coded, mix, share
from penstock_systems.standins.appstore.genres import country_of
from penstock_systems.standins.appstore.manners import Door, Kind, Manners
from penstock_systems.standins.appstore.page import BLOCKED
from penstock_systems.standins.appstore.truth import Truth
from penstock_systems.standins.appstore.visit import FRONT, Answer, Stock, Visit, html, script

UNCACHED = {"cache-control": "max-age=0, no-cache, no-store"}
FIRST_SECOND = FIRST_DAY.timestamp()
OBJECTS, SERVICES = "/WebObjects", "/WebObjects/MZStoreServices.woa/ws"

PATHS: tuple[tuple[str, str, Answer], ...] = (
    ("/search", "search", asked.search),
    ("/lookup", "lookup", asked.lookup),
    (f"{OBJECTS}/MZStore.woa/wa/search", "search", asked.native_search),
    (f"{OBJECTS}/MZSearch.woa/wa/search", "search", asked.page_search),
    (f"{OBJECTS}/MZSearchHints.woa/wa/hints", "hints", asked.suggested),
    ("/{country}/iphone/search", "search", asked.web_search),
    ("/{country}/rss/customerreviews/{rest:path}", "reviews", shown.reviews),
    ("/{country}/rss/{rest:path}", "chart", listed.chart),
    (f"{SERVICES}/RSS/{{rest:path}}", "chart", listed.chart),
    (f"{SERVICES}/charts", "chart", listed.chart_ids),
    (f"{SERVICES}/genres", "chart", listed.genre_tree),
    (f"{OBJECTS}/MZStore.woa/wa/viewTop", "chart", listed.client_chart),
    ("/api/v2/{country}/apps/{kind}/{size}/apps.json", "chart", listed.marketing_chart),
    ("/{country}/charts/iphone/{slug}/{genre}", "chart", listed.web_chart),
    ("/{country}/app/{slug}/{id}", "page", shown.page),
    ("/{country}/customer-reviews/{id}", "ratings", shown.ratings),
)
# The edge answers these: they are not limited.
FREE_PATHS: tuple[tuple[str, Answer], ...] = (
    ("/{country}/app/{id}", shown.unslugged),
    ("/v1/catalog/{rest:path}", shown.amp),
)


def make_store(catalogue: Catalogue, clock: Callable[[], float], manners: Manners | None = None) -> Starlette:
    """An ASGI application for all of Apple's hosts at once. `clock` gives seconds since 1970."""
    store = Store(catalogue, clock, manners or Manners())
    routes = [Route(path, store.at_once(answer)) for path, answer in FREE_PATHS]
    routes += [Route(path, store.behaving(endpoint, answer)) for path, endpoint, answer in PATHS]
    app = Starlette(routes=routes)
    app.state.store = store
    return app


def store_of(app: Starlette) -> Store:
    store = app.state.store
    assert isinstance(store, Store)
    return store


class Store:
    def __init__(self, catalogue: Catalogue, clock: Callable[[], float], manners: Manners) -> None:
        self.stock = Stock(catalogue, manners)
        self.catalogue, self.manners = catalogue, manners
        self.charts, self.searches = self.stock.charts, self.stock.searches
        self._clock = clock
        doors = [(names.split("+"), Door(limit)) for names, limit in manners.limits.items()]
        self._doors = {endpoint: door for names, door in doors for endpoint in names}
        self._books: dict[str, Book] = {}

    def truth(self) -> Truth:
        return Truth(self.manners.limits_by_endpoint(), self._books, tuple(self.catalogue.markets))

    def at_once(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            return answer(self._visit(request, self._clock(), None))

        return respond

    def behaving(self, endpoint: str, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint behind its limit, its latency and its faults."""
        manners, seed = self.manners, self.catalogue.seed
        door, book = self._doors.get(endpoint), self._books.setdefault(endpoint, Book())

        async def respond(request: Request) -> Response:
            now = self._clock()
            book.requests += 1
            number = book.requests
            admitted = door is None or door.admits(request.client.host if request.client else "", now)
            latency = manners.latency(endpoint, number, seed)
            if not admitted:
                await _pass(latency / 10)
                book.enter("refused", now)
                return self._refusal(endpoint, number)
            fault = manners.fault(endpoint, number, now, seed)
            kind = fault.kind if fault else None
            await _pass(latency + (fault.delay_seconds if fault and kind == "slow" else 0.0))
            if (spoilt := _spoilt(kind, mix(seed, 63, number))) is not None:
                book.enter("failed", now)
                return spoilt
            book.enter("answered", now)
            return answer(self._visit(request, now, kind))

        return respond

    def _refusal(self, endpoint: str, number: int) -> Response:
        luck, manners = share(self.catalogue.seed, 62, number, coded(endpoint)), self.manners
        if luck < manners.too_many_share:
            return Response(status_code=429, headers=UNCACHED)
        if luck > 1 - manners.talkative_share:
            return script({"resultCount": 0, "results": []}, status=403)
        return Response(status_code=403, headers=UNCACHED)

    def _visit(self, request: Request, now: float, fault: Kind | None) -> Visit:
        query = request.query_params
        asked_for = request.path_params.get("country") or query.get("country") or query.get("cc")
        front = country_of(request.headers.get(FRONT) or query.get("s", ""))
        day = max(0, int((now - FIRST_SECOND) // DAY_SECONDS))
        country = (asked_for or front or "us").casefold()
        return Visit(self.stock, request, day, datetime.fromtimestamp(now, UTC), country, fault)


async def _pass(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


def _spoilt(kind: Kind | None, luck: int) -> Response | None:
    """What comes instead of an answer."""
    match kind:
        case "error":
            return html("<html><body>Service Unavailable</body></html>", (500, 502, 503)[luck % 3])
        case "busy":
            return Response(status_code=429, headers=UNCACHED)
        case "refused":
            return Response(status_code=403, headers=UNCACHED)
        case "blocked":
            return html(BLOCKED)
    return None
