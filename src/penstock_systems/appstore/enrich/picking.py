"""Which apps are enriched next: two lists, each in the order of its index, and a rule that merges them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from penstock_systems.appstore.app import db, settings
from penstock_systems.appstore.enrich.mentions import Mention
from penstock_systems.appstore.enrich.parts import Known
from penstock_systems.appstore.enrich.verdict import is_wished

FRESH = """
select track_id, enriched_at, enrich_attempts, enrich_priority, portfolio_at
from app_registry
left join developers on developers.developer_id = app_registry.developer_id
where enriched_at is null
and next_enrich_at is null
order by enrich_priority desc, rating_count desc, track_id
limit :most
"""
DUE = """
select track_id, enriched_at, enrich_attempts, enrich_priority, portfolio_at
from app_registry
left join developers on developers.developer_id = app_registry.developer_id
where next_enrich_at <= :now
order by next_enrich_at, track_id
limit :most
"""
ONE = """
select track_id, enriched_at, enrich_attempts, enrich_priority, portfolio_at
from app_registry
left join developers on developers.developer_id = app_registry.developer_id
where track_id = :track_id
"""

MENTIONS = "select keyword, field, count from app_keyword_mentions where track_id = :track_id"


async def waiting(most: int) -> list[Known]:
    """At most so many apps, the most important first."""
    fresh = [Known(*row) for row in await db.rows(FRESH, most=most)]
    due = [Known(*row) for row in await db.rows(DUE, most=most, now=await db.now())]
    return list(merged(fresh, due, due_every=settings.due_every))[:most]


async def known(track_id: int) -> Known:
    row = await db.first(ONE, track_id=track_id)
    return Known(track_id) if row is None else Known(*row)


async def with_mentions(known: Known) -> Known:
    """What its texts were said to mention, if it was enriched before."""
    if known.enriched_at is None:
        return known
    rows = await db.rows(MENTIONS, track_id=known.track_id)
    return msgspec.structs.replace(known, mentions=tuple(Mention(*row) for row in rows))


def merged(fresh: Sequence[Known], due: Sequence[Known], *, due_every: int) -> Iterator[Known]:
    """Yield the apps that a user asked for, then the never enriched ones with a due one at each place that `due_every`
    divides. With 0 the due ones come last."""
    yield from (each for each in (*due, *fresh) if is_wished(each))
    new, again = (deque(each for each in part if not is_wished(each)) for part in (fresh, due))
    for place in range(1, len(new) + len(again) + 1):
        is_kept = due_every > 0 and place % due_every == 0
        yield again.popleft() if again and (is_kept or not new) else new.popleft()
