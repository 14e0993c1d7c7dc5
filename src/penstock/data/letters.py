"""Which dead letters a filter means, without their bodies: numbers are enough to deal with thousands of them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.data.usage import Reading

CHOSEN = """
select seq, replay_count
from penstock_dead
where resolution is null
and (:queue is null or queue = :queue)
and (:type is null or type = :type)
and (:source is null or source = :source)
and (:reason is null or reason = :reason)
and (:since is null or failed_at >= :since)
and (:until is null or failed_at < :until)
and (:text is null or instr(lower(coalesce(error_message, '') || cast(body as text)), lower(:text)) > 0)
order by failed_at, seq
limit :most
"""


class Chosen(NamedTuple):
    number: int
    replay_count: int


async def chosen(reading: Reading, bound: dict[str, object]) -> list[Chosen]:
    """Those that nobody has dealt with, oldest first."""
    return [Chosen(*row) for row in await reading.rows(CHOSEN, **bound)]
