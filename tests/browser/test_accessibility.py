"""Every page in both themes has no serious finding of axe (axe.min.js, axe-core 4.10.3, MPL 2.0, is for this test alone)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import visiting
from tests.browser.serving import Served
from tests.ui.test_pages import LISTS, THINGS

AXE = (Path(__file__).parent / "axe.min.js").read_text("utf-8")
ASK = "axe.run(document, {resultTypes: ['violations']})"


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_finding_of_axe(browser: Browser, market: Served, theme: str) -> None:
    found = []
    with visiting(browser, market, color_scheme=theme, bypass_csp=True) as page:
        for path in [*LISTS, *(path for path in THINGS if path != "/search?q=found")]:
            page.goto(f"{market.url}/ui{path}")
            page.wait_for_timeout(150)
            page.evaluate(AXE)
            found += [
                (path, violation["id"], violation["nodes"][0]["html"][:200])
                for violation in page.evaluate(ASK)["violations"]
                if violation["impact"] in ("serious", "critical")
            ]

    assert not found, "\n".join(map(str, found))
