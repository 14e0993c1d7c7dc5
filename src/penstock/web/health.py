"""Whether the service is there, and whether what it stands on is: `/health` and `/health/deep`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.app import App
from penstock.model.errors import PenstockError
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views.queues import processes
from penstock.web.reply import answered

CHECK_SECONDS_MAX = 5.0  # a client wants to know it now; a store that takes longer counts as down

SQL = load("penstock.web", "health.sql")
LATE_SECONDS = 300.0  # a cron task that is due for longer was forgotten, if there are workers to run it

_log = logging.getLogger("penstock.web")


class Health:
    """Needs no token, so it tells numbers and no names."""

    def __init__(self, app: App, now: Callable[[], int]) -> None:
        self._app = app
        self._now = now

    async def shallow(self, _: Request) -> Response:
        return answered(200, self._about("ok"))

    async def deep(self, _: Request) -> Response:
        """Answer 200 if the database, queues and workers can be read and each cron task's last run succeeded, else 503."""
        checks: dict[str, Any] = {}
        try:
            await self._check(checks)
        except (PenstockError, TimeoutError) as error:
            _log.error(
                "the deep health check failed: %s", error if isinstance(error, PenstockError) else "it took too long"
            )
            failed = next(name for name in ("database", "queues", "workers", "runs") if name not in checks)
            why = type(error).__doc__ or "" if isinstance(error, PenstockError) else "It did not answer in time."
            checks[failed] = {"status": "failed", "reason": why.strip()}
        healthy = all(check["status"] == "ok" for check in checks.values())
        return answered(200 if healthy else 503, {**self._about("ok" if healthy else "failed"), "checks": checks})

    async def _check(self, checks: dict[str, Any]) -> None:
        app = self._app
        engine = await app._opened()
        async with asyncio.timeout(CHECK_SECONDS_MAX):
            size_bytes = await engine.in_writer(engine.writer.upkeep.size_bytes)
            if engine.scheduler.broken is not None:
                raise engine.scheduler.broken
            (queues,) = await app.db.rows(SQL["queues"])
            checks["database"] = {"status": "ok", "bytes": size_bytes}
            (counted,) = await app.db.rows(SQL["messages"])
            checks["queues"] = {"status": "ok", **queues.asdict(), **counted.asdict()}
            me = engine.writer.workers.me
            others = [each for each in await processes(app.db) if each.id != me]
            checks["workers"] = {"status": "ok", "count": len(others)}
            (runs,) = await app.db.rows(SQL["cron_tasks"], late=engine.clock.now() - int(LATE_SECONDS * 1_000_000))
            bad = runs["failed"] or (others and runs["late"])
            checks["runs"] = {"status": "failed" if bad else "ok", **runs.asdict()}

    def _about(self, status: str) -> dict[str, Any]:
        return {"status": status, "service": self._app.name, "timestamp": iso_z(self._now())}
