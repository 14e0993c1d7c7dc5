"""An async test that takes `office` runs in virtual time, against fake servers that count what arrives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from penstock.testing import TestApp, run
from penstock_systems.reminders.app import app, db, web
from penstock_systems.reminders.system import app as whole
from penstock_systems.standins.notifications import Arrivals, make_servers
from penstock_systems.standins.notifications.server import HOSTS
from tests.conftest import SEED
from tests.postgres import empty_database

START = datetime(2026, 3, 2, 8, 0, 30, tzinfo=UTC)  # a Monday, half a minute before the next tick
HOOK = "https://hooks.example.com/hooks"
assert whole is app


@dataclass
class Office:
    """The reminders at work, and what arrived at the fake servers."""

    running: TestApp
    http: httpx2.AsyncClient
    servers: Any

    @property
    def arrivals(self) -> Arrivals:
        found: Arrivals = self.servers.state.arrivals
        return found

    @property
    def mails(self) -> list[dict[str, Any]]:
        return self.arrivals.of("resend")

    @property
    def hooks(self) -> list[dict[str, Any]]:
        return self.arrivals.of("webhook")

    def ms(self) -> int:
        return round(self.running.now.timestamp() * 1000)

    async def post(self, path: str, expect: int | None = None, **body: Any) -> Any:
        return await self.call("POST", path, expect=expect, json=body)

    async def call(self, method: str, path: str, *, expect: int | None = None, **given: Any) -> Any:
        answer = await self.http.request(method, f"/v1/reminders{path}", **given)
        if expect is None:
            assert answer.status_code < 300, answer.text
        else:
            assert answer.status_code == expect, answer.text
        found = answer.json()
        return found.get("result") if answer.status_code < 300 else found["errors"][0]

    async def snooze(self, id: str, span: str, expect: int | None = None) -> Any:
        return await self.call("POST", f"/{id}/snooze", expect=expect, json={"for": span})

    async def add(self, title: str = "Pay the rent", **given: Any) -> Any:
        return await self.post("", **{"title": title, **given})

    async def row(self, id: str) -> Any:
        return await db.first("select * from notifications where id = :id", id=id)

    async def statuses(self, id: str) -> list[tuple[int, str, str]]:
        rows = await db.rows(
            "select fire_seq, channel, status from notification_deliveries where notification_id = :id "
            "order by fire_seq, channel",
            id=id,
        )
        return [tuple(row) for row in rows]

    async def sql(self, text: str, **named: object) -> list[Any]:
        return await db.rows(text, **named)


Opened = Callable[..., AbstractAsyncContextManager[Office]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Async tests run in virtual time."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run(lambda: test(**given), seed=pyfuncitem.config.stash[SEED])
    return True


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Every test runs on both stores, in a folder of its own, with the secrets that the fake servers expect."""
    kept: str = request.param
    monkeypatch.setattr(TestApp, "new_database", empty_database if kept == "postgres" else None)
    monkeypatch.setenv("NOTIFICATIONS_RESEND_KEY", "re_fake")
    monkeypatch.setenv("REMINDERS_SECRET", "a secret of the tests alone")
    monkeypatch.chdir(tmp_path)
    return kept


@pytest.fixture
def office(seed: int) -> Opened:
    """`async with office() as it:` opens the app in virtual time, with fake servers of mail, webhooks and chats."""

    @asynccontextmanager
    async def opened(*, start: datetime = START, **options: Any) -> Any:
        async with TestApp(app, seed=seed, start=start) as running:
            servers = make_servers(lambda: running.now.timestamp(), seed=seed, **options)
            for host in HOSTS:
                web.mount(host, servers)
            async with running.client() as http:
                yield Office(running, http, servers)

    return opened
