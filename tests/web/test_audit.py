"""Administrative HTTP calls leave an entry with the name of the token and the address of the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.routing import Route

import penstock as ps
from penstock.connect import Http, Page, Record
from penstock.testing import TestApp, virtual
from penstock.web.operation import CRON_VERBS, SOURCE_VERBS
from penstock.web.site import make_site
from tests.web.test_controllers import asking, controlled_app

ROWS = "select actor, origin, verb, name, after, count from penstock_audit order by at, verb limit 99"
MESSAGES = "/client/v4/accounts/local/queues/orders/messages"


async def rows(shop: TestApp) -> list[tuple[Any, ...]]:
    engine = await shop.app._opened()
    return (await engine.read("", ROWS, {}, rows_max=99)).values


@virtual
async def test_a_purge_and_a_stop_are_recorded_under_the_tokens_name() -> None:
    async with TestApp(controlled_app()) as shop, asking(shop.app) as client:
        for _ in range(2):
            assert (await client.ask("POST", MESSAGES, {"body": {"item": "a"}})).status == 200
        assert await rows(shop) == []  # clients send messages all day: that is no administration

        assert (await client.ask("POST", f"{MESSAGES}/purge", {}, token="queues")).status == 200
        await shop.advance(seconds=1)
        assert (await client.ask("POST", "/v1/controllers/pages/stop")).status == 200
        assert (await client.ask("POST", f"{MESSAGES}/purge", {})).status == 200
        assert (await client.ask("POST", "/v1/controllers/pages/stop", token=None)).status == 401

        purged, stopped = await rows(shop)
        assert purged[:4] == ("queues", "http 127.0.0.1", "queues purge", "orders")
        assert purged[5] == 2
        assert stopped[:4] == ("all", "http 127.0.0.1", "controllers stop", "pages")
        assert '"running":false' in stopped[4]


@virtual
async def test_what_code_of_the_app_does_is_no_operators_work() -> None:
    async with TestApp(controlled_app()) as shop:
        desk = await shop.app.desk()
        await desk.pause("orders")
        await shop.app.controllers.operate("pages", "stop")

        assert await rows(shop) == []


ADMINISTRATIVE = {
    "POST {queues}/messages/purge": {},
    "PUT /v1/operate/dead/{id}": {"payload": {}},
    "POST /v1/operate/dead/replay": {"where": {}},
    "POST /v1/operate/dead/discard": {"where": {}, "reason": "a test"},
    **{f"POST /v1/operate/crons/{{name}}/{verb}": {} for verb in CRON_VERBS},
    **{f"POST /v1/operate/sources/{{name}}/{verb}": {} for verb in SOURCE_VERBS},
    "POST /v1/controllers/{name}/stop": {},
    "POST /v1/controllers/{name}/start": {},
    "POST /v1/controllers/{name}/tune": {"rate": 2.5},
    "POST /v1/controllers/{name}/reset": {},
}
# Reads, and the traffic of clients, which is the work of the app and no administration.
UNAUDITED = {
    "POST {queues}/messages",
    "POST {queues}/messages/batch",
    "POST {queues}/messages/pull",
    "POST {queues}/messages/ack",
    "POST {queues}/messages/peek",
    "POST /client/v4/accounts/{account}/d1/database/{database}/query",
    "POST /client/v4/accounts/{account}/d1/database/{database}/raw",
    "GET /v1/controllers/{name}/status",
    "GET /health",
    "GET /health/deep",
    "GET /openapi.json",
    "GET /",
    "GET /ui",
    "GET /metrics",
    *(f"GET /v1/operate/{path}" for path in ("dead", "dead/groups", "dead/{id}", "crons", "sources", "cost")),
}
QUEUES = "/client/v4/accounts/{account}/queues/{queue}"


@virtual
async def test_every_route_is_audited_or_known_to_need_no_audit() -> None:
    app = controlled_app()
    failing = app.queue("failing", retries=0)

    @failing.handler
    async def fail(payload: object) -> None:
        raise ValueError(payload)

    @app.cron("0 3 1 1 *", name="pages", reason="once a year")
    async def yearly() -> None: ...

    class Shelf(ps.Connector):
        name = "pages"

        async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
            yield Page([Record("1", {"a": 1})], "1")

    app.connector(Shelf())
    aliased, own = set(app.routes.aliases), {route.path for route in app.routes.ordered()}
    routes = {
        f"{method} {route.path}".replace(QUEUES, "{queues}")
        for route in make_site(app, tokens=[]).routes
        if isinstance(route, Route) and route.path not in aliased | own
        for method in (route.methods or set()) - {"HEAD"}
    }
    async with TestApp(app) as shop, asking(shop.app) as client:
        audited = set()
        for route, body in ADMINISTRATIVE.items():
            assert (await client.ask("POST", MESSAGES, {"body": {"item": "a"}})).status == 200
            await shop.send(failing, {})
            await shop.advance(seconds=1)
            [letter, *_] = await shop.app.dead.list()
            method, _, path = route.partition(" ")
            path = path.format(queues=MESSAGES.removesuffix("/messages"), name="pages", id=letter.id)
            before = len(await rows(shop))
            assert (await client.ask(method, path, body)).status == 200, route
            await shop.advance(seconds=1)
            if len(await rows(shop)) == before + 1:
                audited.add(route)

    assert audited == set(ADMINISTRATIVE)
    assert routes - audited == UNAUDITED
