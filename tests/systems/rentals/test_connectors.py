"""The connectors that ship: short, true to the shapes of their portals, and within the contract."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from penstock.connect import Blocked, Changed, DeclaredConnector, Page
from penstock.connect.contract import NoPace, check_connector, read_pages
from penstock.connect.page import Tally
from penstock.connect.web import Http
from penstock.outbound.client import Client
from penstock_systems.rentals.settings import CONNECTORS, SHIPPED, Settings
from penstock_systems.standins.rentals import HOSTS, make_city, make_portals, portals_of

LINES_MAX = 30
CITY = make_city(seed=3, flats=900, days=5)


class Clock:
    hours = 10.0

    def __call__(self) -> float:
        return 1_793_606_400.0 + self.hours * 3_600


def ask(connector: DeclaredConnector, clock: Clock) -> tuple[Any, Any]:
    portals = make_portals(clock, city=CITY, begins=clock() - clock.hours * 3_600)
    client = Client()
    for host in HOSTS:
        client.mount(host, portals)
    return portals_of(portals), lambda: Http(client, connector, NoPace(), Tally(), {})


def read(connector: DeclaredConnector, clock: Clock, cursor: str | None = None) -> tuple[list[Page], Any]:
    portals, make_http = ask(connector, clock)
    return asyncio.run(read_pages(connector, cursor, make_http(), most=200)), portals


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RENTCAST_KEY", "fake")


@pytest.mark.parametrize("path", sorted(CONNECTORS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_connector_has_at_most_30_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LINES_MAX


@pytest.mark.parametrize("name", SHIPPED)
def test_fake_portals_behind_a_port_of_this_machine_answer_a_shipped_connector(name: str) -> None:
    """As under `--standins`, where requests have that port's host."""
    [spec] = Settings(sources={name: {}}).specs()
    connector, clock, client = DeclaredConnector(spec), Clock(), Client()
    portals = make_portals(clock, city=CITY, begins=clock() - clock.hours * 3_600)

    async def behind_a_port(scope: Any, receive: Any, send: Any) -> None:
        headers = [(key, b"127.0.0.1:8790" if key == b"host" else value) for key, value in scope["headers"]]
        await portals(scope | {"headers": headers, "server": ("127.0.0.1", 8790), "scheme": "http"}, receive, send)

    for host in HOSTS:
        client.mount(host, behind_a_port)
    pages = asyncio.run(read_pages(connector, None, Http(client, connector, NoPace(), Tally(), {}), most=200))
    assert sum(len(page.records) for page in pages) > 40
    assert portals_of(portals).requests.keys() == {name}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_connector_keeps_the_contract(name: str) -> None:
    [spec] = Settings(sources={name: {}}).specs()
    connector = DeclaredConnector(spec)
    _, make_http = ask(connector, Clock())
    checks = asyncio.run(check_connector(connector, make_http))
    assert [each for each in checks if not each.passed] == []


@pytest.mark.spec("E-04")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_connector_reads_all_that_its_portal_shows(name: str) -> None:
    [spec] = Settings(sources={name: {}}).specs()
    pages, portals = read(DeclaredConnector(spec), Clock())
    records = {record.id: record for page in pages for record in page.records}
    shown = portals.ads(name)
    assert len(records) == len(shown) > 40
    assert pages[-1].complete is (name != "kijiji")
    sizes = sorted(ad.flat.area for ad in shown)
    assert all(
        abs(record.data["area_m2"] - size) < 1
        for record, size in zip(sorted(records.values(), key=lambda each: each.data["area_m2"]), sizes, strict=True)
    )
    assert all(abs(record.data["lat"] - 50) < 1 for record in records.values())
    if name == "yad2":
        assert pages[-1].cursor == str(max(ad.id for ad in shown))


def test_a_changed_and_a_blocking_portal_are_recognised() -> None:
    clock = Clock()
    [spec] = Settings(sources={"yad2": {}}).specs()
    clock.hours = 60.2
    with pytest.raises(Blocked, match="perfdrive"):
        read(DeclaredConnector(spec), clock)
    wrong = spec | {"params": spec["params"] | {"sort": "new"}}
    clock.hours = 10.0
    with pytest.raises(Changed, match="400"):
        read(DeclaredConnector(wrong), clock)
    [keyed] = Settings(sources={"rentcast": {}}).specs()
    clock.hours = 90.0
    with pytest.raises(Exception, match="401"):
        read(DeclaredConnector(keyed), clock)


def test_an_answer_is_never_followed_to_another_host() -> None:
    asked: list[str] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(302, headers={"location": "https://validate.perfdrive.com/x"}, request=request)

    [spec] = Settings(sources={"yad2": {}}).specs()
    connector = DeclaredConnector(spec)
    http = Http(Client(transport=httpx2.MockTransport(answer)), connector, NoPace(), Tally(), {})
    with pytest.raises(Blocked):
        asyncio.run(read_pages(connector, None, http))
    assert asked == ["gw.yad2.co.il"]
