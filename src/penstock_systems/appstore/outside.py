"""The one way to the store that all stages share, so that they share its pace as well."""

from __future__ import annotations

from penstock_systems.appstore.app import app, html_cache, settings, web
from penstock_systems.appstore.store.client import AppStore

# Whoever would wait longer goes back to its queue, or is tried in the next cycle: a cycle has half a minute.
PATIENCE_SECONDS = 20.0

searching = app.pace("itunes-search", patience=PATIENCE_SECONDS)  # searches and look-ups: some twenty a minute
feeding = app.pace("itunes-rss", patience=PATIENCE_SECONDS)  # charts and reviews

store = AppStore(web, app.page_cache(html_cache, web), settings, searching=searching, feeding=feeding)
