"""A stand-in for a web search: results made from the words of the query, two windows of requests, and odd answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock_systems.standins.appstore.chance import coded, mix

PATH = "/res/v1/web/search"
MONTH_SECONDS = 2_592_000
QUERY_MAX, WORDS_MAX, COUNT_MAX, OFFSET_MAX = 400, 50, 20, 9
HEADLINES = ("A guide to", "What changed in", "Questions about", "The numbers behind", "Common mistakes with")


@dataclass(slots=True)
class Search:
    """Mounted in the place of the search service: `Search(now).app`."""

    now: Callable[[], float]
    key: str = "sk-stand-in"
    a_second: int = 20
    a_month: int = 15_000
    seed: int = 1
    hosts: tuple[
        str, ...
    ] = ()  # of the pages that it finds; otherwise they have hosts of their own, which do not exist
    requests: int = 0
    asked: list[str] = field(default_factory=list)
    _in_second: tuple[int, int] = (0, 0)
    _in_month: tuple[int, int] = (0, 0)

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[self.route])

    @property
    def route(self) -> Route:
        return Route(PATH, self._search, methods=["GET"])

    async def _search(self, request: Request) -> Response:
        self.requests += 1
        query = request.query_params
        if request.headers.get("x-subscription-token") != self.key:
            return _error(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
        if not self._has_room():
            return _error(429, "RATE_LIMITED", "Request rate limit exceeded for plan.", self._windows())
        asked, count, offset = query.get("q", ""), query.get("count", "10"), query.get("offset", "0")
        right = 0 < len(asked) <= QUERY_MAX and len(asked.split()) <= WORDS_MAX
        right = right and count.isdecimal() and 1 <= int(count) <= COUNT_MAX
        if not (right and offset.isdecimal() and int(offset) <= OFFSET_MAX):
            return _error(422, "VALIDATION", "Unable to validate request parameter(s).", self._windows())
        self.asked.append(asked)
        return JSONResponse(self.results(asked, int(count), int(offset)), headers=self._windows())

    def results(self, asked: str, count: int, offset: int) -> dict[str, object]:
        told = coded(asked)
        body: dict[str, object] = {
            "type": "search",
            "query": {"original": asked, "more_results_available": offset < OFFSET_MAX, "country": "us"},
            "mixed": {"type": "mixed", "main": []},
        }
        if mix(self.seed, told) % 20 == 0:
            return body  # nothing was found: the key is not there at all
        slug = "-".join(asked.lower().split())[:60]
        body["web"] = {
            "type": "search",
            "results": [
                {
                    "type": "search_result",
                    "title": f"{HEADLINES[(told + place) % len(HEADLINES)]} {asked}",
                    "url": f"{self._host(told, place)}/{slug}/{place}",
                    "description": f"{asked}: <strong>{mix(self.seed, told, place, 7) % 100} %</strong> of readers ask this.",
                    "language": "en",
                    "age": "October 1, 2026",
                    "profile": {"name": "Example", "long_name": "source.example"},
                }
                for place in range(offset * count, offset * count + count)
            ],
        }
        return body

    def _host(self, told: int, place: int) -> str:
        chance = mix(self.seed, told, place)
        return self.hosts[chance % len(self.hosts)] if self.hosts else f"https://source-{chance % 900}.example"

    def _has_room(self) -> bool:
        second, month = int(self.now()), int(self.now() // MONTH_SECONDS)
        self._in_second = (second, self._in_second[1] + 1 if self._in_second[0] == second else 1)
        self._in_month = (month, self._in_month[1] + 1 if self._in_month[0] == month else 1)
        return self._in_second[1] <= self.a_second and self._in_month[1] <= self.a_month

    def _windows(self) -> dict[str, str]:
        left = (max(0, self.a_second - self._in_second[1]), max(0, self.a_month - self._in_month[1]))
        return {
            "X-RateLimit-Limit": f"{self.a_second}, {self.a_month}",
            "X-RateLimit-Policy": f"{self.a_second};w=1, {self.a_month};w={MONTH_SECONDS}",
            "X-RateLimit-Remaining": f"{left[0]}, {left[1]}",
            "X-RateLimit-Reset": f"1, {MONTH_SECONDS - int(self.now()) % MONTH_SECONDS}",
        }


def _error(status: int, code: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    error = {"id": "stand-in", "status": status, "code": code, "detail": detail, "meta": {}}
    return JSONResponse({"type": "ErrorResponse", "error": error, "time": 0}, status, headers)
