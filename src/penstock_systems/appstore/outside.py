"""The one way to the store that all stages share, so that they share its pace as well."""

from __future__ import annotations

from penstock_systems.appstore.app import app, html_cache, settings, web
from penstock_systems.appstore.store.client import AppStore

# A message that would wait longer is released, or tried in the next cycle: on a platform a cycle has half a minute. Elsewhere
# a group of ten searches has to get through, which at twenty a minute takes thirty seconds.
WAIT_SECONDS_MAX = 20.0 if app.config.profile.startswith("cloudflare") else 60.0

searching = app.pace("itunes-search", max_wait=WAIT_SECONDS_MAX)  # searches and look-ups: some twenty a minute
feeding = app.pace("itunes-rss", max_wait=WAIT_SECONDS_MAX)  # charts and reviews
hinting = app.pace("itunes-hints", max_wait=WAIT_SECONDS_MAX)

store = AppStore(web, app.page_cache(html_cache, web), settings, searching=searching, feeding=feeding, hinting=hinting)
