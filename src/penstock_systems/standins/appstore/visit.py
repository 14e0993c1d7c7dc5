"""A visit: one request, the moment it came at, and what is to go wrong with the answer. And how answers are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock_systems.standins.appstore.app import App
from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.charts import Charts
from penstock_systems.standins.appstore.feeds import Entries
from penstock_systems.standins.appstore.genres import STOREFRONTS
from penstock_systems.standins.appstore.manners import Kind, Manners
from penstock_systems.standins.appstore.records import Records
from penstock_systems.standins.appstore.search import Search
from penstock_systems.standins.appstore.shelves import Sight
from penstock_systems.standins.appstore.texts import description

SCRIPT = "text/javascript; charset=utf-8"  # what Apple calls its JSON
FRONT = "x-apple-store-front"
_LANGUAGE = re.compile("[A-Za-z]{2}(-[A-Za-z]{2,4})?")


class Stock:
    """What all endpoints answer from."""

    def __init__(self, catalogue: Catalogue, manners: Manners) -> None:
        self.catalogue, self.manners = catalogue, manners
        self.charts, self.searches = Charts(catalogue), Search(catalogue)
        self.records, self.entries = Records(catalogue), Entries(catalogue)


@dataclass(frozen=True, slots=True)
class Visit:
    stock: Stock
    request: Request
    day: int  # of the catalogue
    now: datetime
    country: str
    fault: Kind | None

    def __getitem__(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def number(self, name: str, default: int) -> int:
        return number(self[name], default)

    @property
    def known_country(self) -> bool:
        return self.country in STOREFRONTS

    @property
    def front(self) -> str:
        """The store-front header: which store an old client comes from, and after the comma which client it is."""
        return self.request.headers.get(FRONT, "")

    @property
    def client(self) -> str:
        return self.front.partition(",")[2].strip()

    @property
    def language(self) -> str:
        asked = self["l"]
        return asked if _LANGUAGE.fullmatch(asked) else STOREFRONTS[self.country].language

    def sold(self, track_id: int) -> App | None:
        """The app, if it is in this country's store today."""
        catalogue = self.stock.catalogue
        index = catalogue.index(track_id) if self.known_country else None
        sold = index is not None and catalogue.sold(index, self.day, self.country)
        return catalogue.app(index) if sold and index is not None else None

    def sight(self, app: App) -> Sight:
        text = description(app)
        return Sight(self.stock.catalogue, app, self.day, self.now, self.country, self.language, text)


Answer = Callable[[Visit], Response]


def script(value: Any, fault: Kind | None = None, *, status: int = 200, callback: str = "") -> Response:
    """JSON as Apple sends it: with blank lines before it, and not called JSON."""
    body = msgspec.json.encode(value)
    body = b"\n\n\n" + (callback.encode() + b"(" + body + b");" if callback else body)
    return Response(body[: len(body) // 2] if fault == "truncated" else body, status, media_type=SCRIPT)


def html(text: str | bytes, status: int = 200) -> Response:
    return Response(text, status, media_type="text/html")


def number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else default


def options(path: str) -> tuple[str, dict[str, str], str]:
    """`top/limit=9/genre=1/json` is a name, some options in any order, and a form."""
    name, *rest = path.split("/")
    form = rest.pop() if rest and "=" not in rest[-1] else ""
    return name, {key.casefold(): value for key, _, value in (one.partition("=") for one in rest)}, form
