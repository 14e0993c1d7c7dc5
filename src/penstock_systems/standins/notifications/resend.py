"""A fake Resend: keys that it honours for a day, a rate of two a second, lost answers, and reports of bounces."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.channels import sign
from penstock_systems.standins.notifications.arrivals import Arrivals

SERVER = "resend"
KEY_SECONDS = 86_400.0
KEY_CHARACTERS_MAX = 256
RECEIVERS_MAX = 50
PAGE_MAX = 100
_STATUSES = {
    "missing_api_key": 401,
    "invalid_api_key": 403,
    "validation_error": 403,
    "invalid_idempotency_key": 400,
    "invalid_idempotent_request": 409,
    "concurrent_idempotent_requests": 409,
    "missing_required_field": 422,
    "invalid_parameter": 422,
    "rate_limit_exceeded": 429,
    "not_found": 404,
    "internal_server_error": 500,
}


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, each in this share of the calls."""

    rate: float = 2.0  # calls a second that are answered
    lost: float = 0.0  # mails that are sent, and whose answer comes after `lost_seconds`
    lost_seconds: float = 11.0
    failed: float = 0.0  # calls that are answered with 500 and send nothing
    seconds: float = 0.05  # that an answer takes
    bouncing: frozenset[str] = frozenset()  # addresses that do not exist
    bounce_seconds: float = 600.0
    unverified: str = "unverified.example"  # a domain that may send nothing


class Known(NamedTuple):
    at: float
    digest: str
    id: str


class Resend:
    """`key` is the API key that is taken."""

    def __init__(
        self,
        arrivals: Arrivals,
        now: Callable[[], float],
        *,
        seed: int = 1,
        faults: Faults | None = None,
        key: str = "re_fake",
    ) -> None:
        self.arrivals, self.faults = arrivals, faults or Faults()
        self._now, self._key = now, key
        self._random = Random(f"resend {seed} {len(arrivals.all)}")
        self._mails: dict[str, dict[str, Any]] = {}
        self._known: dict[str, Known] = {}
        self._running: set[str] = set()
        self._recent: deque[float] = deque()
        for mail in arrivals.of(SERVER):
            self._keep(mail)
        self.routes = [
            Route("/emails", self._send, methods=["POST"]),
            Route("/emails", self._list, methods=["GET"]),
            Route("/emails/{id}", self._get, methods=["GET"]),
        ]

    def bounces(self, since: float, until: float) -> list[dict[str, Any]]:
        """Return the reports that Resend posts in this time, without their signature."""
        wait = self.faults.bounce_seconds
        return [
            bounce(mail)
            for mail in self._mails.values()
            if mail["to"] in self.faults.bouncing and since < mail["at"] + wait <= until
        ]

    async def _send(self, request: Request) -> Response:
        refused = self._refused(request)
        if refused is not None:
            return refused
        if self._is_too_fast():
            limits = {"ratelimit-limit": "2", "ratelimit-remaining": "0", "ratelimit-reset": "1", "retry-after": "1"}
            return error("rate_limit_exceeded", "Too many requests.", limits)
        body = await request.body()
        try:
            mail = checked(json.loads(body))
        except (ValueError, KeyError) as wrong:
            return error("missing_required_field" if isinstance(wrong, KeyError) else "invalid_parameter", str(wrong))
        if self.faults.unverified in mail["from"]:
            return error("validation_error", f"The {self.faults.unverified} domain is not verified.")
        key, digest = request.headers.get("idempotency-key"), hashlib.sha256(body).hexdigest()
        if key is not None and not 1 <= len(key) <= KEY_CHARACTERS_MAX:
            return error("invalid_idempotency_key", "The key must be between 1 and 256 characters.")
        known = self._known.get(key or "")
        if known is not None and self._now() - known.at < KEY_SECONDS:
            if known.digest != digest:
                return error("invalid_idempotent_request", "The key was used with another payload.")
            return JSONResponse({"id": known.id})
        if key in self._running:
            return error("concurrent_idempotent_requests", "Another request with this key is in progress.")
        return await self._accept(mail, key, digest)

    async def _accept(self, mail: dict[str, Any], key: str | None, digest: str) -> Response:
        self._running.add(key or "")
        try:
            await asyncio.sleep(self.faults.seconds)
            if self._random.random() < self.faults.failed:
                return error("internal_server_error", "An unexpected error occurred.")
            id = str(UUID(int=self._random.getrandbits(128), version=4))
            tags = {tag["name"]: tag["value"] for tag in mail.get("tags", ())}
            headers = mail.get("headers") or {}
            facts = {"at": self._now(), "id": id, "key": key, "digest": digest, "tags": tags, "headers": headers}
            facts |= {"to": mail["to"], "from": mail["from"], "subject": mail["subject"], "text": mail.get("text")}
            self.arrivals.add(SERVER, about=headers.get("Reminder"), **facts)
        finally:
            self._running.discard(key or "")
        self._keep(facts)
        if self._random.random() < self.faults.lost:
            await asyncio.sleep(self.faults.lost_seconds)
        return JSONResponse({"id": id})

    def _keep(self, mail: dict[str, Any]) -> None:
        self._mails[mail["id"]] = mail
        if mail["key"]:
            self._known[mail["key"]] = Known(mail["at"], mail["digest"], mail["id"])

    async def _list(self, request: Request) -> Response:
        refused = self._refused(request)
        if refused is not None:
            return refused
        newest = sorted(self._mails.values(), key=lambda mail: -mail["at"])
        ids = [mail["id"] for mail in newest]
        after = request.query_params.get("after")
        start = ids.index(after) + 1 if after in ids else 0
        end = start + min(int(request.query_params.get("limit", "20")), PAGE_MAX)
        shown = [{name: value for name, value in email(mail).items() if name != "text"} for mail in newest[start:end]]
        return JSONResponse({"object": "list", "has_more": end < len(ids), "data": shown})

    async def _get(self, request: Request) -> Response:
        refused = self._refused(request)
        mail = self._mails.get(request.path_params["id"])
        return refused or (JSONResponse(email(mail)) if mail else error("not_found", "Email not found."))

    def _refused(self, request: Request) -> Response | None:
        given = request.headers.get("authorization", "")
        if not given:
            return error("missing_api_key", "Missing API key in the authorization header.")
        if given != f"Bearer {self._key}":
            return error("invalid_api_key", "API key is invalid.")
        return None if request.headers.get("user-agent") else error("validation_error", "Missing User-Agent.")

    def _is_too_fast(self) -> bool:
        now = self._now()
        while self._recent and self._recent[0] <= now - 1.0:
            self._recent.popleft()
        if len(self._recent) >= self.faults.rate:
            return True
        self._recent.append(now)
        return False


