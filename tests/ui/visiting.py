"""A browser without a screen: asks for pages in the process of the test, and finds what is in them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import httpx2
from starlette.applications import Starlette
from starlette.routing import Mount

import penstock as ps
from penstock.testing import TestApp
from penstock.web import KnownToken, hashed, make_dashboard
from penstock.web.site import make_site

TOKENS = {"admin": ("*",), "operator": ("ui:operate",), "viewer": ("ui:view",), "other": ("queues:read",)}
VOID = set("area base br col embed hr img input link meta source track wbr".split())
CLOSED_BY_THEMSELVES = {"rect", "line", "polygon", "polyline", "path", "p", "li", "option"}


class Balanced(HTMLParser):
    """Fails where an element is not closed, or closed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


class Seen:
    """An answer, with what a reader sees of it."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.status = answer.status_code
        self.headers = answer.headers
        self.html = answer.text

    @property
    def text(self) -> str:
        body = self.html.partition("<main")[2] or self.html
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())

    @property
    def elements(self) -> list[tuple[str, dict[str, str | None]]]:
        parser = Balanced()
        parser.feed(self.html)
        assert not parser.open, f"never closed: {parser.open}"
        return parser.seen

    def links(self) -> list[str]:
        return [each["href"] or "" for tag, each in self.elements if tag == "a" and "href" in each]


class Visit:
    """One visitor with a session, or without one."""

    def __init__(self, client: httpx2.AsyncClient, prefix: str) -> None:
        self.client = client
        self.prefix = prefix

    async def get(self, path: str, **headers: str) -> Seen:
        given = {"accept": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return Seen(await self.client.get(self.prefix + path, headers=given))

    async def json(self, path: str) -> Any:
        answer = await self.client.get(f"{self.prefix}{path}{'&' if '?' in path else '?'}format=json")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(
        self, path: str, fields: Mapping[str, object], *, site: str | None = "same-origin", **headers: str
    ) -> Seen:
        given = {"content-type": "application/x-www-form-urlencoded", "accept": "text/html", **headers}
        if site is not None:
            given["sec-fetch-site"] = site
        content = urlencode(fields, doseq=True)
        return Seen(await self.client.post(self.prefix + path, content=content, headers=given))

    async def login(self, token: str) -> Seen:
        return await self.post("/login", {"token": token})


def whole_site(app: ps.App) -> Starlette:
    """The dashboard of an app whose configuration names no host."""
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in TOKENS.items()]
    return Starlette(routes=[Mount("/ui", make_dashboard(app, tokens=tokens, hosts=["*"]))])


@asynccontextmanager
async def visiting(
    shop: TestApp | ps.App, token: str | None = "admin", prefix: str = "/ui", **options: Any
) -> AsyncIterator[Visit]:
    """A visitor of the app's dashboard, logged in with the token of this name."""
    app = shop.app if isinstance(shop, TestApp) else shop
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in TOKENS.items()]
    site = options.pop("site", None) or make_site(app, tokens=tokens)
    transport = httpx2.ASGITransport(app=site, client=(options.pop("address", "127.0.0.1"), 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        visit = Visit(client, prefix)
        if token is not None:
            assert (await visit.login(token)).status == 303
        yield visit
