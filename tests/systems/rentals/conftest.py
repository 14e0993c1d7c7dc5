"""The rentals in virtual time, with one source that a test fills, and an inbox."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from penstock_systems.rentals import searches
from penstock_systems.rentals.app import app, channels, save_changes, web
from penstock_systems.rentals.demo.course import Inbox
from penstock_systems.rentals.searches import Filter, NewSearch
from penstock_systems.rentals.settings import Notify
from penstock_systems.rentals.system import app as whole
from tests.postgres import empty_database

__all__ = ["pytest_pyfunc_call"]

assert whole is app
START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "kind": "snapshot",
    "records": "@",
    "url": "url",
    "rate": 50.0,
    "fields": {name: name for name in ("title", "price", "price_total", "currency", "rooms", "area_m2", "floor")}
    | {
        name: name
        for name in ("street", "neighborhood", "city", "lat", "lon", "image", "deal", "deadline", "description")
    },
}


class Portals:
    """Two portals whose items a test sets, and the app that collects from them."""

    def __init__(self) -> None:
        self.items: dict[str, list[dict[str, Any]]] = {"one": [], "two": []}
        self.inbox = Inbox(lambda: round(self.running.now.timestamp() * 1_000_000))
        self.running = TestApp(app, start=START)

    async def answer(self, request: Request) -> Response:
        return JSONResponse(self.items[str(request.url.hostname).partition(".")[0]])

    async def search(self, id: str, notify: Notify | None = None, **wanted: Any) -> None:
        given = NewSearch(name=id, filter=Filter(**wanted), notify=notify or Notify(channel="inbox"))
        async with self.running.unit():
            await searches.create(given, id)

    async def collect(self, times: int = 1) -> None:
        """Let the collector run, and what follows from it."""
        for _ in range(times):
            await self.running.advance(minutes=30)
        await self.running.advance(minutes=2)
        await self.running.advance(minutes=28)

    async def notices(self) -> list[tuple[str, str, float | None, float | None]]:
        sql = "select reason, listing_id, old, new from notices where reason <> 'summary' order by created_at, id"
        return [tuple(row) for row in await app.db.rows(sql)]

    @property
    def titles(self) -> list[str]:
        return [notice.title for _, notice in self.inbox.messages]


def item(id: str, **more: Any) -> dict[str, Any]:
    known = {"id": id, "title": f"flat {id}", "price": 1000, "currency": "EUR", "rooms": 2, "area_m2": 50}
    return known | {"street": f"Ring {len(id)}", "lat": 50.0 + len(id) / 100, "lon": 20.0, "url": f"/{id}"} | more


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kept: str = request.param
    monkeypatch.setattr(TestApp, "new_database", empty_database if kept == "postgres" else None)
    return kept


@pytest.fixture
def portals() -> Iterator[Portals]:
    """The sources of a test are taken from the app at its end: others have their own."""
    made = Portals()
    before = dict(app.sources.sources)
    app.sources.sources.clear()
    site = Starlette(routes=[Route("/{path:path}", made.answer)])
    for name in made.items:
        web.mount(f"https://{name}.example", site)
        app.connector(SPEC | {"name": name, "base": f"https://{name}.example/list"}, http=web).handler(save_changes)
    channels["inbox"] = made.inbox
    yield made
    app.sources.sources.clear()
    app.sources.sources.update(before)
    del channels["inbox"]
