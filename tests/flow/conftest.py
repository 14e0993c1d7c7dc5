"""Tests in virtual time: an async test that takes a `TestApp` runs on the virtual loop with its app open."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from tests.flow.shop import Listing

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture
def app() -> ps.App:
    """A fresh app with one queue; a test adds what it needs before it opens it."""
    made = ps.App("shop")
    made.queue("listings", accepts=[Listing])
    return made


@pytest.fixture
def listings(app: ps.App) -> ps.queues.queue.Queue:
    return app.queues["listings"]


@pytest.fixture
def shop(app: ps.App, listings: ps.queues.queue.Queue) -> TestApp:
    """The app with handlers that give the next of `shop.answers`."""
    shop = TestApp(app)
    shop.answering(listings)
    return shop
