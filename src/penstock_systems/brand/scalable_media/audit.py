"""The weekly audit: what stayed unfinished, brand by brand. One failing brand keeps no other from its audit."""

from __future__ import annotations

import penstock as ps
from penstock_systems.brand.app import brain
from penstock_systems.brand.scalable_media.agent import agents
from penstock_systems.brand.scalable_media.brands import brand_id, list_brands

SECONDS = 300.0  # for all brands
FAILED = """
insert into sm_audits (id, brand_id, problem, audited_at)
values (:id, :brand_id, :problem, :now)
on conflict (id) do nothing
"""


async def has_brands() -> bool:
    return bool(await list_brands())


@brain.cron(
    "0 6 * * SUN",
    reason="a draft is stale after a week",
    when=has_brands,
    ceiling=ps.Ceiling(rows_read=1_000_000),
)
async def audit(tick: ps.Tick) -> None:
    """Audit every brand within the time of one run, in the order of their names."""
    for slug in await list_brands():
        if tick.late_seconds > SECONDS:
            break
        name = f"{slug} {tick.scheduled_at:%Y-%m-%d}"
        try:
            await agents[slug].audit(slug, name)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            brain.db.write(FAILED, id=name, brand_id=brand_id(slug), problem=problem, now=await brain.db.now())
