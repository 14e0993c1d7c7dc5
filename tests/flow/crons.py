"""Cron tasks of a shop: a start, a pace, an app that notes its due times, and how its runs ended."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import penstock as ps
from tests.flow.shop import EFFECT

START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
EVERY_MINUTE = "* * * * *"
RUNS = "select task, status, phase, missed, error, rows_written from pipeline_log where task = :task order by created_at, id"


async def always() -> bool:
    """Return true: there is always something to do."""
    return True


async def statuses(app: ps.App, task: str) -> list[str]:
    return [row["status"] for row in await app.db.rows(RUNS, task=task)]


def counting_app(expression: str = EVERY_MINUTE, *, seconds: float = 0.0, **settings: object) -> ps.App:
    """Its task `crawl` notes each due time once it has worked for so long."""
    app = ps.App("shop")

    @app.cron(expression, reason="charts move", when=always, **settings)  # type: ignore[arg-type]
    async def crawl(tick: ps.Tick) -> None:
        await asyncio.sleep(seconds)
        app.db.write(EFFECT, what=tick.scheduled_at.strftime("%d %H:%M"))

    return app
