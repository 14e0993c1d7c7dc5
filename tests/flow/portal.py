"""A portal for rent in memory that connectors read, and an app that collects from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

import penstock as ps
from penstock.connect import Change, Source

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
HOST = "https://portal.example"
SPEC: dict[str, Any] = {
    "name": "portal",
    "base": f"{HOST}/ads",
    "records": "items",
    "url": "link",
    "rate": 50.0,
    "fields": {"title": "title", "price": {"path": "price", "as": "price"}},
}


class Portal:
    """What the portal has, how it answers, and what it was asked."""

    def __init__(self, count: int = 12) -> None:
        self.items = [self.item(number) for number in range(1, count + 1)]
        self.asked: list[dict[str, str]] = []
        self.answer: Response | None = None  # instead of the list
        self.etag = ""
        self.not_modified = 0  # answers 304

    @staticmethod
    def item(number: int, **more: object) -> dict[str, object]:
        at = f"2026-11-01T{number // 60:02}:{number % 60:02}:00Z"
        return {"id": number, "title": f"flat {number}", "price": 1000 + number, "at": at, "link": f"/{number}"} | more

    async def ads(self, request: Request) -> Response:
        self.asked.append(dict(request.query_params) | {"path": request.url.path})
        if self.answer is not None:
            return self.answer
        if self.etag and request.headers.get("if-none-match") == self.etag:
            self.not_modified += 1
            return Response(status_code=304)
        offset, limit = int(request.query_params.get("offset", 0)), int(request.query_params.get("limit", 1_000))
        headers = {"etag": self.etag} if self.etag else {}
        return JSONResponse({"items": self.items[offset : offset + limit]}, headers=headers)

    def site(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.ads)])


class Shelf:
    """An app that collects from portals, with what its handler was given and its alerts."""

    def __init__(self, **options: Any) -> None:
        self.app = ps.App("shelf")
        self.app.collector(**options)
        self.web = self.app.http()
        self.changes: list[tuple[str, str]] = []
        self.alerts: list[ps.Alert] = []
        self.app.on_alert(self.page)

    async def page(self, alert: ps.Alert) -> None:
        self.alerts.append(alert)

    @property
    def told(self) -> list[str]:
        return [f"{alert.kind.partition('.')[2]} {alert.condition}" for alert in self.alerts]

    def add(self, portal: Portal, host: str = HOST, **spec: Any) -> Source:
        self.web.mount(host, portal.site())
        return self.connect(SPEC | {"base": f"{host}/ads"} | spec)

    def connect(self, given: Any) -> Source:
        source = self.app.connector(given, http=self.web)

        @source.handler
        async def save(changes: Sequence[Change]) -> None:
            self.changes += [(change.kind, change.record.id) for change in changes]

        return source

    async def state(self, name: str = "portal") -> Any:
        return next(row for row in await self.app.sources.list() if row.name == name)


def redirect(url: str) -> Response:
    return RedirectResponse(url, 302)
