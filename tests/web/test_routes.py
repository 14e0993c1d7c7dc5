"""Every route there is: closed to strangers, and harmless where it only looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from time import thread_time
from typing import Any

import httpx2
import pytest
from starlette.routing import Route

import penstock as ps
from penstock.testing import TestApp, virtual
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site
from tests.web.outside import shop_app

OPEN = {"/health", "/health/deep"}
FAILING = {"/v1/shop/slow", "/v1/shop/timed-out"}
TOKEN = {"authorization": "Bearer secret"}
# What could be meant by a place in a path, and what leads elsewhere.
PLACES = {"account": "local", "queue": "jobs", "database": "shop", "name": "enrichment", "id": "1"}
TRICKS = ("/x/..{path}", "{path}/", "//{path}", "{path}%2f", "{path};x", "/%2e{path}")


TO_DASHBOARD = {"/", "/ui", "/metrics"}  # addresses that lead there


def whole_app() -> ps.App:
    """With something of each kind that has routes."""
    app = shop_app("cloudflare")
    failing = app.queue("failing", retries=0)

    @failing.handler
    async def fail(payload: object) -> None:
        raise ValueError(payload)

    @app.controller("enrichment")
    class Stock(ps.Controller[str]):
        async def pick(self, limit: int) -> list[str]:
            return []

        async def work(self, item: str) -> None: ...

    @app.get("/v1/shop/status")
    async def status() -> dict[str, Any]:
        return {"items": await app.db.value("select count(*) from items")}

    @app.get("/v1/shop/slow")
    async def slow() -> None:
        await asyncio.sleep(31)

    @app.get("/v1/shop/timed-out")
    async def timed_out() -> None:
        raise TimeoutError

    return app


@asynccontextmanager
async def visited() -> AsyncIterator[tuple[TestApp, list[Route], httpx2.AsyncClient]]:
    app = whole_app()
    site = make_site(app, tokens=[KnownToken("all", hashed("secret"))])
    routes = [route for route in site.routes if isinstance(route, Route) and route.path not in TO_DASHBOARD]
    assert len(routes) == len(site.routes) - len(TO_DASHBOARD) - 1  # the dashboard itself, of which tests/ui are
    transport = httpx2.ASGITransport(app=site)
    async with TestApp(app) as shop, httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        async with shop.unit():
            app.queues["jobs"].send("precious")
            app.queues["failing"].send("precious")  # becomes dead letter 1
            app.db.write("insert into items (name) values ('lamp')")
        await shop.drain()
        yield shop, routes, client


def path_of(route: Route) -> str:
    return route.path.format(**PLACES)


async def everything(shop: TestApp) -> list[object]:
    """What a request could have changed."""
    db = shop.app.db
    waiting = await db.rows("select id, due, attempts, token from penstock_messages order by id")
    dead = await db.rows("select id from penstock_dead order by id")
    objects = await db.rows("select class, name, state from penstock_objects order by class, name")
    items = await db.rows("select name from items order by name")
    return [*map(tuple, waiting), *map(tuple, dead), *map(tuple, objects), *map(tuple, items)]


@pytest.mark.fault("F45")
@pytest.mark.spec("G7-05")
@virtual
async def test_every_route_but_health_is_closed_to_strangers() -> None:
    strangers = [{}, *({"authorization": said} for said in ("Bearer wrong", "Basic c2VjcmV0", "secret"))]
    async with visited() as (shop, routes, client):
        before = await everything(shop)
        for route in (route for route in routes if route.path not in OPEN):
            for method, headers in product((route.methods or set()) - {"HEAD"}, strangers):
                refused = await client.request(method, path_of(route), headers=headers, json={"body": 1})
                assert (route.path, refused.status_code) == (route.path, 401)
                assert "precious" not in refused.text
        assert await everything(shop) == before
        assert {path_of(route) for route in routes} >= {"/v1/shop/status", "/v1/controllers/enrichment/stop", "/health"}


@pytest.mark.fault("F45")
@virtual
async def test_a_path_that_only_looks_like_another_lets_no_client_in() -> None:
    async with visited() as (shop, routes, client):
        before = await everything(shop)
        for route, trick in product((route for route in routes if route.path not in OPEN), TRICKS):
            refused = await client.post(trick.format(path=path_of(route)), json={"body": 1})
            assert refused.status_code in (401, 404, 405, 307), (trick, route.path, refused.status_code)
        assert await everything(shop) == before


@pytest.mark.fault("F46")
@virtual
async def test_no_get_changes_anything() -> None:
    async with visited() as (shop, routes, client):
        before = await everything(shop)
        reads = {route.path for route in routes if "GET" in (route.methods or set())}
        for path in {route.path for route in routes} - FAILING:
            answer = await client.get(path.format(**PLACES), headers=TOKEN)
            assert answer.status_code in ({200} if path in reads else {404, 405}), (path, answer.text)
        assert await everything(shop) == before


@pytest.mark.fault("F46")
@virtual
async def test_what_a_browser_sends_by_itself_lets_no_client_in() -> None:
    cross = {"origin": "https://evil.example", "sec-fetch-site": "cross-site", "cookie": "token=secret"}
    async with visited() as (shop, _, client):
        before = await everything(shop)
        push = "/client/v4/accounts/local/queues/jobs/messages"
        form = await client.post(push, headers=cross, data={"body": "1"})
        plain = await client.post(push, headers={**cross, "content-type": "text/plain"}, content=b'{"body": 1}')
        asked = await client.options(push, headers={**cross, "access-control-request-method": "POST"})
        answers = (form, plain, asked)

        assert (form.status_code, plain.status_code) == (401, 401)
        assert not any(name.startswith("access-control") for answer in answers for name in answer.headers)
        assert not any("set-cookie" in answer.headers for answer in answers)
        assert await everything(shop) == before


@pytest.mark.spec("A4-12")
@virtual
async def test_requests_of_those_who_may_come_in_are_metered_and_those_of_strangers_are_not() -> None:
    async with visited() as (shop, _, client):
        for _ in range(3):
            await client.get("/v1/shop/status", headers=TOKEN)
            await client.get("/v1/shop/status")
        usage = await shop.app.db.usage()

        assert usage.total.requests == 3
        assert usage.bill.line("requests").used == 3


@virtual
async def test_an_answer_that_takes_longer_than_a_request_may_is_given_up() -> None:
    async with visited() as (shop, _, client):
        before = shop.now
        slow = await client.get("/v1/shop/slow", headers=TOKEN)
        took = (shop.now - before).total_seconds()
        failed = await client.get("/v1/shop/timed-out", headers=TOKEN)

    assert (slow.status_code, slow.json()["errors"][0]["name"]) == (504, "too_slow")
    assert took == 30
    assert failed.status_code == 500, "a time-out of the app's own is its own mistake"


@virtual
async def test_an_answer_that_holds_the_processor_for_longer_than_a_request_may_is_given_up() -> None:
    app = shop_app("cloudflare", http_invocation={"timeout_seconds": 30, "cpu_timeout_seconds": 0.05})

    @app.get("/v1/shop/computes")
    async def computes() -> None:
        until = thread_time() + 0.06
        while thread_time() < until:
            pass
        await asyncio.sleep(1)
        ended.append("computes")

    @app.get("/v1/shop/waits")
    async def waits() -> str:
        await asyncio.sleep(20)
        return "done"

    @app.get("/v1/shop/exits")
    async def exits() -> None:
        raise SystemExit(3)

    ended: list[str] = []
    site = make_site(app, tokens=[KnownToken("all", hashed("secret"))])
    transport = httpx2.ASGITransport(app=site)
    async with TestApp(app), httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        greedy = await client.get("/v1/shop/computes", headers=TOKEN)
        patient = await client.get("/v1/shop/waits", headers=TOKEN)
        exited = await client.get("/v1/shop/exits", headers=TOKEN)

    assert (greedy.status_code, greedy.json()["errors"][0]["name"], ended) == (504, "too_slow", [])
    assert patient.json()["result"] == "done"
    assert exited.status_code == 500


@virtual
async def test_a_cached_answer_is_not_given_for_another_database() -> None:
    app = shop_app()

    @app.get("/v1/shop/size", cache=60)
    async def size() -> int:
        count: int = await app.db.value("select count(*) from items")
        return count

    async with TestApp(app) as shop:
        async with shop.unit():
            app.db.write("insert into items (name) values ('lamp')")
        async with shop.client() as client:
            assert (await client.get("/v1/shop/size")).json()["result"] == 1
    async with TestApp(app) as shop, shop.client() as client:
        assert (await client.get("/v1/shop/size")).json()["result"] == 0
