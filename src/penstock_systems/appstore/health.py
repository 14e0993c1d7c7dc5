"""How the pipeline fares: for each stage how much it has made, and whether what goes in still comes out.

A stage that made something long ago is not healthy by that: it is healthy if it has made something since the stage before it
has, give or take the time it may need.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from penstock_systems.appstore.app import app, db

CACHE_SECONDS = 60.0
HOUR = 3_600.0

# The newest trace of each stage, each one row of an index; what a stage may lag behind the one before it, in seconds.
LATEST = {
    "crawl": (db.hot("select started_at from crawl_log order by started_at desc limit 1"), 0.0),
    "enrich": (
        db.hot(
            "select enriched_at from app_registry where enrichment_source = 'scraper' order by enriched_at desc limit 1"
        ),
        24 * HOUR,
    ),
    "evaluate": (db.hot("select created_at from agent_ledger order by created_at desc limit 1"), 24 * HOUR),
    "cluster": (db.hot("select run_at from cluster_lineages order by run_at desc limit 1"), 12 * HOUR),
    "opportunity": (
        db.hot("select created_at from opportunity_evaluations order by created_at desc limit 1"),
        48 * HOUR,
    ),
}
COUNTED = {"crawl": "app_registry", "enrich": "app_reviews", "evaluate": "agent_ledger"}
MARKETS = "select count(*) from (select 1 from market_clusters where ended_at is null limit 10000) as counted"
EVALUATED = "select count(*) from (select 1 from opportunity_evaluations limit 10000) as counted"
LAST_CYCLE = "select phase, stats, started_at, finished_at, error from crawl_log order by started_at desc limit 1"

# How the harness fares: its newest cycle, and how the last markets that it had looked into ended.
LAST_RESEARCH = (
    "select status, wanted, started, started_at, finished_at from harness_cycles order by started_at desc limit 1"
)
RESEARCHED = "select subject, result, created_at from harness_processor_log order by created_at desc limit 5"


async def stages() -> dict[str, dict[str, Any]]:
    """By name: how much there is, when the newest came, and whether that is healthy."""
    counts = {stage: await db.count(table) for stage, table in COUNTED.items()}
    counts |= {"cluster": await db.value(MARKETS), "opportunity": await db.value(EVALUATED)}
    found: dict[str, dict[str, Any]] = {}
    before: str | None = None
    for stage, (sql, lag) in LATEST.items():
        latest = await db.value(sql)
        behind = 0.0 if before is None or latest is None else _seconds(latest, before)
        found[stage] = {"count": counts[stage], "latest": latest, "healthy": latest is not None and behind <= lag}
        before = latest or before
    return found


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


@app.get("/v1/crawl/status", cache=5)
async def crawl_status() -> dict[str, Any]:
    """The last cycle that did something, and how much there is by now."""
    last = await db.first(LAST_CYCLE)
    return {
        "apps": await db.count("app_registry"),
        "keywords": await db.count("crawl_keywords"),
        "rankings": await db.count("crawl_rankings"),
        "last_cycle": None if last is None else last.asdict(),
    }


@app.get("/v1/pipeline-test", cache=CACHE_SECONDS)
async def pipeline_test() -> dict[str, Any]:
    found = await stages()
    last = await db.first(LAST_RESEARCH)
    lately = [row.asdict() for row in await db.rows(RESEARCHED)]
    return {
        "stages": found,
        "pipeline_healthy": all(stage["healthy"] for stage in found.values()),
        "research": {"last_cycle": None if last is None else last.asdict(), "lately": lately},
    }
