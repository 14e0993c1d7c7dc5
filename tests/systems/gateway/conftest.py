"""An async test that takes `gateway` runs in virtual time, against fake providers that it can look into."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from starlette.applications import Starlette

from penstock.testing import TestApp, run
from penstock_systems.gateway import keys
from penstock_systems.gateway.keys import Allowed
from penstock_systems.gateway.stages import app
from penstock_systems.standins.brave import Search
from penstock_systems.standins.chat import Chat, Fault, Manners
from tests.conftest import SEED
from tests.postgres import empty_database

HOSTS = ("https://api.openai.com", "https://api.search.brave.com")
MODEL = "gpt-4o-mini"


@dataclass
class Gateway:
    """The gateway at work, and the providers behind it."""

    running: TestApp
    chat: Chat
    search: Search
    http: httpx2.AsyncClient

    async def key(self, name: str = "writer", **allowed: Any) -> str:
        return await keys.create(app, name, Allowed(**allowed))

    def sdk(self, key: str, **options: Any) -> openai.AsyncOpenAI:
        """The official client, which knows nothing of the gateway but its address and a key."""
        options = {"max_retries": 0} | options
        return openai.AsyncOpenAI(base_url="http://test/v1", api_key=key, http_client=self.http, **options)

    async def ask(self, key: str, **more: Any) -> httpx2.Response:
        headers = more.pop("headers", {})
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Is this niche open?"}]} | more
        return await self.http.post(
            "/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"} | headers
        )

    async def ledger(self) -> list[tuple[str, float]]:
        rows = await app.db.rows("select state, cost from api_calls_ledger order by created_at, id")
        return [(row.state, row.cost) for row in rows]


Opened = Callable[..., AbstractAsyncContextManager[Gateway]]


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
    """Every test runs on both stores, in a folder of its own."""
    kept: str = request.param
    monkeypatch.setattr(TestApp, "new_database", empty_database if kept == "postgres" else None)
    monkeypatch.setenv("PENSTOCK_STANDINS", "in this process")
    monkeypatch.chdir(tmp_path)
    return kept


@pytest.fixture
def gateway() -> Opened:
    """`async with gateway(planned={1: "throttled"}) as shop:`"""

    @asynccontextmanager
    async def opened(planned: dict[int, Fault] | None = None, seconds: float = 0.5) -> AsyncIterator[Gateway]:
        running = TestApp(app)
        chat = Chat(1, Manners(seconds=seconds, planned=planned or {}))
        search = Search(lambda: running.now.timestamp())
        providers = Starlette(routes=[*chat.app.routes, search.route])
        for host in HOSTS:
            app.standins[0].client.mount(host, providers)
        async with running, running.client("gateway:read", "gateway:write") as http:
            yield Gateway(running, chat, search, http)

    return opened
