"""The pipeline in virtual time, all stages on, against a stand-in of the store that can be looked into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.testing import TestApp
from penstock_systems.appstore.app import app, settings, web
from penstock_systems.appstore.stages import app as staged
from penstock_systems.standins.appstore import Catalogue, Manners, Store, make_store, store_of

assert staged is app

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = (settings.bases.itunes, settings.bases.search, settings.bases.apps)
QUIET = Manners(limits={}, latency_seconds={}, faults=())


@dataclass(frozen=True, slots=True)
class Pipeline:
    running: TestApp
    store: Store

    @property
    def requests(self) -> int:
        return sum(book.requests for book in self.store.truth().books.values())


@asynccontextmanager
async def pipeline(
    database: str, catalogue: Catalogue, *, manners: Manners = QUIET, seed: int = 1, start: datetime = START
) -> AsyncIterator[Pipeline]:
    """Works on this database, new or filled."""
    async with TestApp(app, seed=seed, start=start, database=database) as running:
        store = make_store(catalogue, lambda: running.now.timestamp(), manners)
        for host in HOSTS:
            web.mount(host, store)
        yield Pipeline(running, store_of(store))
