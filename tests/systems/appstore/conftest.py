"""An async test that takes `pipeline` runs in virtual time, against a stand-in store that it can look into."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import TestApp, run
from penstock_systems.appstore import app as shared
from penstock_systems.standins.appstore import Catalogue, Manners, Store, make_store, store_of
from tests.conftest import SEED
from tests.postgres import empty_database

START = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = Manners(limits={}, latency_seconds={}, faults=())
HOSTS = ("https://itunes.apple.com", "https://search.itunes.apple.com", "https://apps.apple.com")


@dataclass
class Pipeline:
    """The app at work, and the store that it works against."""

    running: TestApp
    store: Store

    async def sql(self, text: str, **named: object) -> list[Any]:
        return await shared.db.rows(text, **named)


Opened = Callable[..., AbstractAsyncContextManager[Pipeline]]


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
    monkeypatch.chdir(tmp_path)
    return kept


@pytest.fixture
def pipeline(seed: int) -> Opened:
    """`async with pipeline(apps=200) as it:` opens the app in virtual time against a store of so many apps."""

    @asynccontextmanager
    async def opened(
        *, apps: int = 200, markets: int = 4, store_seed: int = 1, manners: Manners = QUIET, start: datetime = START
    ) -> Any:
        async with TestApp(shared.app, seed=seed, start=start) as running:
            store = make_store(Catalogue(apps, markets, store_seed), lambda: running.now.timestamp(), manners)
            for host in HOSTS:
                shared.web.mount(host, store)
            yield Pipeline(running, store_of(store))

    return opened
