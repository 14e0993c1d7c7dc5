"""An async test that takes `shop` runs in virtual time, with an app open whose queues nobody consumes."""

from __future__ import annotations

import pytest

from penstock.testing import TestApp
from penstock.testing.plugin import pytest_pyfunc_call
from tests.web.outside import shop_app

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture
def shop() -> TestApp:
    return TestApp(shop_app())


@pytest.fixture
def limited() -> TestApp:
    """The same app under the limits of the platform."""
    return TestApp(shop_app("cloudflare"))
