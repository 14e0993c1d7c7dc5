"""Addresses: under which prefix a request came, which page it names, and from where."""

from __future__ import annotations

from urllib.parse import unquote, urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.routing import compile_path

from penstock.web.ui.page import Page


def prefix_of(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def inner_path(request: Request) -> str:
    path = str(request.scope["path"])
    prefix = prefix_of(request)
    return path.removeprefix(prefix) or "/"


def own_address(request: Request) -> str:
    return prefix_of(request) + inner_path(request)


def shown_address(request: Request) -> str:
    return shown(inner_path(request), str(request.url.query))


def shown(path: str, query: str) -> str:
    """Return what names a page: its address without what does not change it."""
    given = sorted((name, value) for name, value in QueryParams(query).multi_items() if name not in ("part", "paused"))
    return f"{path}?{urlencode(given)}"


def cookie_path(request: Request) -> str:
    return prefix_of(request) or "/"


def client_of(request: Request) -> str:
    return request.client.host if request.client else "-"


def format_of(request: Request) -> str:
    return request.query_params.get("format", "")


def matched(page: Page, path: str) -> dict[str, str] | None:
    """Return the parts of an address if it is one of this page, else None."""
    regex, _, _ = compile_path(page.path)
    found = regex.match(path)
    return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}
