"""Which dead letters a filter means, without their bodies: numbers are enough to deal with thousands of them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.data.usage import Reading

CHOSEN = """
select seq, replay_count
from penstock_dead
where resolution is null
and (cast(:queue as text) is null or queue = :queue)
and (cast(:type as text) is null or type = :type)
and (cast(:source as text) is null or source = :source)
and (cast(:reason as text) is null or reason = :reason)
and (cast(:since as bigint) is null or failed_at >= :since)
and (cast(:until as bigint) is null or failed_at < :until)
and (
  cast(:text as text) is null
  or exists (
    select 1
    from dead_messages as told
    where told.id = penstock_dead.seq
    and replace(lower(coalesce(told.error_message, '') || told.payload), lower(cast(:text as text)), '')
      <> lower(coalesce(told.error_message, '') || told.payload)
  )
)
order by failed_at, seq
limit :most
"""


class Chosen(NamedTuple):
    number: int
    replay_count: int


async def chosen(reading: Reading, bound: dict[str, object]) -> list[Chosen]:
    """Those that nobody has dealt with, oldest first."""
    return [Chosen(*row) for row in await reading.rows(CHOSEN, **bound)]
