"""SIGKILL of the sender, the carrier and the receiver of an outbox in turn, with each database on each store."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from tests.crash.fork_server import Request
from tests.crash.harness import ForkServer
from tests.crash.journal import wait_until
from tests.crash.trade import ORDERED
from tests.extent import EVERYTHING
from tests.postgres import empty_database, look
from tests.sockets import free_port

KILLS = int(os.environ.get("PENSTOCK_KILLS", "500" if EVERYTHING else "9"))
SERVICE_KEY = "of this test"
ORDERS = 8  # placed before each kill
AIMED_SECONDS = 5.0  # a kill that found nothing to hit by then is made all the same, and not counted
DRAIN_SECONDS = 120.0
# Whom a kill is aimed at: the process, the service whose database shows the moment, and the queue of which it has claimed.
AIMS = {
    "sender": ("shop", "shop", "shop-orders"),
    "carrier": ("shop", "shop", "outbox.warehouse"),
    "receiver": ("warehouse", "shop", "outbox.warehouse"),
}


class Trade:
    """The two processes, and what the test reads in their databases."""

    def __init__(self, folder: Path, fork_server: ForkServer, stores: dict[str, str], *, ordered: bool) -> None:
        self._folder = folder
        self._fork_server = fork_server
        self._ports = {name: free_port() for name in stores}
        self._databases = {
            name: empty_database(name) if store == "postgres" else str(folder / f"{name}.db")
            for name, store in stores.items()
        }
        services = [
            f'[services.{name}]\nport = {self._ports[name]}\ndatabase = "{self._databases[name]}"' for name in stores
        ]
        lines = ["grace_seconds = 2", *services]
        (folder / "penstock.toml").write_text("\n".join(lines))
        self._environment = {"PENSTOCK_CONFIG": str(folder / "penstock.toml"), "SERVICE_KEY": SERVICE_KEY}
        self._environment |= {ORDERED: "1"} if ordered else {}
        self._pids: dict[str, int] = {}
        self._http = httpx2.Client(timeout=5.0, headers={"X-Service-Key": SERVICE_KEY})
        for name in stores:
            self.start(name)

    def start(self, service: str) -> None:
        """Start the worker of a service; return when it answers."""
        arguments = {"service": service, "port": self._ports[service]}
        output = str(self._folder / "output.log")
        request = Request(
            start="tests.crash.trade:run", arguments=arguments, environment=self._environment, output=output
        )
        self._pids[service] = self._fork_server.ask(request).pid
        wait_until(lambda: self._is_served(service), f"{service}: {self.said()}", 30.0)

    def kill(self, service: str) -> None:
        pid = self._pids.pop(service)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self._fork_server.ask(Request(poll=pid)).code is not None, f"end of {service}")

    def place(self, orders: list[dict[str, Any]]) -> None:
        """Place orders until the shop says that it has them."""
        body = {"orders": orders}

        def is_taken() -> bool:
            return self._http.post(f"http://127.0.0.1:{self._ports['shop']}/orders", json=body).status_code == 200

        wait_until(is_taken, "orders")

    def has_claimed(self, service: str, queue: str) -> bool:
        return bool(self._count(service, f"queue = '{queue}' and worker is not null"))

    def waits(self) -> int:
        return sum(self._count(service, "queue not like 'cron.%'") for service in self._databases)

    def rows(self, service: str, sql: str) -> list[tuple[Any, ...]]:
        if self._databases[service].startswith("postgres"):
            return look(self._databases[service], sql)
        connection = sqlite3.connect(f"file:{self._databases[service]}?mode=ro", uri=True, timeout=20)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def said(self) -> str:
        path = self._folder / "output.log"
        return path.read_text(errors="replace")[-3_000:] if path.exists() else ""

    def close(self) -> None:
        self._http.close()
        for service in tuple(self._pids):
            self.kill(service)

    def _count(self, service: str, where: str) -> int:
        table = "penstock.penstock_messages" if self._databases[service].startswith("postgres") else "penstock_messages"
        return int(self.rows(service, f"select count(*) from {table} where {where}")[0][0])

    def _is_served(self, service: str) -> bool:
        try:
            return self._http.get(f"http://127.0.0.1:{self._ports[service]}/health").status_code == 200
        except httpx2.HTTPError:
            return False


@pytest.fixture
def trade(request: pytest.FixtureRequest, tmp_path: Path, fork_server: ForkServer) -> Iterator[Trade]:
    sender, receiver, ordered = request.param
    made = Trade(tmp_path, fork_server, {"shop": sender, "warehouse": receiver}, ordered=ordered == "ordered")
    try:
        yield made
    finally:
        made.close()


CASES = [
    pytest.param(
        (sender, receiver, ordered),
        id=f"{sender}-{receiver}-{ordered}",
        marks=[] if (sender != receiver) == (ordered == "ordered") else [pytest.mark.slow],
    )
    for sender in ("sqlite", "postgres")
    for receiver in ("sqlite", "postgres")
    for ordered in ("ordered", "unordered")
]


@pytest.mark.fault("F01")
@pytest.mark.parametrize("trade", CASES, indirect=True)
def test_kills_of_sender_carrier_and_receiver_lose_double_and_reorder_nothing(
    trade: Trade, seed: int, note: Callable[[str], None], request: pytest.FixtureRequest
) -> None:
    began, chance, hit = time.monotonic(), Random(seed), Counter[str]()
    number = 0
    for aim in cycle(AIMS):
        victim, beside, queue = AIMS[aim]
        trade.place([{"brand": chance.choice("abc"), "number": number + each} for each in range(ORDERS)])
        number += ORDERS
        ends = time.monotonic() + AIMED_SECONDS
        while not (claimed := trade.has_claimed(beside, queue)) and time.monotonic() < ends:
            time.sleep(0.001)
        time.sleep(chance.choice([0.0, 0.0, chance.random() * 0.02]))
        trade.kill(victim)
        hit[aim] += claimed
        if chance.random() < 0.1:  # the other one is away at the same time
            other = "warehouse" if victim == "shop" else "shop"
            trade.kill(other)
            trade.start(other)
        trade.start(victim)
        if hit.total() >= KILLS:
            break
        assert number < 20 * ORDERS * (KILLS + 10), f"too few kills hit anything: {hit}"
    wait_until(lambda: not trade.waits(), "end of the work", DRAIN_SECONDS)

    sent = trade.rows("shop", "select brand, number from sent")
    got = trade.rows("warehouse", "select brand, number from got order by id")
    case = request.node.callspec.id
    note(f"outbox, {case}: kills {dict(hit)}, {number} messages, {time.monotonic() - began:.0f} s")
    assert sorted(each for _, each in sent) == list(range(number)), trade.said()
    assert sorted(each for _, each in got) == list(range(number)), "lost or doubled"
    if case.endswith("-ordered"):
        for brand in "abc":
            numbers = [each for of, each in got if of == brand]
            assert numbers == sorted(numbers), "out of order"
    assert min(hit[aim] for aim in AIMS) >= KILLS // len(AIMS) // 2, hit
