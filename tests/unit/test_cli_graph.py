"""`penstock graph`: the parts of an app and what uses what, from its code alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli import SHOP, Terminal, shop_in

MORE = """

class Shipped(ps.Event, type="shipped"):
    item: str


parcels = app.queue("parcels", Shipped, rate=2.5)
carrier = app.pace("carrier.example")


class Shelf(ps.Object):
    async def take(self, item: str) -> None:
        parcels.send(Shipped(item=item))


shelves = app.object(Shelf)


@parcels.handler
async def ship(event: Shipped) -> None:
    async with carrier.permit():
        await shelves["main"].take(event.item)


def restock(item: str) -> None:
    sales.send(Sale(item=item))


@app.cron("0 6 * * *", reason="stock is counted overnight", when=None)
async def count_stock() -> None:
    restock("lamp")
    async with app.unit():
        yearly.start()


@app.workflow
async def yearly(run: ps.Run) -> None:
    await run.step("restock", restock, "chair")


@app.controller("prices")
class Prices(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return []

    async def work(self, item: int) -> None:
        parcels.send(Shipped(item=str(item)))


@app.post("/v1/orders")
async def order(item: str) -> None:
    sales.send(Sale(item=item))
"""
EDGES = {
    ("queue:parcels", "pace:carrier.example"),
    ("queue:parcels", "object:Shelf"),
    ("object:Shelf", "queue:parcels"),
    ("cron:count_stock", "queue:sales"),
    ("cron:count_stock", "workflow:yearly"),
    ("workflow:yearly", "queue:sales"),
    ("controller:prices", "queue:parcels"),
    ("route:POST /v1/orders", "queue:sales"),
}


@pytest.fixture
def full(empty_folder: Path) -> Path:
    shop_in(empty_folder, SHOP + MORE)
    return empty_folder


@pytest.mark.spec("A13-08")
def test_programs_get_every_part_with_its_settings_and_the_edges_between_them(terminal: Terminal, full: Path) -> None:
    told = terminal("graph", "shop.py", "--json").told

    assert {(each["from"], each["to"]) for each in told["edges"]} == EDGES
    sales, parcels = told["queues"]
    assert (sales["name"], sales["accepts"], sales["handlers"]) == ("sales", ["sale"], {"sale": ["sell"]})
    assert (parcels["name"], parcels["rate"]) == ("parcels", 2.5)
    assert told["crons"] == [
        {"name": "count_stock", "expression": "0 6 * * *", "zone": "UTC", "reason": "stock is counted overnight"}
    ]
    named = {kind: [each["name"] for each in told[kind]] for kind in ("objects", "controllers", "workflows", "paces")}
    assert named == {
        "objects": ["Shelf"],
        "controllers": ["prices"],
        "workflows": ["yearly"],
        "paces": ["carrier.example"],
    }
    assert told["routes"] == [{"name": "POST /v1/orders", "auth": "app:write"}]
    assert not (full / "shop.db").exists()


def test_people_get_a_flowchart_that_mermaid_draws(terminal: Terminal, full: Path) -> None:
    lines = terminal("graph", "shop.py").out.splitlines()

    assert lines[0] == "flowchart LR"
    assert '  queue0[("queue sales")]' in lines
    assert '  cron0(["cron count_stock"])' in lines
    assert '  controller0{{"controller prices"}}' in lines
    assert "  cron0 --> queue0" in lines
    assert len([line for line in lines if " --> " in line]) == len(EDGES)


def test_internal_parts_are_shown_on_request(terminal: Terminal, full: Path) -> None:
    assert "cron.count_stock" not in terminal("graph", "shop.py").out
    assert "queue cron.count_stock" in terminal("graph", "shop.py", "--all").out


def test_the_graph_of_a_system_has_its_stages(terminal: Terminal, empty_folder: Path) -> None:
    told = terminal("graph", "appstore", "--json").told

    edges = {(each["from"], each["to"]) for each in told["edges"]}
    assert ("cron:crawl", "queue:pipeline-events") in edges
    assert ("object:OpportunityHarness", "workflow:batch-research") in edges


DECLARED = {
    "appstore": {
        "queues": "pipeline-events",
        "crons": "crawl",
        "objects": "OpportunityHarness",
        "workflows": "batch-research",
    },
    "brand": {
        "queues": "gatherfeed-commands",
        "crons": "audit",
        "objects": "BrandAgent",
        "workflows": "content-workflow",
    },
    "gateway": {"crons": "prune_cache", "routes": "POST /v1/chat/completions", "paces": "openai"},
    "reminders": {"crons": "deliver"},
    "rentals": {"queues": "listings", "crons": "collect"},
}


@pytest.mark.spec("A13-07")
@pytest.mark.parametrize("system", DECLARED)
def test_all_that_a_system_declares_is_exported_without_a_database(
    terminal: Terminal, empty_folder: Path, system: str
) -> None:
    told = terminal("graph", system, "--json").told

    assert told["database"].endswith(".db")
    assert all(Path(folder).is_dir() for folder in told["migrations"])
    for kind, name in DECLARED[system].items():
        assert name in [each["name"] for each in told[kind]]
    assert set(told) >= {"blobs", "datasets", "topics", "sources", "secrets", "observability", "services", "edges"}
    assert any(each["uses"] for each in told["services"]) == (system == "brand")
    assert not list(empty_folder.iterdir())


@pytest.mark.spec("A13-07")
def test_blobs_datasets_topics_and_the_names_of_secrets_are_exported_and_no_secret(
    terminal: Terminal, empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = """
pages = app.blobs("pages")
points = app.metrics("shop_points")


class Published(ps.Event, type="published"):
    id: int


published = app.topic("published", Published, retention=60)


@published.subscription("search")
async def index(event: Published) -> None: ...


@app.get("/v1/sales", auth=ps.ServiceKey("SHOP_KEY"))
async def read() -> int:
    return 1
"""
    (empty_folder / "shop.py").write_text(SHOP + more)
    (empty_folder / "penstock.toml").write_text('[systems.shop.providers.openai]\nkey_env = "OPENAI_API_KEY"\n')
    for name in ("SHOP_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-very-secret")

    said = terminal("graph", "shop.py", "--json")
    assert "sk-very-secret" not in said.out
    assert said.told["blobs"] == ["pages"]
    assert "shop_points" in said.told["datasets"]
    assert said.told["topics"] == [{"name": "published", "retention_seconds": 60.0, "subscriptions": ["search"]}]
    assert said.told["secrets"] == ["OPENAI_API_KEY", "SHOP_KEY"]
    assert said.told["observability"]["level"] == "info"
