"""The five stages: what sets each off, where it keeps what it makes, and how far an app has come that passed it."""

from __future__ import annotations

from typing import NamedTuple


class Stage(NamedTuple):
    name: str
    trigger: str  # the kind of thing that starts it
    started_by: str  # its name in the app
    storage: tuple[str, ...]
    reached: str  # what an app is that passed it
    meaning: str


STAGES = (
    Stage(
        "crawl",
        "cron",
        "crawl",
        ("app_registry", "crawl_keywords", "crawl_rankings"),
        "discovered",
        "found in a chart, a search, or beside another app",
    ),
    Stage(
        "enrich",
        "alarm",
        "enrichment",
        ("app_registry", "developers", "app_reviews"),
        "enriched",
        "read from their own page or record",
    ),
    Stage(
        "evaluate",
        "queue",
        "pipeline-events",
        ("agent_ledger", "app_registry"),
        "scored",
        "scored by the competitiveness agent",
    ),
    Stage(
        "cluster",
        "cron",
        "cluster",
        ("market_clusters", "cluster_apps", "cluster_keywords"),
        "clustered",
        "in a market",
    ),
    Stage(
        "opportunity",
        "workflow",
        "batch-research",
        ("opportunity_evaluations", "debate_reports"),
        "evaluated",
        "in an evaluated market",
    ),
)
