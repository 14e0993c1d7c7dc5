"""An async test that takes `shop` runs in virtual time, with an app whose handlers give the next of `shop.answers`."""

from __future__ import annotations

import os
from zlib import crc32

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from tests.flow.shop import Listing
from tests.postgres import empty_database

__all__ = ["pytest_pyfunc_call"]


# On PostgreSQL each test costs ten times as much. A sample, always the same, runs in `make test`; all in `make both`.
EVERYTHING = "PENSTOCK_EVERYTHING" in os.environ
ONE_IN = 6
DISORDER = {"shuffled", "duplicated", "both"}  # shown on SQLite, and on PostgreSQL if everything is asked for


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what would be run for nothing: tests of one store on the other, and disorder a second time."""
    left_out = [item for item in items if isinstance(item, pytest.Function) and _is_for_nothing(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def _is_for_nothing(item: pytest.Function) -> bool:
    kept = item.callspec.params.get("kept_on") if hasattr(item, "callspec") else None
    only = item.get_closest_marker("only_on")
    if kept is None or (only is not None and only.args[0] != kept):
        return kept is not None
    disorderly = any(value in DISORDER for value in item.callspec.params.values() if isinstance(value, str))
    return kept == "postgres" and not EVERYTHING and (disorderly or bool(crc32(item.nodeid.encode()) % ONE_IN))


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs on both stores, but for those about what only one of them has."""
    kept: str = request.param
    monkeypatch.setattr(TestApp, "new_database", empty_database if kept == "postgres" else None)
    return kept


@pytest.fixture
def listings() -> Queue:
    return ps.App("shop").queue("listings", accepts=[Listing])


@pytest.fixture
def shop(listings: Queue) -> TestApp:
    app = listings._home
    assert isinstance(app, ps.App)
    shop = TestApp(app)
    shop.answering(listings)
    return shop
