"""Draws every page of the dashboard: both themes, desktop and phone, over an app that has lived for two hours.

make screenshots        or        python -m tools.screenshots [--only NAME ...] [--into FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.testing import virtual

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"desktop": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}
PAGES = {
    "overview": "/",
    "queues": "/queues",
    "queue": "/queues/mails",
    "dead": "/dead",
    "letter": "/dead/3",
    "replay": "/confirm/dead/replay?scope=filter&queue=found&reason=permanent",
    "activity": "/activity",
    "cron": "/cron",
    "task": "/cron/crawl",
    "runs": "/runs",
    "run": "/runs/research/approve-100-100",
    "compare": "/compare?workflow=research&a=hats-100-100&b=broken-80",
    "objects": "/objects",
    "pace": "/pace/prices",
    "cost": "/cost",
    "workers": "/workers",
    "alerts": "/alerts",
    "audit": "/audit",
    "system": "/system",
    "search": "/search?q=shop.example",
    "paces": "/pace",
    "object": "/objects/Cart/hat",
    "bulk": "/bulk",
    "purge": "/confirm/queues/purge?name=mails",
    "missing": "/queues/nowhere",
    "trace": "/dead/3",
    "why": "/queues/mails",
}
CLICKED = {
    "trace": ".head a:has-text('Timeline')",
    "why": "main tbody td.lead a",
}  # what leads to the page from its address


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(PAGES), choices=list(PAGES))
    parser.add_argument("--into", type=Path, default=ROOT / "build/screenshots")
    options = parser.parse_args()
    chromium = os.environ.get("PENSTOCK_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no Chromium. Install it (Debian, Ubuntu: apt install chromium), or set PENSTOCK_CHROMIUM.")
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder), chromium, options.only, options.into)


def draw(folder: Path, chromium: str, names: list[str], into: Path) -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser.serving import serving
    from tests.ui.planted import market_app, plant

    @virtual
    async def made() -> None:
        await plant(folder, start=datetime.now(UTC) - timedelta(hours=2.03))

    made()
    app = market_app()
    app.database = str(folder / "market.db")
    with serving(app) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for size, theme in ((size, theme) for size in SIZES for theme in ("light", "dark")):
            phone: dict[str, Any] = {"is_mobile": True, "has_touch": True} if size == "phone" else {}
            context = browser.new_context(
                viewport=SIZES[size],  # type: ignore[arg-type]
                color_scheme=theme,  # type: ignore[arg-type]
                locale="en-GB",
                **phone,
            )
            page = context.new_page()
            page.goto(f"{served.url}/ui/login")
            page.fill("#token", "admin")
            page.click("button.primary")
            for name in names:
                page.goto(f"{served.url}/ui{PAGES[name]}")
                if name in CLICKED:
                    page.click(CLICKED[name])
                    page.wait_for_url("**/trace/**")
                page.wait_for_timeout(400)
                page.screenshot(path=into / f"{name}-{size}-{theme}.png", full_page=True)
            context.close()
        browser.close()
    print(f"Wrote {len(names) * 4} pictures into {into}.")


if __name__ == "__main__":
    main()
