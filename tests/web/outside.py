"""Somebody outside: talks to a site in process, and counts what it has left in the queues."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import msgspec

import penstock as ps
from penstock.config import Config
from penstock.queues.queue import Queue
from penstock.testing import TestApp
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site

MIGRATIONS = Path(__file__).parent / "migrations"
SOURCES = str(Path(ps.__file__).parent)  # what a traceback would show and no request can contain by chance
ACCOUNT = "/client/v4/accounts/local"
TOKENS = {
    "all": ("*",),
    "queues": ("queues:read", "queues:write"),
    "queues-read": ("queues:read",),
    "queues-write": ("queues:write",),
    "d1-read": ("d1:read",),
    "d1-write": ("d1:write",),
    "nothing": (),
}


class Order(ps.Command, type="order.placed"):
    item: str
    count: int = 1


def shop_app(profile: str = "local", **limits: Any) -> ps.App:
    """An app with `jobs`, which takes anything and has no handler, and `orders`, which takes one type."""
    app = ps.App("shop", config=Config(profile=profile, overrides=limits), migrations=MIGRATIONS)
    app.queue("jobs", retries=1)
    app.queue("orders", Order)
    return app


class Answer(NamedTuple):
    status: int
    told: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def result(self) -> Any:
        assert self.status == 200, self.told
        assert self.told["success"] is True
        assert self.told["errors"] == []
        return self.told["result"]

    @property
    def error(self) -> dict[str, Any]:
        """The one error of a refusal, which has the shape that clients rely on."""
        assert self.status >= 400, self.told
        assert (self.told["success"], self.told["result"], self.told["messages"]) == (False, None, [])
        (error,) = self.told["errors"]
        assert error["code"] == 10_000 + self.status
        assert isinstance(error["message"], str)
        assert "Traceback (most recent call last)" not in error["message"]
        assert SOURCES not in error["message"]
        return dict(error)

    @property
    def words(self) -> str:
        return str(self.error["message"])


class Outside:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def get(self, path: str, *, token: str | None = None) -> Answer:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return answer(await self._client.get(path, headers=headers))

    async def send(
        self, path: str, body: object = None, *, raw: bytes | None = None, token: str | None = "all", **headers: str
    ) -> Answer:
        content = msgspec.json.encode(body) if raw is None else raw
        given = {"content-type": "application/json", **{name.replace("_", "-"): headers[name] for name in headers}}
        if token is not None:
            given.setdefault("authorization", f"Bearer {token}")
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        return answer(await self._client.post(ACCOUNT + path, content=content, headers=encoded))

    async def push(self, body: object, *, queue: str = "jobs", token: str = "all", **fields: Any) -> Answer:
        headers = {name: fields.pop(name) for name in list(fields) if name == "idempotency_key"}
        return await self.send(f"/queues/{queue}/messages", {"body": body, **fields}, token=token, **headers)

    async def batch(self, messages: list[Any], *, queue: str = "jobs", **fields: Any) -> Answer:
        headers = {name: fields.pop(name) for name in list(fields) if name == "idempotency_key"}
        return await self.send(f"/queues/{queue}/messages/batch", {"messages": messages, **fields}, **headers)

    async def pull(self, *, queue: str = "jobs", **fields: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.send(f"/queues/{queue}/messages/pull", fields)).result["messages"]
        return found

    async def ack(self, *leases: str, retries: list[Any] | None = None, queue: str = "jobs") -> dict[str, Any]:
        asked = {"acks": [{"lease_id": lease} for lease in leases], "retries": retries or []}
        told: dict[str, Any] = (await self.send(f"/queues/{queue}/messages/ack", asked)).result
        return told

    async def d1(self, sql: str, *params: object, token: str = "all", shape: str = "query") -> Answer:
        return await self.send(f"/d1/database/shop/{shape}", {"sql": sql, "params": list(params)}, token=token)


def answer(response: httpx2.Response) -> Answer:
    assert response.headers["content-type"] == "application/json"
    return Answer(response.status_code, json.loads(response.content), response.headers)


@asynccontextmanager
async def outside(shop: TestApp | ps.App) -> AsyncIterator[Outside]:
    app = shop.app if isinstance(shop, TestApp) else shop
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in TOKENS.items()]
    transport = httpx2.ASGITransport(app=make_site(app, tokens=tokens))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        yield Outside(client)


def jobs(shop: TestApp) -> Queue[Any]:
    return shop.app.queues["jobs"]


async def stored(shop: TestApp) -> int:
    """How many messages were ever sent to any queue."""
    return sum([(await shop.counts(queue)).sent for queue in shop.app.queues.values()])


def unpacked(message: Mapping[str, Any]) -> Any:
    """The body of a pulled message."""
    kind = message["metadata"]["CF-Content-Type"]
    if kind == "text":
        return message["body"]
    raw = base64.b64decode(message["body"], validate=True)
    return json.loads(raw) if kind == "json" else raw
