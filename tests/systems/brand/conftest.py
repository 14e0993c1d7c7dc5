"""An async test that takes `brands` runs in virtual time: the brand system, the gateway, and fakes of all that they call.

The services run in one database and, in tests that take `apart`, each in its own: the system is imported once for each way.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

import penstock as ps
from penstock.testing import TestApp, TestServices, run
from penstock_systems.gateway import keys
from penstock_systems.gateway.keys import Allowed
from penstock_systems.gateway.stages import app as gateway_app
from penstock_systems.standins.brave import Search
from penstock_systems.standins.chat import Chat, Manners
from penstock_systems.standins.publishing import GHOST_KEY, Ghost, Pages, Social, SocialFaults, write_reply
from tests.conftest import SEED
from tests.postgres import empty_database

PACKAGE = "penstock_systems.brand"
PROVIDERS = ("https://api.openai.com", "https://api.search.brave.com")
BRAIN, EYES, MOUTH, HANDS = "scalable-media-api", "gatherfeed-api", "pages-plus", "social-good"


@cache
def imported(apart: bool) -> dict[str, ModuleType]:
    """The modules of the brand system, with services that share a database or have one each."""
    ours = [name for name in sys.modules if name.startswith(PACKAGE)]
    before = {name: sys.modules.pop(name) for name in ours}
    settings = {"PENSTOCK_CONFIG": str(Path(__file__).with_name("penstock.toml")), "PENSTOCK_APART": str(int(apart))}
    os.environ |= settings
    try:
        importlib.import_module(f"{PACKAGE}.stages")
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(PACKAGE)}
    finally:
        for name in settings:
            del os.environ[name]
        sys.modules |= before


@dataclass
class Brands:
    """The brand system at work, and what is outside of it."""

    modules: dict[str, ModuleType]
    town: TestServices
    http: httpx2.AsyncClient
    hands_http: httpx2.AsyncClient
    chat: Chat
    search: Search
    pages: Pages
    social: Social
    ghost: Ghost
    sites: Path = Path("sites")

    def __getattr__(self, name: str) -> Any:
        """The app, a service, a queue: by its name in the brand system's `app.py`."""
        return getattr(self.modules[f"{PACKAGE}.app"], name)

    def module(self, name: str) -> Any:
        return self.modules[f"{PACKAGE}.{name}"]

    @property
    def advance(self) -> Any:
        return self.town.advance

    async def agent(self, slug: str) -> dict[str, Any]:
        facts: dict[str, Any] = await self.module("scalable_media.agent").agents[slug].facts()
        return facts

    async def research(self, slug: str, *keywords: str, priority: str = "normal", key: str = "request-1") -> str:
        given = {"keywords": list(keywords), "priority": priority}
        headers = {"X-Service-Key": "service-key", "Idempotency-Key": key}
        answer = await self.http.post(f"/v1/brands/{slug}/research", json=given, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["result"]["correlation_id"])

    async def contents(self, **where: Any) -> list[Any]:
        rows = await self.brain.db.rows(
            "select id, keyword, status, stage, reason, flags, published_to from sm_content order by id"
        )
        return [row for row in rows if all(getattr(row, name) == value for name, value in where.items())]

    async def counts(self, queue: ps.Queue[Any]) -> Any:
        return await self.town.of(queue).counts(queue)

    async def dead(self) -> list[Any]:
        return [letter for shop in self.town.shops.values() for letter in await shop.app.dead.list()]

    def delivered(self) -> int:
        """How many messages were delivered, over the five queues."""
        queues = (self.researches, self.publications, self.postings, self.wishes, self.events)
        return sum(len(self.town.of(queue).delivered(queue)) for queue in queues)


Opened = Callable[..., AbstractAsyncContextManager[Brands]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Async tests run in virtual time."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run(lambda: test(**given), seed=pyfuncitem.config.stash[SEED])
    return True


@pytest.fixture(params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    kept: str = request.param
    monkeypatch.setattr(TestServices, "new_database", empty_database if kept == "postgres" else None)
    monkeypatch.setenv("PENSTOCK_STANDINS", "in this process")
    monkeypatch.setenv("BRAND_TEST_TOKEN", "sk-stand-in")
    monkeypatch.setenv("GHOST_TEST_KEY", GHOST_KEY)
    monkeypatch.setenv("SERVICE_KEY", "service-key")
    monkeypatch.chdir(tmp_path)
    return kept


@pytest.fixture(params=[False, True], ids=["together", "apart"])
def apart(request: pytest.FixtureRequest) -> bool:
    """Whether each service has a database of its own."""
    return bool(request.param)


@pytest.fixture
def brands(kept_on: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Opened:
    """`async with brands(faults=SocialFaults(lost=0.5), false_citations=[2]) as at_work:`"""
    modules = imported("apart" in request.fixturenames and request.getfixturevalue("apart"))
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)  # types are looked up there when they are first used
    return partial(opened, modules, monkeypatch)


@asynccontextmanager
async def opened(
    modules: dict[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    *,
    faults: SocialFaults | None = None,
    false_citations: tuple[int, ...] = (),
    day: float | None = None,
    in_disorder: bool = False,
) -> AsyncIterator[Brands]:
    app, web = modules[f"{PACKAGE}.app"].app, modules[f"{PACKAGE}.app"].web
    town = TestServices(app, shuffled=in_disorder, duplicated=in_disorder)
    gateway = TestApp(gateway_app, database="gateway.db")

    def now() -> float:
        return town[BRAIN].now.timestamp()

    pages, search = Pages(), Search(now, hosts=("https://web.example",))
    chat = Chat(1, Manners(seconds=0.5), reply=write_reply(false_citations))
    given = faults or SocialFaults()
    social, ghost = Social(now, faults=given), Ghost(now, slow=given.slow, slow_seconds=given.slow_seconds)
    for host in PROVIDERS:
        gateway_app.standins[0].client.mount(host, Starlette(routes=[*chat.app.routes, search.route]))
    modules[f"{PACKAGE}.app"].reader.mount("https://web.example", pages.app)
    for host, fake in (("social", social), ("ghost", ghost)):
        web.mount(f"https://{host}.example", fake.app)
    async with AsyncExitStack() as stack:
        for each in (gateway, town):
            await stack.enter_async_context(each)
        http, hands_http = [
            await stack.enter_async_context(town[name].client("app:read", "app:write")) for name in (BRAIN, HANDS)
        ]
        web.mount("https://apimom-router.example", gateway_app.asgi())
        monkeypatch.setenv("BRAND_GATEWAY_KEY", await keys.create(gateway_app, "brand", Allowed(day=day)))
        yield Brands(modules, town, http, hands_http, chat, search, pages, social, ghost)
