"""For each of ten causes that are planted, an operator gets from the overview to the cause and its action in three clicks."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import penstock as ps
from penstock.config import Config, DashboardConfig
from penstock.testing import TestApp, virtual
from tests.browser.conftest import in_thread, visiting
from tests.browser.serving import Served, serving
from tests.ui.planted import live, market_app

# What was planted, and the action that ends it, as the page shows it.
CAUSES = {
    "paused": "main .head button:has-text('Resume')",
    "unserved": ".command:has-text('penstock run APP') >> nth=0",
    "throttled": "main .head button:has-text('End the pause')",
    "budget": "text=reached >> nth=0",
    "dead": "button:has-text('Replay this cause')",
    "approval": "button:has-text('Send signal')",
    "ceiling": "#ceilings",
    "worker_gone": "text=The next worker that starts releases",
    "disk": ".command:has-text('penstock doctor')",
    "rate_limited": "button:has-text('Tune')",
}
pytestmark = pytest.mark.slow


def troubled_app(**given: Any) -> ps.App:
    app = market_app(**given)
    gateway = app.gateway(budgets=ps.Budgets(day=1.0))

    @app.controller("exchange", parallel=1, rate=(0.1, 5.0))
    class Exchange(ps.Controller[str]):
        async def pick(self, limit: int) -> list[str]:
            return ["rate"]

        async def work(self, item: str) -> None:
            raise ps.Throttled(retry_after=7_200)

    @app.cron("*/10 * * * *", name="summarize")
    async def summarize() -> None:
        async with gateway.paid(provider="brain", operation="summary", at_most=0.25, run="night") as call:
            call.settle(units=1, usd=0.25)

    return app


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("troubled")
    start = (
        datetime.now(UTC).replace(hour=1) if datetime.now(UTC).hour < 2 else datetime.now(UTC) - timedelta(hours=1.03)
    )

    @virtual
    async def made() -> None:
        async with TestApp(troubled_app(), folder=folder, start=start) as shop:
            await live(shop, hours=1.0)

    in_thread(made)
    kill_a_worker(folder / "market.db")
    size = (folder / "market.db").stat().st_size
    config = Config(
        dashboard=DashboardConfig(), ceiling=ps.Ceiling(rows_read=10), overrides={"database_bytes_max": int(size * 1.4)}
    )
    app = troubled_app(**{name: getattr(config, name) for name in ("ceiling", "overrides")})
    app.database = str(folder / "market.db")
    with serving(app, works=True) as served:
        yield served


def kill_a_worker(database: Path) -> None:
    """A process that has enrolled and holds no lock."""
    with sqlite3.connect(database) as connection:
        connection.execute(
            "insert into penstock_workers (id, host, pid, started_at) values (900, ?, 4194303, 1)",
            (socket.gethostname(),),
        )


@pytest.mark.parametrize("kind", CAUSES)
def test_a_cause_and_its_action_are_three_clicks_away(browser: Browser, troubled: Served, kind: str) -> None:
    with visiting(browser, troubled) as page:
        clicks = find(page, page.locator(f".needs li[data-kind={kind}] a").first, CAUSES[kind])

    assert clicks <= 3


def find(page: Page, link: Locator, action: str) -> int:
    expect(link).to_be_visible()
    link.click()
    expect(page.locator(action).first).to_be_visible()
    return 2  # the link, and the action itself
