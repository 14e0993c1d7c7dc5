"""The ratings of the apps in the best markets, counted anew every day: two hundred apps a look-up. How fast they gain ratings
is known only from counts of several days."""

from __future__ import annotations

from collections.abc import Sequence

import penstock as ps
from penstock.data import chunks
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.crawl import registry
from penstock_systems.appstore.moments import after
from penstock_systems.appstore.outside import store
from penstock_systems.appstore.store.lookup import IDS_A_CALL

APPS_MAX = 20_000  # a hundred look-ups: five minutes of what the store allows
MARKETS_MAX = 500
FRESH_HOURS = 12.0  # an app that was seen since is not asked for again

MARKETS = """
select id
from market_clusters
where ended_at is null
and opportunity_score >= 0
order by opportunity_score desc, id
limit :most
"""
STALE = """
select cluster_apps.track_id
from cluster_apps
join app_registry on app_registry.track_id = cluster_apps.track_id
where cluster_id = :id
and last_seen_at < :before
order by cluster_apps.track_id
limit :most
"""


async def count_ratings(now: str) -> dict[str, object]:
    """How many apps were asked for, and how many are still sold. Apps of an answer that cannot be read wait for tomorrow."""
    wanted = await _wanted(after(now, hours=-FRESH_HOURS))
    found = unread = 0
    for chunk in chunks(wanted, IDS_A_CALL):
        try:
            apps = await store.lookup_many(chunk)
        except (ps.Throttled, ps.Unavailable):
            return {"apps": len(wanted), "found": found, "refused": True}
        except ps.Permanent:
            unread += len(chunk)
            continue
        async with app.unit():
            registry.write_found(list(apps.values()), source="lookup", now=await db.now())
        found += len(apps)
    counts: dict[str, object] = {"apps": len(wanted), "found": found}
    return counts | {"unread": unread} if unread else counts


async def _wanted(before: str) -> Sequence[int]:
    wanted: dict[int, None] = {}
    for id in await db.column(MARKETS, most=MARKETS_MAX):
        left = APPS_MAX - len(wanted)
        if left <= 0:
            break
        wanted |= dict.fromkeys(await db.column(STALE, id=id, before=before, most=left))
    return list(wanted)
