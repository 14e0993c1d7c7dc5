"""The fake portals as one ASGI app: five shapes of answers over one city, with limits, a changed API and a block."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from penstock_systems.standins.rentals.city import Ad, City, make_city

HOSTS = (
    "https://gw.yad2.co.il",
    "https://bostad.stockholm.se",
    "https://api.rentcast.io",
    "https://www.olx.pl",
    "https://www.kijiji.ca",
)
PORTAL_OF = dict(zip(HOSTS, ("yad2", "stockholm", "rentcast", "olx", "kijiji"), strict=True))
PORTAL_AT = {  # behind a port of this machine the host is that port's, and the path says which portal is asked
    "/realestate-feed/": "yad2",
    "/AllaAnnonser": "stockholm",
    "/v1/listings/": "rentcast",
    "/api/v1/offers": "olx",
    "/rss-srp-": "kijiji",
}
CURRENCY = {"yad2": "EUR", "stockholm": "EUR", "rentcast": "EUR", "olx": "EUR", "kijiji": "EUR"}
CITY = "Modelton"
MARKERS_MAX = 200
FEED_MAX = 250
BANNED_AFTER = 40  # refusals within an hour
KNOWN = frozenset(
    """region area city neighborhood bBox zoom minPrice maxPrice minRooms maxRooms minSquaremeter maxSquaremeter
    property""".split()
)
ROOMS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}


@dataclass(frozen=True, slots=True)
class Course:
    """What happens to the portals, in hours from the beginning."""

    region_needed_from: float = 36.0  # yad2: from then on an answer without `region` is empty
    blocked: tuple[float, float] = (60.0, 60.0 + 40 / 60)  # yad2: every request is sent to a challenge
    key_changes_at: float = 84.0  # rentcast: the old key is refused
    rates: Mapping[str, tuple[float, float]] | None = None  # requests a minute by day and by night


class Portals:
    """What the portals answered and refused."""

    def __init__(self, city: City, now: Callable[[], float], begins: float, course: Course) -> None:
        self.city = city
        self.course = course
        self._now = now
        self._begins = begins
        self.requests: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.challenged: Counter[str] = Counter()
        self.banned: set[str] = set()
        self.asked_of_challenge = 0
        self._recent: dict[str, deque[float]] = {}
        self._refusals: dict[str, deque[float]] = {}
        self._visible: dict[str, tuple[int, list[Ad]]] = {}

    @property
    def hour(self) -> float:
        return (self._now() - self._begins) / 3_600

    def ads(self, portal: str) -> list[Ad]:
        minute = int(self.hour * 60)
        known = self._visible.get(portal)
        if known is None or known[0] != minute:
            known = self._visible[portal] = (minute, list(self.city.visible(portal, minute / 60)))
        return known[1]

    def moment(self, hour: float) -> datetime:
        return datetime.fromtimestamp(self._begins + hour * 3_600, UTC)

    def refuse(self, portal: str) -> Response | None:
        """Count a request, and refuse it where it comes too fast."""
        self.requests[portal] += 1
        now = self._now()
        if portal in self.banned:
            self.refused[portal] += 1
            return Response(status_code=403)
        by_day, by_night = (self.course.rates or {}).get(portal, (120.0, 60.0))
        limit = by_day if 7 <= self.moment(self.hour).hour < 22 else by_night
        recent = self._recent.setdefault(portal, deque())
        while recent and recent[0] <= now - 60:
            recent.popleft()
        if len(recent) < limit:
            recent.append(now)
            return None
        self.refused[portal] += 1
        refusals = self._refusals.setdefault(portal, deque())
        refusals.append(now)
        while refusals[0] <= now - 3_600:
            refusals.popleft()
        if len(refusals) >= BANNED_AFTER:
            self.banned.add(portal)
        return Response(status_code=429, headers={"Retry-After": str(max(1, round(recent[0] + 60 - now)))})

    async def answer(self, request: Request) -> Response:
        portal = _portal_of(request)
        if request.url.path == "/robots.txt":
            return Response("User-agent: *\nAllow: /\n", media_type="text/plain")
        if not portal:
            return Response(status_code=404)
        if (refusal := self.refuse(portal)) is not None:
            return refusal
        made: Response = getattr(self, portal)(request)
        return made

    # -- the portals ------------------------------------------------------------------------------------

    def yad2(self, request: Request) -> Response:
        asked = request.query_params
        if self.course.blocked[0] <= self.hour < self.course.blocked[1]:
            self.challenged["yad2"] += 1
            return RedirectResponse("https://validate.perfdrive.com/challenge?ssa=1", 302)
        if set(asked) - KNOWN:
            return JSONResponse({"message": "unknown parameter"}, 400)
        least, most = float(asked.get("minSquaremeter", 0)), float(asked.get("maxSquaremeter", 1e9))
        found = [ad for ad in self.ads("yad2") if least <= round(ad.flat.area) <= most]
        if self.hour >= self.course.region_needed_from and "region" not in asked:
            found = []
        markers = [self._marker(ad) for ad in found[-MARKERS_MAX:]]
        return JSONResponse({"data": {"markers": markers, "yad1Markers": [], "clusters": []}, "message": "ok"})

    def _marker(self, ad: Ad) -> dict[str, Any]:
        flat, price = ad.flat, ad.base_at(self.hour)
        stamp = self.moment(ad.begins).strftime("%Y%m%d%H%M%S")
        marker: dict[str, Any] = {
            "address": {
                "region": {"text": "Center", "id": 3},
                "city": {"text": CITY},
                "neighborhood": {"text": flat.area_name},
                "street": {"text": flat.street},
                "house": {"number": flat.number if ad.id % 3 else str(flat.number), "floor": flat.floor},
                "coords": {"lon": ad.lon, "lat": ad.lat},
            },
            "categoryId": 2,
            "adType": ("private", "agency")[ad.is_business],
            "token": f"y{ad.id:x}",
            "additionalDetails": {
                "property": {"text": "apartment"},
                "roomsCount": flat.rooms,
                "squareMeter": round(flat.area),
            },
            "metaData": {"coverImage": f"https://img.example/{ad.picture}_{stamp}.jpeg"},
            "orderId": ad.id if ad.id % 2 else str(ad.id),
            "priority": 1,
        }
        return marker if price is None else marker | {"price": price}

    def stockholm(self, request: Request) -> Response:
        return JSONResponse([self._advertisement(ad) for ad in self.ads("stockholm")])

    def _advertisement(self, ad: Ad) -> dict[str, Any]:
        flat, price = ad.flat, ad.base_at(self.hour)
        return {
            "LägenhetId": ad.id,
            "AnnonsId": ad.id + 1,
            "Stadsdel": flat.area_name,
            "Kommun": CITY,
            "Gatuadress": f"{flat.street} {flat.number}",
            "Vaning": flat.floor,
            "AntalRum": flat.rooms,
            "Yta": round(flat.area),
            "Hyra": None if price is None else price + flat.fees,
            "AnnonseradFran": self.moment(ad.begins).date().isoformat(),
            "AnnonseradTill": self.moment(ad.begins + 24 * 9).date().isoformat(),
            "KoordinatLongitud": ad.lon,
            "KoordinatLatitud": ad.lat,
            "Url": f"/bostad/{ad.id}/",
            "Korttid": False,
            "Lagenhetstyp": "Hyresrätt",
        }

    def rentcast(self, request: Request) -> Response:
        rotated = self.hour >= self.course.key_changes_at
        if request.headers.get("x-api-key") != ("fake-2" if rotated else "fake"):
            return JSONResponse({"error": "auth"}, 401)
        offset, limit = int(request.query_params.get("offset", 0)), int(request.query_params.get("limit", 50))
        found = sorted(self.ads("rentcast"), key=lambda ad: -ad.id)
        page = [self._long_term(ad) for ad in found[offset : offset + limit]]
        return JSONResponse(page, headers={"X-Total-Count": str(len(found))})

    def _long_term(self, ad: Ad) -> dict[str, Any]:
        flat, price = ad.flat, ad.base_at(self.hour)
        found = {
            "id": f"{flat.street}-{ad.id}".replace(" ", "-"),
            "formattedAddress": f"{flat.street} {flat.number}, {CITY}",
            "addressLine1": f"{flat.street} {flat.number}",
            "city": CITY,
            "zipCode": flat.area_name,
            "latitude": ad.lat,
            "longitude": ad.lon,
            "bedrooms": flat.rooms - 1,
            "squareFootage": round(flat.area / 0.092903),
            "status": "Active",
            "listedDate": self.moment(ad.begins).isoformat(),
        }
        return found if price is None else found | {"price": price}

    def olx(self, request: Request) -> Response:
        asked = request.query_params
        offset, limit = int(asked.get("offset", 0)), min(40, int(asked.get("limit", 40)))
        ads = sorted(self.ads("olx"), key=lambda ad: -ad.changed_at(self.hour))
        here = request.url.replace(scheme="https", netloc=HOSTS[3].removeprefix("https://"))
        links: dict[str, Any] = {"self": {"href": str(here)}}
        if offset + limit < len(ads):
            links["next"] = {"href": f"{HOSTS[3]}/api/v1/offers/?offset={offset + limit}&limit={limit}"}
        elif int(self.hour) == 30:
            links["next"] = links["self"]  # the list loops
        page = [self._offer(ad) for ad in ads[offset : offset + limit]]
        return JSONResponse({"data": page, "metadata": {"total_elements": len(ads)}, "links": links})

    def _offer(self, ad: Ad) -> dict[str, Any]:
        flat, price = ad.flat, ad.base_at(self.hour)
        params: list[dict[str, Any]] = [{"key": "m", "value": {"key": str(round(flat.area)), "label": "m²"}}]
        if float(flat.rooms).is_integer():
            params.append({"key": "rooms", "value": {"key": ROOMS[int(flat.rooms)], "label": ""}})
        if price is not None:
            params.append(
                {"key": "price", "value": {"value": price, "currency": CURRENCY["olx"], "label": f"{price} €"}}
            )
        place = {"city": {"name": CITY}, "district": {"name": flat.area_name}}
        return {
            "id": ad.id,
            "url": f"https://www.olx.pl/d/{ad.id}",
            "title": ad.title,
            "description": f"<p>{ad.title}</p>",
            "created_time": self.moment(ad.begins).isoformat(),
            "last_refresh_time": self.moment(ad.changed_at(self.hour)).isoformat(),
            "business": ad.is_business,
            "params": params,
            "location": place,
            "map": {"lat": ad.lat, "lon": ad.lon, "radius": 0, "show_detailed": True},
            "photos": [{"link": f"https://img.example/{ad.picture}.jpeg"}],
        }

    def kijiji(self, request: Request) -> Response:
        latest = sorted(self.ads("kijiji"), key=lambda ad: -ad.changed_at(self.hour))[:FEED_MAX]
        items = "".join(self._item(ad) for ad in latest)
        names = 'xmlns:g-core="http://base.google.com/ns/1.0" xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#"'
        feed = f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0" {names}><channel>{items}</channel></rss>'
        return Response(feed, media_type="application/rss+xml")

    def _item(self, ad: Ad) -> str:
        flat, price = ad.flat, ad.base_at(self.hour)
        date = self.moment(ad.begins).strftime("%a, %d %b %Y %H:%M:%S GMT") if ad.id % 11 else "yesterday"
        told = f"{round(flat.area)} m2 at {flat.street} {flat.number}, {flat.area_name}"
        money = "" if price is None else f"<g-core:price>€{price:,.0f}</g-core:price>"
        return (
            f"<item><title>{escape(ad.title)}, {flat.rooms:g} rooms</title><link>https://www.kijiji.ca/v/{ad.id}</link>"
            f"<description>{escape(told)}</description><guid>{ad.id}</guid><pubDate>{date}</pubDate>{money}"
            f'<enclosure url="https://img.example/{ad.picture}.jpeg" type="image/jpeg" length="0"/>'
            f"<geo:lat>{ad.lat}</geo:lat><geo:long>{ad.lon}</geo:long></item>"
        )


def _portal_of(request: Request) -> str:
    """Return the portal that is asked, "" if there is none."""
    by_path = (name for start, name in PORTAL_AT.items() if request.url.path.startswith(start))
    return PORTAL_OF.get(f"https://{request.url.hostname}") or next(by_path, "")


def make_portals(
    now: Callable[[], float], *, city: City | None = None, begins: float | None = None, course: Course | None = None
) -> Starlette:
    """Return the app. `portals_of` gives what it counted."""
    portals = Portals(city or make_city(), now, now() if begins is None else begins, course or Course())
    app = Starlette(routes=[Route("/{path:path}", portals.answer)])
    app.state.portals = portals
    return app


def portals_of(app: Starlette) -> Portals:
    found: Portals = app.state.portals
    return found
