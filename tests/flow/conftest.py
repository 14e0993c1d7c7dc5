"""An async test that takes `shop` runs in virtual time, with an app whose handlers give the next of `shop.answers`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.storage.sqlite import meter
from penstock.storage.sqlite.cost import Cost
from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from tests.flow.shop import Listing
from tests.postgres import empty_database

__all__ = ["pytest_pyfunc_call"]


@lru_cache(2_000)
def cost_of(program: tuple[tuple[Any, ...], ...]) -> Cost:
    return Cost(program)


def remembered(program: Sequence[tuple[Any, ...]]) -> Cost:
    """What a statement can cost follows from its program alone, so it is worked out once for all tests: for each of them
    anew it took almost half of their time. `tests/unit/test_meter.py` looks at how it is done."""
    return cost_of(tuple(program))


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs on both stores, but for those about what only one of them has."""
    kept: str = request.param
    monkeypatch.setattr(TestApp, "new_database", empty_database if kept == "postgres" else None)
    monkeypatch.setattr(meter, "Cost", remembered)
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
