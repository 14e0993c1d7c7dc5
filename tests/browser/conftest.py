"""A Chromium that the machine has, and a real server of an app with a worker beside it.

Every page that a test opens fails it on an error in the console, on an uncaught exception, on a blocked resource and on a
request to another host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from penstock.testing import virtual
from tests.browser.serving import Served, serving
from tests.extent import EVERYTHING
from tests.ui.planted import market_app, plant

CHROMIUM = os.environ.get("PENSTOCK_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
INSTALL = "Install Chromium (Debian, Ubuntu: apt install chromium), or set PENSTOCK_CHROMIUM to its path."
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
MAY_FAIL = ("/live",)  # a stream that ends with its page


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave one test where there is no Chromium: it says how to install it, and fails in `make test-all`."""
    own = [item for item in items if Path(__file__).parent in item.path.parents]
    said = [item for item in own if item.name == "test_chromium_is_installed"]
    if CHROMIUM is None:
        left_out = [item for item in own if item not in said]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
        for item in said if not EVERYTHING else ():
            item.add_marker(pytest.mark.skip(reason=INSTALL))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """While it is open no other test of this process can run an event loop in this thread, so it ends with its module."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server and a worker over a database in which an app has lived for an hour and a half."""
    folder = tmp_path_factory.mktemp("market")

    @virtual
    async def made() -> None:
        await plant(folder, start=datetime.now(UTC) - timedelta(hours=1.53), hours=1.5)

    in_thread(made)
    app = market_app()
    app.database = str(folder / "market.db")
    with serving(app) as served:
        yield served


def in_thread(work: Callable[[], object]) -> None:
    """Run work that needs an event loop: that of the browser's driver holds this thread."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


@contextmanager
def visiting(
    browser: Browser, served: Served, token: str | None = "admin", problems: list[str] | None = None, **options: Any
) -> Iterator[Page]:
    """A page of a logged-in visitor."""
    given = {"viewport": DESKTOP, "color_scheme": "light", "locale": "en-GB", **options}
    context = browser.new_context(**given)
    seen: list[str] = []
    try:
        page = open_page(context, served, seen)
        if token is not None:
            page.goto(f"{served.url}/ui/login")
            page.fill("#token", token)
            page.click("button.primary")
            page.wait_for_url(f"{served.url}/ui/")
        yield page
    finally:
        context.close()
    if problems is None:
        assert not seen, "\n".join(seen)
    else:
        problems.extend(seen)


def open_page(context: BrowserContext, served: Served, seen: list[str]) -> Page:
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.on("console", lambda message: seen.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))

    def failed(request: Any) -> None:
        if not any(part in request.url for part in MAY_FAIL) and "ERR_ABORTED" not in str(request.failure):
            seen.append(f"failed: {request.url} {request.failure}")

    def asked(request: Any) -> None:
        if not request.url.startswith((served.url, "data:")):
            seen.append(f"another host: {request.url}")

    page.on("requestfailed", failed)
    page.on("request", asked)
    return page
