"""Controllers over HTTP: each path whole, each method, each scope, and answers that say what the controller does now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import pytest

import penstock as ps
from penstock.model.errors import BadApp
from penstock.testing import TestApp, virtual
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site
from tests.web.outside import Answer, answer, shop_app

VERBS = ("start", "stop", "reset", "tune")


def controlled_app() -> ps.App:
    app = shop_app()

    for name, mode in (("enrichment", "zones"), ("pages", "pilot")):

        @app.controller(name, mode=mode, alias="/v1/enrichment" if name == "enrichment" else None)
        class Idle(ps.Controller[int]):
            async def pick(self, limit: int) -> list[int]:
                return []

    return app


class Client:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def ask(self, method: str, path: str, body: Any = None, token: str | None = "all") -> Answer:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        content = b"" if body is None else msgspec.json.encode(body)
        return answer(await self._client.request(method, path, headers=headers, content=content))


@asynccontextmanager
async def asking(app: ps.App, **scopes: tuple[str, ...]) -> AsyncIterator[Client]:
    known = {"all": ("*",), "queues": ("queues:read", "queues:write")} | scopes
    tokens = [KnownToken(name, hashed(name), each) for name, each in known.items()]
    transport = httpx2.ASGITransport(app=make_site(app, tokens=tokens))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        yield Client(client)


@pytest.mark.spec("A14-07", "A6-29", "G7-06")
@pytest.mark.parametrize("base", ["/v1/controllers/enrichment", "/v1/enrichment"])
@virtual
async def test_a_controller_is_looked_at_and_operated(base: str) -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        assert (await client.ask("GET", f"{base}/status")).result["running"] is True
        assert (await client.ask("POST", f"{base}/stop")).result["running"] is False
        kept = await client.ask("POST", f"{base}/reset", {"keep_stopped": True})
        assert kept.result["running"] is False
        assert (await client.ask("POST", f"{base}/start")).result["running"] is True
        assert (await client.ask("POST", f"{base}/reset")).result["running"] is True
        tuned = (await client.ask("POST", f"{base}/tune", {"batch_size": 500, "interval_ms": 1})).result
        assert (tuned["current_batch_size"], tuned["current_interval_ms"]) == (50, 10_000)


@pytest.mark.spec("A6-34", "G5-18")
@virtual
async def test_what_cannot_be_tuned_is_a_bad_request_and_changes_nothing() -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        before = (await client.ask("GET", "/v1/enrichment/status")).result["params"]
        for body in ({"batch_size": "abc"}, {"interval_ms": 1.5}, {"batch_size": None}, {"rate": 2}, {}, [1], None):
            refused = await client.ask("POST", "/v1/enrichment/tune", body)
            assert (body, refused.status) == (body, 400)
            assert refused.words
        for body in ({"rate": "fast"}, {"rate": -1}, {"parallel": 0}, {"rate": 2, "parallel": True}, {"batch_size": 2}):
            refused = await client.ask("POST", "/v1/controllers/pages/tune", body)
            assert (body, refused.status) == (body, 400)
        assert (await client.ask("GET", "/v1/enrichment/status")).result["params"] == before


@pytest.mark.fault("F45")
@pytest.mark.spec("A14-07", "A6-35", "G5-28")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/enrichmentX",
        "/v1/enrichmentX/status",
        "/v1/enrichment",
        "/v1/enrichment/",
        "/v1/enrichment/explode",
        "/v1/enrichment/statusX",
        "/v1/enrichment/status/more",
        "/v1/v1/enrichment/status",
        "/v1/controllers/enrichment",
        "/v1/controllers//status",
        "/v1/controllers/nobody/status",
        "/v1/controllers/enrichment/alarm",
        "/v1/Enrichment/status",
    ],
)
@virtual
async def test_what_only_looks_like_a_path_is_not_found(path: str) -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        for method in ("GET", "POST"):
            assert (await client.ask(method, path)).status in ((404,) if "nobody" not in path else (404, 405))


@pytest.mark.spec("A6-35")
@virtual
async def test_a_name_that_is_not_there_is_not_found_for_every_verb() -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        for verb in VERBS:
            body = {"rate": 1} if verb == "tune" else None
            assert (await client.ask("POST", f"/v1/controllers/nobody/{verb}", body)).status == 404


@pytest.mark.spec("A6-35")
@virtual
async def test_the_wrong_method_is_reported_and_does_nothing() -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        for method in ("POST", "PUT", "DELETE"):
            assert (await client.ask(method, "/v1/enrichment/status")).status == 405
        for verb in VERBS:
            for method in ("GET", "PUT", "DELETE"):
                assert (await client.ask(method, f"/v1/enrichment/{verb}")).status == 405
        assert (await client.ask("GET", "/v1/enrichment/status")).result["running"] is True


@pytest.mark.fault("F45")
@pytest.mark.spec("A6-35")
@virtual
async def test_without_a_token_or_its_scope_nothing_is_shown_or_done() -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        for token, status in ((None, 401), ("wrong", 401), ("queues", 403)):
            assert (await client.ask("GET", "/v1/enrichment/status", token=token)).status == status
            for verb in VERBS:
                assert (await client.ask("POST", f"/v1/enrichment/{verb}", token=token)).status == status
        assert (await client.ask("GET", "/v1/enrichment/status")).result["running"] is True


@pytest.mark.spec("A6-35")
@virtual
async def test_who_may_look_may_not_operate_and_the_other_way_round() -> None:
    scopes = {"reader": ("controllers:read",), "writer": ("controllers:write",)}
    async with TestApp(controlled_app()) as shop, asking(shop.app, **scopes) as client:
        assert (await client.ask("GET", "/v1/enrichment/status", token="reader")).status == 200
        assert (await client.ask("GET", "/v1/enrichment/status", token="writer")).status == 403
        assert (await client.ask("POST", "/v1/enrichment/stop", token="reader")).status == 403
        assert (await client.ask("POST", "/v1/enrichment/stop", token="writer")).status == 200


@virtual
async def test_a_controller_has_no_further_path_unless_its_app_names_one() -> None:
    app = shop_app()

    for name, alias in (("enrichment", None), ("prices", "/v1/shop/prices")):

        @app.controller(name, alias=alias)
        class Idle(ps.Controller[int]):
            async def pick(self, limit: int) -> list[int]:
                return []

    async with TestApp(app) as shop, asking(shop.app) as client:
        assert (await client.ask("GET", "/v1/enrichment/status")).status == 404
        assert (await client.ask("POST", "/v1/shop/prices/stop")).result["running"] is False
        assert (await client.ask("GET", "/v1/controllers/prices/status")).result["running"] is False
        assert (await client.ask("GET", "/v1/controllers/enrichment/status")).result["running"] is True


@pytest.mark.parametrize("alias", ["/v1/goods", "/v1/pages", "prices", "/prices", "/v1/{name}", "/v1/prices/", ""])
def test_an_alias_that_is_taken_or_no_path_is_refused(alias: str) -> None:
    app = shop_app()
    app.controller("pages", alias="/v1/pages")(type("Pages", (ps.Controller,), {}))

    @app.get("/v1/goods/status")
    async def goods() -> int:
        return 1

    with pytest.raises(BadApp, match="cannot be a route"):
        app.controller("prices", alias=alias)
    with pytest.raises(BadApp, match="/v1/pages/tune"):
        app.get("/v1/pages/tune")
