"""The app that the five stages share: its database, its queues and events, its way out, its page cache."""

from __future__ import annotations

from pathlib import Path

import penstock as ps
from penstock_systems.appstore.settings import Settings

SERVICE = "pipeline"  # the name under which its data points are filed
IDS_A_MESSAGE = 500  # a longer list of ids is split over several messages

app = ps.App("pipeline-api", file="pipeline-db.db", require_trial=True)
db = app.db
settings = Settings.of(app.config.systems)
web = app.http(user_agent=settings.page_user_agent)
html_cache = app.blobs(
    Path(settings.blobs, "pipeline-html-cache"), expiries=[ps.Expiry("app/", days=30)], durable=False
)
for table in ("app_registry", "crawl_keywords", "crawl_rankings", "app_reviews", "agent_ledger"):
    db.keep_count(table)


class AppEnriched(ps.Event, type="app-enriched"):
    """These apps were enriched."""

    track_ids: list[int]


class RankingsUpdated(ps.Event, type="rankings-updated"):
    """These keywords were searched, and the apps that rank for them are known anew."""

    keywords: list[str]


class ClustersReady(ps.Event, type="clusters-ready"):
    """These markets were computed anew, the best first."""

    cluster_ids: list[int]


class FragmentationDone(ps.Event, type="fragmentation-done"):
    """It is known how dispersed these markets are."""

    cluster_ids: list[int]


class DesignDone(ps.Event, type="design-done"):
    """What could be built for these markets is written down."""

    cluster_ids: list[int]


class EnrichWanted(ps.Command, type="enrich.wanted"):
    """Somebody asks for these apps to be enriched before all others."""

    track_ids: list[int]


class PortfolioWanted(ps.Command, type="portfolio.wanted"):
    """A developer was met: their other apps are to be found."""

    developer_id: int


events = app.queue(
    "pipeline-events",
    AppEnriched | RankingsUpdated | ClustersReady | FragmentationDone | DesignDone,
    batch=10,
    batch_wait=5,
    retries=3,
)
wishes = app.queue(
    "pipeline-enrichment",
    EnrichWanted | PortfolioWanted,
    batch=10,
    batch_wait=5,
    parallel=4,
    reason="the calls share a pace with the enrichment",
)
