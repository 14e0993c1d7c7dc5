"""Fakes of Mastodon, Bluesky, X and LinkedIn: how each recognises a repeated post, and faults by their number and a seed.

A post is counted before it is answered, so a lost answer leaves a post behind, as it does outside.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock_systems.standins.appstore.chance import coded, share
from penstock_systems.standins.notifications import Arrivals

KEY_SECONDS = 3_600.0
TOKEN_SECONDS = 7_200.0
TOKEN = "sk-stand-in"
DID = "did:plc:standin"
RECORD_KEY = re.compile(r"[234567a-j][234567a-z]{12}")
BLUESKY_GRAPHEMES_MAX, X_WEIGHT_MAX, MASTODON_CHARACTERS_MAX = 300, 280, 500
ADDRESS_COUNTS = 23
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class SocialFaults:
    """Shares of the posts that are lost after they were made, answered with 503 before, or made long after the request."""

    lost: float = 0.0
    unavailable: float = 0.0
    lost_seconds: float = 60.0
    slow: float = 0.0
    slow_seconds: float = 30.0  # longer than any caller waits


@dataclass(slots=True)
class Social:
    """Mounted in the place of each network: `Social(now).app`."""

    now: Callable[[], float]
    arrivals: Arrivals = field(default_factory=Arrivals)
    faults: SocialFaults = SocialFaults()
    seed: int = 1
    requests: int = 0
    _tokens: dict[str, float] = field(default_factory=dict)

    @property
    def app(self) -> Starlette:
        return Starlette(routes=self.routes)

    @property
    def routes(self) -> list[Route]:
        """The routes of all networks, whose paths differ."""
        late = partial(slow_at_times, part=self.faults.slow, seconds=self.faults.slow_seconds, seed=self.seed)
        return [
            Route("/api/v1/statuses", late(self._status), methods=["POST"]),
            Route("/api/v1/accounts/verify_credentials", self._account),
            Route("/api/v1/accounts/1/statuses", self._statuses),
            Route("/xrpc/com.atproto.server.createSession", self._session, methods=["POST"]),
            Route("/xrpc/com.atproto.repo.createRecord", late(self._record), methods=["POST"]),
            Route("/xrpc/com.atproto.repo.getRecord", self._get_record),
            Route("/2/tweets", late(self._tweet), methods=["POST"]),
            Route("/2/users/me", self._account),
            Route("/2/users/1/tweets", self._tweets),
            Route("/rest/posts", late(self._share), methods=["POST"]),
            Route("/rest/posts", self._shares),
        ]

    def doubled(self) -> list[tuple[str, str]]:
        """Return each network with the article that was posted there more than once."""
        return self.arrivals.doubled()

    # -- Mastodon: a key that counts for an hour

    async def _status(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        text, key = (await request.json()).get("status", ""), request.headers.get("idempotency-key", "")
        before = next((post for post in self._posts("mastodon") if key and post["key"] == key), None)
        if before is not None and self.now() - before["at"] < KEY_SECONDS:
            return JSONResponse(_shown_status(before))
        if not text:
            return JSONResponse({"error": "Validation failed: Text can't be blank"}, 422)
        if _counted(text) > MASTODON_CHARACTERS_MAX:
            return JSONResponse({"error": "Validation failed: Text character limit of 500 exceeded"}, 422)
        return await self._made("mastodon", text, key, lambda post: JSONResponse(_shown_status(post)))

    async def _account(self, request: Request) -> Response:
        account = {"id": "1", "username": "brand"}
        return JSONResponse(account if "/api/" in request.url.path else {"data": account})

    async def _statuses(self, request: Request) -> Response:
        return self._refused(request) or JSONResponse([_shown_status(post) for post in self._newest("mastodon")])

    # -- Bluesky: a record key of the caller's choice, and tokens that expire

    async def _session(self, request: Request) -> Response:
        if (await request.json()).get("password") != TOKEN:
            return JSONResponse({"error": "AuthenticationRequired", "message": "Invalid identifier or password"}, 401)
        token = f"jwt-{len(self._tokens) + 1}"
        self._tokens[token] = self.now()
        return JSONResponse({"accessJwt": token, "refreshJwt": f"r-{token}", "handle": "brand.example", "did": DID})

    async def _record(self, request: Request) -> Response:
        if refused := self._expired(request):
            return refused
        body = await request.json()
        text, rkey = str(body["record"].get("text", "")), str(body.get("rkey", ""))
        if not RECORD_KEY.fullmatch(rkey):
            return _bluesky_error("InvalidRequest", "Invalid record key")
        if any(post["key"] == rkey for post in self._posts("bluesky")):
            return _bluesky_error("InvalidRequest", f"Record already exists: {rkey}")
        if len(text) > BLUESKY_GRAPHEMES_MAX:
            return _bluesky_error("InvalidRequest", "Invalid app.bsky.feed.post record: text must not be longer")
        for facet in body["record"].get("facets", ()):
            start, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
            if text.encode()[start:end].decode("utf-8", "replace") != facet["features"][0]["uri"]:
                return _bluesky_error("InvalidRequest", "A facet is not on its link")
        return await self._made("bluesky", text, rkey, lambda post: JSONResponse(_shown_record(post)))

    async def _get_record(self, request: Request) -> Response:
        if refused := self._expired(request):
            return refused
        rkey = request.query_params.get("rkey")
        found = next((post for post in self._posts("bluesky") if post["key"] == rkey), None)
        if found is None:
            return _bluesky_error("RecordNotFound", f"Could not locate record: {rkey}")
        return JSONResponse(_shown_record(found) | {"value": {"text": found["text"]}})

    # -- X: no key, but a text only once

    async def _tweet(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        text = (await request.json()).get("text", "")
        if any(post["text"] == text for post in self._posts("x")):
            detail = "You are not allowed to create a Tweet with duplicate content."
            return JSONResponse({"title": "Forbidden", "type": "about:blank", "status": 403, "detail": detail}, 403)
        if _counted(text) > X_WEIGHT_MAX:
            return JSONResponse({"title": "Invalid Request", "status": 400, "detail": "text is too long"}, 400)
        return await self._made("x", text, "", lambda post: JSONResponse({"data": _shown_tweet(post)}, 201))

    async def _tweets(self, request: Request) -> Response:
        return self._refused(request) or JSONResponse({"data": [_shown_tweet(post) for post in self._newest("x")]})

    # -- LinkedIn: every request is a post of its own

    async def _share(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        text = (await request.json()).get("commentary", "")

        def answer(post: dict[str, Any]) -> Response:
            return Response(status_code=201, headers={"x-restli-id": f"urn:li:share:{post['id']}"})

        return await self._made("linkedin", text, "", answer)

    async def _shares(self, request: Request) -> Response:
        elements = [
            {"id": f"urn:li:share:{post['id']}", "commentary": post["text"], "createdAt": round(post["at"] * 1_000)}
            for post in self._newest("linkedin")
        ]
        return self._refused(request) or JSONResponse({"elements": elements})

    # -- what they share

    def _posts(self, network: str) -> list[dict[str, Any]]:
        return self.arrivals.of(network)

    def _newest(self, network: str) -> list[dict[str, Any]]:
        return self._posts(network)[:-41:-1]

    async def _made(self, network: str, text: str, key: str, answer: Callable[[dict[str, Any]], Response]) -> Response:
        self.requests += 1
        number = self.requests
        if share(self.seed, coded(network), number, 1) < self.faults.unavailable:
            return Response(status_code=503)
        found = _ADDRESS.findall(text)
        post = {"id": len(self.arrivals.all) + 1, "text": text, "key": key, "at": self.now()}
        self.arrivals.add(network, **post, about=found[-1] if found else "")
        if share(self.seed, coded(network), number, 2) < self.faults.lost:
            await asyncio.sleep(self.faults.lost_seconds)
        return answer(post)

    def _refused(self, request: Request) -> Response | None:
        if request.headers.get("authorization") == f"Bearer {TOKEN}":
            return None
        return JSONResponse({"error": "The access token is invalid"}, 401)

    def _expired(self, request: Request) -> Response | None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.now() - self._tokens.get(token, -TOKEN_SECONDS) < TOKEN_SECONDS:
            return None
        return _bluesky_error("ExpiredToken", "Token has expired")


def slow_at_times(
    handle: Callable[[Request], Awaitable[Response]], part: float, seconds: float, seed: int
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that carries out a share of the requests `seconds` later, also where the caller is gone by then."""
    numbers = count(1)

    async def handled_later(request: Request) -> Response:
        await asyncio.sleep(seconds)
        return await handle(request)

    async def handled(request: Request) -> Response:
        if share(seed, coded(request.url.path), next(numbers), 3) >= part:
            return await handle(request)
        await request.body()
        return await asyncio.shield(asyncio.create_task(handled_later(request)))

    return handled


def _counted(text: str) -> int:
    return len(_ADDRESS.sub("u" * ADDRESS_COUNTS, text))


def _shown_status(post: dict[str, Any]) -> dict[str, Any]:
    id = str(post["id"])
    url = f"https://mastodon.example/@brand/{id}"
    return {"id": id, "url": url, "content": f"<p>{post['text']}</p>", "created_at": _moment(post)}


def _shown_record(post: dict[str, Any]) -> dict[str, Any]:
    return {"uri": f"at://{DID}/app.bsky.feed.post/{post['key']}", "cid": f"bafy{post['id']}"}


def _shown_tweet(post: dict[str, Any]) -> dict[str, Any]:
    return {"id": str(post["id"]), "text": post["text"], "created_at": _moment(post)}


def _moment(post: dict[str, Any]) -> str:
    return datetime.fromtimestamp(post["at"], UTC).isoformat(timespec="milliseconds")


def _bluesky_error(name: str, message: str) -> Response:
    return JSONResponse({"error": name, "message": message}, 401 if name == "ExpiredToken" else 400)
