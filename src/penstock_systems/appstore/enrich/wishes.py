"""What others ask of the enrichment: apps that somebody wants to know about now, and the other apps of a developer."""

from __future__ import annotations

from penstock_systems.appstore.app import EnrichWanted, PortfolioWanted, db, wishes
from penstock_systems.appstore.enrich import rows
from penstock_systems.appstore.enrich.asking import beside, outbound
from penstock_systems.appstore.enrich.controller import controllers
from penstock_systems.appstore.enrich.saving import DISCOVERED, write_rows
from penstock_systems.appstore.enrich.verdict import WISHED

AT_ONCE = "1970-01-01 00:00:00"  # due before all that is due
APPS_MAX = 200  # of a developer: what one look-up gives

# One that was never enriched goes to the head of those, whatever it waited for; another is due before all others.
WISH = """
insert into app_registry (track_id, data_source, enrich_priority, first_seen_at, last_seen_at)
values (:track_id, 'wish', :wished, :now, :now)
on conflict (track_id) do update set
  enrich_priority = app_registry.enrich_priority
    + case when app_registry.enrich_priority < :wished then :wished else 0 end,
  enrich_attempts = 0,
  next_enrich_at = case when app_registry.enriched_at is null then null else cast(:at_once as text) end
"""
PORTFOLIO_AT = "select portfolio_at from developers where developer_id = :developer_id"
FOUND = """
insert into developers (developer_id, name, portfolio_at, first_seen_at)
values (:developer_id, coalesce(:name, 'Unknown'), :now, :now)
on conflict (developer_id) do update set
  name = coalesce(:name, developers.name),
  portfolio_at = excluded.portfolio_at
"""


@wishes.handler(EnrichWanted)
async def wish(wanted: EnrichWanted) -> None:
    now = await db.now()
    ids = sorted({track_id for track_id in wanted.track_ids if 0 < track_id < 2**63})
    db.write_many(WISH, [{"track_id": track_id, "wished": WISHED, "at_once": AT_ONCE, "now": now} for track_id in ids])
    controllers["main"].tell.wake()


@wishes.handler(PortfolioWanted)
async def portfolio(wanted: PortfolioWanted) -> None:
    """Once a developer. Apps that are known already are left as they are."""
    if await db.value(PORTFOLIO_AT, developer_id=wanted.developer_id):
        return
    async with outbound:
        found = await beside.portfolio(wanted.developer_id)
    now = await db.now()
    db.write(FOUND, developer_id=wanted.developer_id, name=found.name, now=now)
    write_rows(DISCOVERED, rows.found_rows(found.apps[:APPS_MAX], source="portfolio", now=now))
