"""Tests of the dashboard run in virtual time over an app that has lived for a while."""

from __future__ import annotations

import pytest

from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from tests.ui.planted import market_app

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture
def shop() -> TestApp:
    return TestApp(market_app())