def checked(mail: Any) -> dict[str, Any]:
    """Return the mail of a request; raise KeyError for what is missing and ValueError for what does not fit."""
    if not isinstance(mail, dict):
        raise ValueError("The body is not an object.")
    for name in ("from", "to", "subject"):
        if not mail.get(name):
            raise KeyError(f"Missing `{name}` field.")
    to = mail["to"] if isinstance(mail["to"], list) else [mail["to"]]
    texts = [mail["from"], mail["subject"], *to, *(mail[name] for name in ("text", "html") if name in mail)]
    if not all(isinstance(text, str) for text in texts) or not 1 <= len(to) <= RECEIVERS_MAX:
        raise ValueError("A field has the wrong type, or there are too many receivers.")
    if not ("html" in mail or "text" in mail or "template" in mail):
        raise KeyError("Missing `html` or `text` field.")
    if any("\n" in text or "\r" in text for text in texts[: 2 + len(to)]):
        raise ValueError("A field holds a line break.")
    return mail | {"to": to[0]}


def email(mail: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mail as GET /emails/{id} shows it."""
    whole = {"object": "email", "id": mail["id"], "message_id": f"<{mail['id']}@email.example.com>"}
    whole |= {"to": [mail["to"]], "from": mail["from"], "created_at": iso(mail["at"]), "subject": mail["subject"]}
    return whole | {
        "text": mail["text"] or "",
        "html": "",
        "bcc": [],
        "cc": [],
        "reply_to": [],
        "last_event": "delivered",
    }


def bounce(mail: Mapping[str, Any], kind: str = "email.bounced") -> dict[str, Any]:
    """Return Resend's report of a mail."""
    data = {"email_id": mail["id"], "created_at": iso(mail["at"]), "from": mail["from"], "to": [mail["to"]]}
    data |= {"subject": mail["subject"], "tags": mail["tags"]}
    if kind == "email.bounced":
        told = {"type": "Permanent", "subType": "General", "message": "The mailbox does not exist."}
        data["bounce"] = told | {"diagnosticCode": ["smtp; 550 5.1.1 user unknown"]}
    return {"type": kind, "created_at": iso(mail["at"]), "data": data}


def signed(event: Mapping[str, Any], secret: bytes, id: str, now: float) -> tuple[bytes, dict[str, str]]:
    """Return the body and headers of a report."""
    body = json.dumps(event).encode()
    headers = {"svix-id": id, "svix-timestamp": str(int(now)), "svix-signature": sign(secret, id, int(now), body)}
    return body, headers


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def error(name: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    status = _STATUSES[name]
    return JSONResponse({"statusCode": status, "name": name, "message": message}, status, headers)
