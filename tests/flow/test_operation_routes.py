"""What an operator does over HTTP: dead letters, cron tasks, sources and cost, each with its scope and its audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import penstock as ps
from penstock.connect import Http, Page, Record
from penstock.testing import TestApp, virtual
from penstock.views import audit
from penstock.web import KnownToken, hashed
from penstock.web.site import make_site
from penstock.web.ui.reading import PageSource

SCOPES = {"all": ("*",), "reader": ("operate:read",), "writer": ("operate:write",), "other": ("queues:write",)}
BASE = "http://shop.example/v1/operate"


class Order(ps.Command, type="order.placed"):
    item: str


class Clinic:
    """An app in which orders of a bad item die, with a cron task, a source, a blob folder and a paid service."""

    def __init__(self, folder: Path) -> None:
        self.app = app = ps.App("shop")
        self.orders = app.queue("orders", Order, retries=0)
        self.done: list[str] = []
        self.ticks = 0
        self.blobs = app.blobs(folder / "blobs")

        @self.orders.handler
        async def handle(order: Order) -> None:
            if order.item.startswith("bad"):
                raise ValueError(f"there is no {order.item}")
            self.done.append(order.item)

        @app.cron("0 3 1 1 *", reason="once a year", when=None)
        async def yearly() -> None:
            self.ticks += 1

        class Shelf(ps.Connector):
            name = "shelf"

            async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
                yield Page([Record("1", {"a": 1})], "1")

        app.connector(Shelf())


class Client:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def ask(self, method: str, path: str, json: Any = None, *, token: str = "all") -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = await self._client.request(method, BASE + path, headers=headers, json=json)
        told = answer.json()
        return answer.status_code, told["result"] if told["success"] else told["errors"][0]["message"]

    async def get(self, path: str) -> Any:
        code, result = await self.ask("GET", path)
        assert code == 200, result
        return result

    async def post(self, path: str, json: Any = None) -> Any:
        code, result = await self.ask("POST", path, json)
        assert code == 200, result
        return result


@asynccontextmanager
async def client_of(app: ps.App) -> AsyncIterator[Client]:
    tokens = [KnownToken(name, hashed(name), scopes) for name, scopes in SCOPES.items()]
    transport = httpx2.ASGITransport(app=make_site(app, tokens=tokens))
    async with httpx2.AsyncClient(transport=transport) as client:
        yield Client(client)


@pytest.mark.spec("A14-11", "A3-06")
@virtual
async def test_dead_letters_are_listed_edited_replayed_and_discarded(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    async with TestApp(clinic.app) as shop, client_of(clinic.app) as client:
        for item in ("bad 1", "bad 2", "bad 3", "lamp"):
            await shop.send(clinic.orders, Order(item=item))
        await shop.drain()

        listed = await client.get("/dead?queue=orders&limit=2")
        [group] = await client.get("/dead/groups")
        assert [each["payload"] for each in listed] == ['{"item":"bad 1"}', '{"item":"bad 2"}']
        assert group["letters"] == 3
        one, two, three = (each["id"] for each in await client.get("/dead"))
        assert (await client.get(f"/dead/{one}"))["error_message"] == "there is no bad 1"

        code, edited = await client.ask("PUT", f"/dead/{one}", {"payload": {"item": "chair"}})
        assert (code, edited["payload"]) == (200, '{"item":"chair"}')
        assert await client.post("/dead/replay", {"ids": [one]}) == {"replayed": 1}
        await shop.drain()
        assert clinic.done == ["lamp", "chair"]

        assert await client.post("/dead/discard", {"where": {"text": "bad 2"}, "reason": "test"}) == {"discarded": 1}
        assert [each["id"] for each in await client.get("/dead")] == [three]
        assert {each["id"]: each["resolution"] for each in await client.get("/dead?resolved=true")}[two] == "discarded"
        assert await client.post("/dead/replay", {"where": {}}) == {"replayed": 1}
        listed = await PageSource(clinic.app).read(lambda reading: audit.rows(reading, None, None))
        done = sorted((each["verb"], each["actor"]) for each in listed[0])
        assert done == [("dead discard", "all"), ("dead edit", "all"), *[("dead replay", "all")] * 2]


@pytest.mark.spec("A14-11")
@virtual
async def test_a_cron_task_is_triggered_paused_and_resumed_and_a_source_switched(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    async with TestApp(clinic.app) as shop, client_of(clinic.app) as client:
        assert await client.post("/crons/yearly/trigger") == {"cron": "yearly", "done": "trigger"}
        await shop.drain()
        assert clinic.ticks == 1
        await client.post("/crons/yearly/pause")
        assert {each["name"]: each["paused"] for each in await client.get("/crons")}["yearly"]
        await client.post("/crons/yearly/resume")
        assert not {each["name"]: each["paused"] for each in await client.get("/crons")}["yearly"]

        for verb, enabled in (("disable", 0), ("enable", 1)):
            await client.post(f"/sources/shelf/{verb}")
            [source] = await client.get("/sources")
            assert (source["name"], source["enabled"]) == ("shelf", enabled)
        await clinic.app.sources.run()
        assert [(row["cursor"], row["next_run_at"] is None) for row in await client.get("/sources")] == [("1", False)]
        await client.post("/sources/shelf/run")
        assert [(row["cursor"], row["next_run_at"] is None) for row in await client.get("/sources")] == [("1", True)]
        await client.post("/sources/shelf/reset")
        assert [row["cursor"] for row in await client.get("/sources")] == [None]


@pytest.mark.spec("A14-11", "A14-06")
@pytest.mark.parametrize(
    "token, method, path, code",
    [
        ("", "GET", "/dead", 401),
        ("other", "GET", "/dead", 403),
        ("reader", "GET", "/dead", 200),
        ("writer", "GET", "/cost", 403),
        ("reader", "POST", "/dead/replay", 403),
        ("reader", "PUT", "/dead/1", 403),
        ("reader", "POST", "/crons/yearly/trigger", 403),
        ("writer", "POST", "/crons/yearly/trigger", 200),
        ("reader", "POST", "/sources/shelf/disable", 403),
        ("all", "GET", "/dead/77", 404),
        ("all", "GET", "/dead/x", 404),
        ("all", "GET", "/dead?limit=many", 422),
        ("all", "GET", "/dead?colour=red", 422),
        ("all", "POST", "/crons/hourly/trigger", 404),
        ("all", "POST", "/sources/none/enable", 404),
        ("all", "POST", "/dead/replay", 422),
        ("all", "POST", "/dead/discard", 422),
        ("all", "GET", "/cost?month=soon", 422),
    ],
)
@virtual
async def test_each_route_needs_its_scope_and_refuses_what_it_does_not_know(
    tmp_path: Path, token: str, method: str, path: str, code: int
) -> None:
    clinic = Clinic(tmp_path)
    async with TestApp(clinic.app), client_of(clinic.app) as client:
        answered, said = await client.ask(method, path, {} if method != "GET" else None, token=token)

        assert answered == code, said
        assert clinic.ticks == 0


@pytest.mark.spec("A12-08", "F-14")
@virtual
async def test_the_cost_of_a_month_names_rows_blobs_objects_queues_and_paid_calls(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)

    class Counter(ps.Object):
        count: int = 0

        async def add(self) -> None:
            self.count += 1

    counters = clinic.app.object(Counter)
    async with TestApp(clinic.app) as shop, client_of(clinic.app) as client:
        await shop.send(clinic.orders, Order(item="lamp"))
        await counters["one"].add()
        await clinic.blobs.put("a/1", b"x" * 1_000_000)
        await clinic.blobs.put("a/2", b"y" * 500)
        assert await clinic.blobs.get("a/1") is not None
        await clinic.app.db.rows("select kind from penstock_timers limit 1")
        await shop.drain()
        await shop.advance(minutes=2)

        told = await client.get("/cost")
        used = told["usage"]
        assert (used["blob_reads"], used["blob_writes"]) == (1, 2)
        assert used["queue_operations"] >= 3
        assert used["rows_read"] > 0
        assert [each["class"] for each in told["objects"]] == ["Counter"]
        assert (told["blobs"]["blobs"], told["blobs"]["bytes"], told["blobs"]["is_complete"]) == (2, 1_000_500, True)
        assert told["blobs"]["usd"] == pytest.approx(1_000_500 / 1e9 * 0.015, rel=0.01)
        assert {"usd", "calls", "kinds", "budgets"} <= set(told["api"])
