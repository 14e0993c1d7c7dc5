"""A fake of Ghost's Admin API: posts by slug, updates that need the current `updated_at`, and answers that get lost."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock_systems.standins.appstore.chance import share
from penstock_systems.standins.notifications import Arrivals
from penstock_systems.standins.publishing.social import slow_at_times

KEY = "6400:" + "ab" * 32
TOKEN_SECONDS_MAX = 300


@dataclass(slots=True)
class Ghost:
    """Mounted in the place of a site: `Ghost(now).app`."""

    now: Callable[[], float]
    arrivals: Arrivals = field(default_factory=Arrivals)
    lost: float = 0.0  # the share of posts whose answer never comes
    lost_seconds: float = 60.0
    slow: float = 0.0  # the share of posts that are made long after the request
    slow_seconds: float = 30.0
    seed: int = 1
    requests: int = 0
    asked: int = 0  # how often an article was to be added, also where that takes long
    posts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def app(self) -> Starlette:
        add_at_times_slowly = slow_at_times(self._add, self.slow, self.slow_seconds, self.seed)

        async def add(request: Request) -> Response:
            self.asked += 1
            return await add_at_times_slowly(request)

        return Starlette(
            routes=[
                Route("/ghost/api/admin/posts/", add, methods=["POST"]),
                Route("/ghost/api/admin/posts/slug/{slug}/", self._by_slug),
                Route("/ghost/api/admin/posts/{id}/", self._change, methods=["PUT"]),
            ]
        )

    async def _add(self, request: Request) -> Response:
        if not self._is_signed(request):
            return _error(401, "UnauthorizedError", "Invalid token")
        given = (await request.json())["posts"][0]
        if not given.get("title"):
            return _error(422, "ValidationError", "Validation error, cannot save post.")
        slug = str(given.get("slug") or "untitled")
        while slug in self.posts:  # as Ghost does it: another slug rather than an error
            slug += "-2"
        number = len(self.posts) + 1
        post = {**given, "id": f"65{number:06}", "slug": slug, "updated_at": str(self.now())}
        self.posts[slug] = post | {"url": f"https://{request.url.hostname}/{slug}/"}
        self.arrivals.add("ghost", slug=slug, about=str(given.get("slug")))
        self.requests += 1
        if share(self.seed, 71, self.requests) < self.lost:
            await asyncio.sleep(self.lost_seconds)
        return JSONResponse({"posts": [self.posts[slug]]}, 201)

    async def _by_slug(self, request: Request) -> Response:
        if not self._is_signed(request):
            return _error(401, "UnauthorizedError", "Invalid token")
        found = self.posts.get(request.path_params["slug"])
        return _error(404, "NotFoundError", "Post not found.") if found is None else JSONResponse({"posts": [found]})

    async def _change(self, request: Request) -> Response:
        if not self._is_signed(request):
            return _error(401, "UnauthorizedError", "Invalid token")
        found = next((post for post in self.posts.values() if post["id"] == request.path_params["id"]), None)
        given = (await request.json())["posts"][0]
        if found is None:
            return _error(404, "NotFoundError", "Post not found.")
        if given.get("updated_at") != found["updated_at"]:
            return _error(409, "UpdateCollisionError", "Saving failed! Someone else is editing this post.")
        found.update(given, updated_at=str(self.now()))
        return JSONResponse({"posts": [found]})

    def _is_signed(self, request: Request) -> bool:
        try:
            head, claims, signature = request.headers["authorization"].removeprefix("Ghost ").split(".")
            id, _, secret = KEY.partition(":")
            made = hmac.new(bytes.fromhex(secret), f"{head}.{claims}".encode(), hashlib.sha256).digest()
            told = json.loads(_decoded(claims))
            is_fresh = told["aud"] == "/admin/" and 0 <= told["exp"] - told["iat"] <= TOKEN_SECONDS_MAX
            in_time = told["iat"] - 60 <= self.now() <= told["exp"]
            return is_fresh and in_time and json.loads(_decoded(head))["kid"] == id and _decoded(signature) == made
        except (KeyError, ValueError):
            return False


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _error(status: int, kind: str, message: str) -> Response:
    return JSONResponse(
        {"errors": [{"message": message, "context": None, "type": kind, "code": None, "id": "1"}]}, status
    )
