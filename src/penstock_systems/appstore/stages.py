"""All stages of the pipeline: whoever imports this finds their tasks, queues and objects in place."""

from __future__ import annotations

from penstock_systems.appstore import health, pages, standing_in, trial
from penstock_systems.appstore.app import app
from penstock_systems.appstore.cluster import task
from penstock_systems.appstore.crawl import cycle
from penstock_systems.appstore.daily import mailing, run
from penstock_systems.appstore.enrich import wishes
from penstock_systems.appstore.evaluate import routes
from penstock_systems.appstore.opportunity import research

__all__ = [
    "app",
    "cycle",
    "health",
    "mailing",
    "pages",
    "research",
    "routes",
    "run",
    "standing_in",
    "task",
    "trial",
    "wishes",
]
