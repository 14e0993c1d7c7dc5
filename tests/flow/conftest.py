"""An async test that takes `shop` runs in virtual time, with an app whose handlers give the next of `shop.answers`."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.queues.queue import Queue
from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from tests.flow.shop import Listing

__all__ = ["pytest_pyfunc_call"]


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
