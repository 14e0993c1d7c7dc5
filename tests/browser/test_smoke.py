"""The dashboard in a real browser, briefly: what every run of the tests has to see. The journeys are slow tests."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import CHROMIUM, INSTALL, PHONE, visiting
from tests.browser.serving import Served


def test_chromium_is_installed() -> None:
    assert CHROMIUM is not None, INSTALL


def test_the_overview_shows_what_needs_attention_and_leads_to_its_action(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        expect(page.locator(".needs li[data-kind=paused]")).to_contain_text("Queue orders is paused")
        page.click(".needs li[data-kind=paused] a")
        expect(page.locator("h1")).to_have_text("orders")
        page.click("main .head button:has-text('Resume')")
        expect(page.locator("[role=status]")).to_have_text("Resumed queue orders.")
        expect(page.locator(".conserve")).to_be_visible()
        page.click("main .head button:has-text('Pause')")
        expect(page.locator("[role=status]")).to_contain_text("Paused queue orders.")


@pytest.mark.parametrize("path", ["/", "/queues/found", "/dead", "/runs/research/approve-0-0", "/pace/prices"])
def test_no_page_scrolls_sideways_on_a_phone(browser: Browser, market: Served, path: str) -> None:
    with visiting(browser, market, viewport=PHONE, is_mobile=True, has_touch=True, color_scheme="dark") as page:
        page.goto(f"{market.url}/ui{path}")
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
