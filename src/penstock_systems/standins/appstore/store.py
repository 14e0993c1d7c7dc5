"""The store: Apple's paths over a catalogue, behind its manners, with a book of what was answered and what was refused."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from penstock_systems.standins.appstore.app import DAY_SECONDS, FIRST_DAY
from penstock_systems.standins.appstore.catalogue import Catalogue, Market
from penstock_systems.standins.appstore.chance import coded, mix, share
from penstock_systems.standins.appstore.charts import COLLECTIONS, ENTRIES_MAX, IDS_ONLY, Charts
from penstock_systems.standins.appstore.feeds import chart_feed, chart_xml, ratings_html
from penstock_systems.standins.appstore.genres import APP_STORE, STOREFRONTS
from penstock_systems.standins.appstore.manners import Door, Kind, Limit, Manners
from penstock_systems.standins.appstore.page import NOT_FOUND, product_page
from penstock_systems.standins.appstore.records import Json, app_record, artist_record, other_media
from penstock_systems.standins.appstore.search import RESULTS_MAX, Search

LOOKUP_IDS_MAX = 200
MINUTES_KEPT = 14 * 24 * 60  # of the book, for a plot
SCRIPT = "text/javascript; charset=utf-8"  # what Apple calls its JSON
UNCACHED = {"cache-control": "max-age=0, no-cache, no-store"}
_ID = re.compile(r"id(\d{1,18})")


@dataclass(slots=True)
class Minute:
    """What became of the requests of one minute at one endpoint."""

    start: float
    answered: int = 0
    refused: int = 0
    failed: int = 0


@dataclass(slots=True)
class Book:
    """All requests of one endpoint, in total and by the minute."""

    requests: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    minutes: deque[Minute] = field(default_factory=lambda: deque(maxlen=MINUTES_KEPT))

    def enter(self, outcome: str, now: float) -> None:
        start = now // 60 * 60
        if not self.minutes or self.minutes[-1].start < start:
            self.minutes.append(Minute(start))
        for page in (self, self.minutes[-1]):
            setattr(page, outcome, getattr(page, outcome) + 1)


@dataclass(frozen=True, slots=True)
class Truth:
    """What a client cannot see: for tests, and for the line in a plot that it should have found."""

    limits: Mapping[str, Limit]
    books: Mapping[str, Book]
    markets: tuple[Market, ...]

    def limit(self, endpoint: str, now: float) -> float:
        """The requests a second that one address may make at this moment; infinite without a limit."""
        limit = self.limits.get(endpoint)
        return limit.at(now) / limit.seconds if limit else float("inf")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: what was asked, on which day of the catalogue, and what is to go wrong with the answer."""

    request: Request
    day: int
    now: datetime
    country: str
    fault: Kind | None

    def __getitem__(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def number(self, name: str, default: int) -> int:
        text = self[name]
        return int(text) if text.isdecimal() and len(text) < 19 else default


Answer = Callable[[Visit], Response]


def make_store(catalogue: Catalogue, clock: Callable[[], float], manners: Manners | None = None) -> Starlette:
    """An ASGI application for all of Apple's hosts at once. `clock` gives seconds since 1970."""
    store = Store(catalogue, clock, manners or Manners())
    paths: list[tuple[str, str, Answer]] = [
        ("/search", "search", store.search),
        ("/lookup", "lookup", store.lookup),
        ("/{country}/rss/{rest:path}", "chart", store.chart),
        ("/WebObjects/MZStoreServices.woa/ws/charts", "chart", store.chart_ids),
        ("/{country}/app/{slug}/{id}", "page", store.page),
        ("/{country}/customer-reviews/{id}", "ratings", store.ratings),
    ]
    routes = [Route(path, store.behaving(endpoint, answer)) for path, endpoint, answer in paths]
    routes.insert(0, Route("/{country}/app/{id}", store.unslugged))
    app = Starlette(routes=routes)
    app.state.store = store
    return app


def store_of(app: Starlette) -> Store:
    store = app.state.store
    assert isinstance(store, Store)
    return store


class Store:
    def __init__(self, catalogue: Catalogue, clock: Callable[[], float], manners: Manners) -> None:
        self.catalogue, self.manners = catalogue, manners
        self._clock = clock
        self.charts, self.searches = Charts(catalogue), Search(catalogue)
        self._doors = {endpoint: Door(limit) for endpoint, limit in manners.limits.items()}
        self._books: dict[str, Book] = {}

    def truth(self) -> Truth:
        return Truth(self.manners.limits, self._books, tuple(self.catalogue.markets))

    def behaving(self, endpoint: str, answer: Answer) -> Callable[[Request], Any]:
        """An endpoint behind its limit, its latency and its faults."""
        manners, seed = self.manners, self.catalogue.seed
        door, book = self._doors.get(endpoint), self._books.setdefault(endpoint, Book())

        async def respond(request: Request) -> Response:
            now = self._clock()
            book.requests += 1
            number = book.requests
            admitted = door is None or door.admits(request.client.host if request.client else "", now)
            latency = manners.latency(endpoint, number, seed)
            if latency > 0:
                await asyncio.sleep(latency if admitted else latency / 10)
            if not admitted:
                book.enter("refused", now)
                too_many = share(seed, 62, number, coded(endpoint)) < manners.too_many_share
                return Response(status_code=429 if too_many else 403, headers=UNCACHED)
            fault = manners.fault(endpoint, number, now, seed)
            if fault in ("error", "busy"):
                book.enter("failed", now)
                status = 429 if fault == "busy" else (500, 502, 503)[mix(seed, 63, number) % 3]
                return Response("<html><body>Service Unavailable</body></html>", status, media_type="text/html")
            book.enter("answered", now)
            return answer(self._visit(request, now, fault))

        return respond

    # -- search and lookup ------------------------------------------------------------------------------------------

    def search(self, visit: Visit) -> Response:
        if visit.country not in STOREFRONTS or not visit["term"]:
            return _script({"errorMessage": "Invalid value(s) for key(s): [country or term]"}, status=400)
        limit = max(1, min(RESULTS_MAX, visit.number("limit", 50)))
        found = [] if visit.fault == "empty" else self._found(visit)
        records = [app_record(self.catalogue, index, visit.day, visit.country) for index in found[:limit]]
        if "software" not in (visit["media"], visit["entity"]) and records:
            for number in range(0, len(records), 3):
                records.insert(number, other_media(self.catalogue, number, visit["term"]))
        return _results(records[:limit], visit.fault)

    def _found(self, visit: Visit) -> list[int]:
        found = self.searches.ranked(visit["term"], visit.day, visit.country)
        genre = visit.number("genreId", 0)
        return [index for index in found if not genre or genre in self.catalogue.app(index).genres]

    def lookup(self, visit: Visit) -> Response:
        if visit.country not in STOREFRONTS:
            return _script({"errorMessage": "Invalid value(s) for key(s): [country]"}, status=400)
        ids = [int(text) for text in visit["id"].split(",")[:LOOKUP_IDS_MAX] if text.isdecimal() and len(text) < 19]
        ids += [int(text, 16) for text in re.findall(r"-([0-9a-f]{1,12})(?=,|$)", visit["bundleId"])[:LOOKUP_IDS_MAX]]
        found = {self.catalogue.index(track_id): None for track_id in ids}
        records = [record for index in found if index is not None and (record := self._record(index, visit))]
        if visit["bundleId"]:
            wanted = set(visit["bundleId"].split(","))
            records = [record for record in records if record["bundleId"] in wanted]
        records.sort(key=lambda record: mix(self.catalogue.seed, 64, record["trackId"], len(ids)))
        for artist in (self.catalogue.artist(artist_id) for artist_id in ids):
            if artist is not None:
                records.append(artist_record(self.catalogue, artist, visit.country))
                records += self._portfolio(artist, visit) if visit["entity"] else []
        return _results([] if visit.fault == "empty" else records, visit.fault)

    def _portfolio(self, developer: int, visit: Visit) -> list[Json]:
        apps = (self._record(index, visit) for index in self.catalogue.portfolio(developer))
        return [record for record in apps if record][: visit.number("limit", 50)]

    def _record(self, index: int, visit: Visit) -> Json | None:
        sold = self.catalogue.sold(index, visit.day, visit.country)
        return app_record(self.catalogue, index, visit.day, visit.country) if sold else None

    # -- charts -----------------------------------------------------------------------------------------------------

    def chart(self, visit: Visit) -> Response:
        name, *options = visit.request.path_params["rest"].split("/")
        chosen = dict(option.split("=", 1) for option in options if "=" in option)
        if name not in COLLECTIONS or visit.country not in STOREFRONTS or options[-1:] not in (["json"], ["xml"]):
            return Response(status_code=404)
        kind, title = COLLECTIONS[name]
        genre, limit = (_number(chosen.get(key), default) for key, default in (("genre", APP_STORE), ("limit", 10)))
        if kind == "new":
            limit += 3  # it does not take the limit seriously
        ranked = self._ranked(visit, kind, genre)[: max(1, min(ENTRIES_MAX, limit))]
        feed = chart_feed(
            self.catalogue, ranked, title=title, url=str(visit.request.url), country=visit.country, now=visit.now
        )
        if options[-1] == "xml":
            return Response(chart_xml(feed), media_type="text/xml; charset=utf-8")
        return _script(feed, visit.fault)

    def chart_ids(self, visit: Visit) -> Response:
        if visit.country not in STOREFRONTS or visit["name"] not in IDS_ONLY:
            return Response(status_code=404)
        ranked = self._ranked(visit, IDS_ONLY[visit["name"]], visit.number("g", APP_STORE))
        ids = [str(self.catalogue.track_id(index)) for index in ranked[: visit.number("limit", 100)]]
        return _script({"resultIds": ids}, visit.fault)

    def _ranked(self, visit: Visit, kind: str, genre: int) -> tuple[int, ...]:
        return () if visit.fault == "empty" else self.charts.ranked(kind, genre, visit.day, visit.country)

    # -- pages ------------------------------------------------------------------------------------------------------

    async def unslugged(self, request: Request) -> Response:
        """Sends on to the address with the app's name in it. The edge does that: it is not limited."""
        visit = self._visit(request, self._clock(), None)
        index = self._sold(visit)
        if index is None:
            return Response(NOT_FOUND, status_code=404, media_type="text/html")
        app = self.catalogue.app(index)
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/{visit.country}/app/{app.slug}/id{app.track_id}{query}", status_code=301)

    def page(self, visit: Visit) -> Response:
        index = self._sold(visit)
        if index is None:
            return Response(NOT_FOUND, status_code=404, media_type="text/html")
        whole = self.manners.whole_pages
        page = product_page(self.catalogue, index, visit.day, visit.country, whole=whole, fault=visit.fault)
        return Response(page, media_type="text/html")

    def ratings(self, visit: Visit) -> Response:
        index = self._sold(visit)
        if index is None or "x-apple-store-front" not in visit.request.headers:
            return Response(media_type="text/html")
        histogram = self.catalogue.app(index).histogram(visit.day, visit.country)
        return Response(ratings_html(histogram), media_type="text/html")

    def _sold(self, visit: Visit) -> int | None:
        named = _ID.fullmatch(visit.request.path_params["id"])
        index = self.catalogue.index(int(named[1])) if named and visit.country in STOREFRONTS else None
        return index if index is not None and self.catalogue.sold(index, visit.day, visit.country) else None

    def _visit(self, request: Request, now: float, fault: Kind | None) -> Visit:
        asked = (
            request.path_params.get("country") or request.query_params.get("country") or request.query_params.get("cc")
        )
        day = max(0, int((now - FIRST_DAY.timestamp()) // DAY_SECONDS))
        return Visit(request, day, datetime.fromtimestamp(now, UTC), (asked or "us").casefold(), fault)


def _results(records: list[Json], fault: Kind | None) -> Response:
    return _script({"resultCount": len(records), "results": records}, fault)


def _script(value: Json, fault: Kind | None = None, *, status: int = 200) -> Response:
    """JSON as Apple sends it: with blank lines before it, and not called JSON."""
    body = b"\n\n\n" + msgspec.json.encode(value)
    return Response(body[: len(body) // 2] if fault == "truncated" else body, status, media_type=SCRIPT)


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else default
