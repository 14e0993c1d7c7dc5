"""An async test that takes `shop` runs in virtual time, with an app whose handlers give the next of `shop.answers`."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.testing import TestApp, TestServices
from penstock.testing.plugin import pytest_pyfunc_call
from tests.flow.shop import Listing
from tests.postgres import empty_database

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs on both stores, but for those about what only one of them has."""
    kept: str = request.param
    monkeypatch.setattr(TestApp, "new_database", empty_database if kept == "postgres" else None)
    monkeypatch.setattr(TestServices, "new_database", empty_database if kept == "postgres" else None)
    return kept


@pytest.fixture
def listings() -> Queue[Listing]:
    return ps.App("shop").queue("listings", Listing)


@pytest.fixture
def shop(listings: Queue[Listing]) -> TestApp:
    app = listings._home
    assert isinstance(app, ps.App)
    shop = TestApp(app)
    shop.answering(listings)
    return shop
