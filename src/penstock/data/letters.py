"""Which dead letters a filter means, without their bodies: numbers are enough to deal with thousands of them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.data.usage import Reading

# The same conditions as in penstock.queues.letters, which gives the values of the names.
CHOSEN = """
select seq, replay_count
from penstock_dead
where (:queue is null or queue = :queue)
and (:type is null or type = :type)
and (:source is null or source = :source)
and (:reason is null or reason = :reason)
and (:since is null or failed_at >= :since)
and (:until is null or failed_at < :until)
and (:text is null or instr(lower(coalesce(error_message, '') || cast(body as text)), lower(:text)) > 0)
and (:resolved or resolution is null)
order by failed_at, seq
limit :most
"""


class Chosen(NamedTuple):
    number: int
    replay_count: int


async def chosen(reading: Reading, bound: dict[str, object]) -> list[Chosen]:
    """Oldest first."""
    return [Chosen(*row) for row in await reading.rows(CHOSEN, **bound)]
