"""What goes: history after ninety days, caches after their time."""

from __future__ import annotations

from penstock_systems.appstore.app import db

HISTORY_DAYS = 90
# The table, and the column that says how old a row is.
HISTORY = {
    "chart_position_history": "snapshot_at",
    "app_snapshots": "snapshot_at",
    "ranking_snapshots": "snapshot_at",
    "keyword_snapshots": "snapshot_at",
    "cluster_snapshots": "snapshot_at",
    "cluster_lineages": "run_at",
    "crawl_log": "started_at",
    "pipelines": "started_at",
    "pipeline_steps": "started_at",
    "dfs_keyword_cache": "fetched_at",
}
CACHES = ("keyword_cache", "app_cache")


async def prune_history(now: str) -> dict[str, object]:
    """Rows removed, by table, in portions that are commits of their own."""
    removed: dict[str, object] = {}
    for table, column in HISTORY.items():
        removed[table] = await db.prune(table, column=column, older_than=f"{HISTORY_DAYS}d")
    for table in CACHES:
        removed[table] = await db.prune(table, column="expires_at", older_than=0.0)
    return {table: count for table, count in removed.items() if count}
