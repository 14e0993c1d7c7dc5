"""The first page: what waits, what moves, what it costs, and what needs an operator."""

from __future__ import annotations

from penstock.data.usage import month_usage, size
from penstock.model.queue import is_internal
from penstock.views import queues as queue_views
from penstock.views.cost import ceilings
from penstock.views.view import Row
from penstock.web.ui import backlog
from penstock.web.ui.attention import attention
from penstock.web.ui.page import Facts, Page, PageLook, per_minute, settled

SHOWN = 8  # queues, the fullest


async def overview(look: PageLook) -> Facts:
    rows = await backlog.queues(look, most=backlog.ALL_MAX, internals=True)
    counts, serving = await settled(look), await backlog.served(look)
    backlog.with_rates(rows, counts, serving, look.now)
    usage = await month_usage(look.reading, None, now=look.now)
    limits = list(ceilings(look.reading.target, usage))
    own = [row for row in rows if not is_internal(row["name"])]
    processes = await queue_views.processes(look.reading)
    alive = [each for each in processes if look.reading.is_alive(each)]
    cap = look.reading.target.config.limits.database_bytes_max
    grown = await size(look.reading, look.reading.lookout.size_bytes(), cap_bytes=cap, now=look.now)
    return {
        "totals": _totals(own, rows),
        "attention": await attention(look, rows, counts, serving, limits),
        "queues": sorted(own, key=lambda row: (-row["waiting"] - row["leased"], -row["done_per_minute"], row["name"]))[
            :SHOWN
        ],
        "queues_in_all": len(own),
        "minutes": {
            "now": look.now // 60_000_000 * 60_000_000,
            "done": per_minute(counts, look.now, ("acked",)),
            "failed": per_minute(counts, look.now, ("retried", "dead")),
        },
        "workers": {"alive": sum(each.runs_handlers for each in alive), "processes": len(alive)},
        "database": {"bytes": grown.size_bytes, "days_left": grown.days_left, "level": grown.level},
        "month": {"name": usage.month, "usd": round(usage.usd, 9)},
    }


def _totals(own: list[Row], rows: list[Row]) -> Facts:
    oldest = [row["oldest_age_seconds"] for row in own if row["oldest_age_seconds"] is not None]
    return {
        "waiting": sum(row["waiting"] for row in own),
        "leased": sum(row["leased"] for row in rows),
        "dead": sum(row["dead"] for row in rows),
        "done_per_minute": round(sum(row["done_per_minute"] for row in own), 1),
        "oldest_age_seconds": max(oldest, default=None),
        "sent": sum(row["sent"] for row in own),
        "acked": sum(row["acked"] for row in own),
        "is_exact": all(row["is_exact"] for row in rows),
    }


PAGES = (Page("/", "Overview", overview, "overview.html", every=2.0),)
