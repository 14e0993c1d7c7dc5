"""What the month has cost so far, and that what must be forgotten is forgotten: the ids of handled messages."""

from __future__ import annotations

import logging

from penstock_systems.appstore.app import db
from penstock_systems.appstore.moments import after

REMEMBERED_DAYS = 16  # a day more than the engine keeps them
DEAREST = 5  # tasks that are named

# Ids begin with their time, so the first thousand are the oldest.
STALE = """
select count(*)
from (
  select processed_at
  from processed_events
  limit 1000
) as oldest
where processed_at < :before
"""

_log = logging.getLogger("penstock_systems.appstore")


async def report_costs(now: str) -> dict[str, object]:
    """The month's bill at a platform's prices, and the tasks that read most."""
    usage = await db.usage()
    facts: dict[str, object] = {
        "month": usage.month,
        "usd": round(usage.usd, 4),
        "rows_read": usage.total.rows_read,
        "rows_written": usage.total.rows_written,
        "tasks": {spent.task: spent.rows_read for spent in usage.tasks[:DEAREST]},
    }
    _log.info("cost.reported", extra={"facts": facts})
    return facts


async def check_dedup(now: str) -> dict[str, object]:
    """The engine removes these records itself, hourly. Where old ones are left that has stopped, and somebody should know."""
    before = after(now, days=-REMEMBERED_DAYS).replace(" ", "T") + "Z"
    stale = await db.value(STALE, before=before)
    if stale:
        _log.warning("dedup.stale", extra={"facts": {"records": stale}})
    return {"stale": stale}
