"""What the weekly audit of a brand finds: drafts that stay drafts, old articles, dead letters, research that failed once."""

from __future__ import annotations

from penstock_systems.brand.app import brain, wishes
from penstock_systems.brand.messages import BrandResearch
from penstock_systems.brand.scalable_media.brands import Known

STALE_DAYS, OLD_DAYS, FAILED_DAYS = 7, 90, 8
AGAIN_MAX = 10  # keywords that one audit asks for again
STALE = brain.db.hot(
    """
select id from sm_content
where brand_id = :brand_id and status = 'draft' and created_at < :before
limit 100
"""
)
OLD = brain.db.hot(
    """
select id from sm_content
where brand_id = :brand_id and status = 'published' and created_at < :before
limit 100
"""
)
# Each is a dead letter of a command for research, which is in GatherFeed's database.
FAILED = brain.db.hot(
    """
select id from sm_failures
where brand_id = :brand_id and kind = 'research' and failed_at >= :since
limit 100
"""
)
FAILED_ONCE = """
select keyword from sm_failures
where brand_id = :brand_id and kind = 'research'
group by keyword
having count(*) = 1 and min(failed_at) >= :since
order by keyword
limit :most
"""
AUDITED = """
insert into sm_audits (id, brand_id, stale, old, pending, waiting, dead_letters, audited_at)
values (:id, :brand_id, :stale, :old, :pending, :waiting, :dead_letters, :now)
on conflict (id) do nothing
"""


async def note_unfinished(known: Known, name: str, *, pending: int, waiting: int) -> None:
    """Save the counts of an audit of this name, when the current unit commits."""
    brain.db.write(
        AUDITED,
        id=name,
        brand_id=known.id,
        stale=len(await brain.db.column(STALE, brand_id=known.id, before=await brain.db.ago(f"{STALE_DAYS}d"))),
        old=len(await brain.db.column(OLD, brand_id=known.id, before=await brain.db.ago(f"{OLD_DAYS}d"))),
        pending=pending,
        waiting=waiting,
        dead_letters=len(await brain.db.column(FAILED, brand_id=known.id, since=await brain.db.ago(f"{FAILED_DAYS}d"))),
        now=await brain.db.now(),
    )


async def ask_again(known: Known, name: str) -> None:
    """Ask once more, without hurry, for research that failed since the last audit. What failed twice stays as it is."""
    since = await brain.db.ago(f"{FAILED_DAYS}d")
    keywords = await brain.db.column(FAILED_ONCE, brand_id=known.id, since=since, most=AGAIN_MAX)
    if keywords:
        wishes.send(BrandResearch(brand_slug=known.slug, keywords=keywords, priority="low", request_id=f"again {name}"))
