"""What waits in a database right now, in one read of one moment that counts as little as it can."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.contracts.workers import WorkerRow
from penstock.data.usage import Reading
from penstock.model.forecast import Forecast, Sample, forecast
from penstock.model.row import Row

# Messages are counted only as far as it takes to tell ready from delayed: how many there are the counters know, and
# mostly few are of one kind. Where a look at so many of each does not tell, it looks again at more.
COUNTED = (20, 200, 2_000, 10_000)
QUEUES_MAX = 10_000
WORKERS_MAX = 1_000
LEASED_MAX = 100_000  # what all workers together can hold

QUEUES = """
with named as (
  select name from penstock_queues
  union
  select queue from penstock_counters
),
counted as (
  select queue, sum(sent) as sent, sum(acked) as acked, sum(dead) as dead, sum(purged) as purged,
    sum(expired) as expired
  from penstock_counters
  group by queue
),
held as (
  select queue, count(*) as leased
  from (
    select queue
    from penstock_messages
    where worker is not null
    and due > 0
    limit :leased_max
  ) as leased
  group by queue
)
select
  named.name,
  coalesce(counted.sent, 0) as sent,
  coalesce(counted.acked, 0) as acked,
  coalesce(counted.dead, 0) as dead,
  coalesce(counted.purged, 0) as purged,
  coalesce(counted.expired, 0) as expired,
  coalesce(held.leased, 0) as leased,
  coalesce(penstock_queues.paused, 0) as paused,
  (
    select sum((
      select count(*)
      from (
        select 1
        from penstock_messages
        where queue = named.name
        and priority = priorities.column1
        and worker is null
        and due <= :now
        limit :most
      ) as due_now
    ))
    from (values (0), (1), (2)) as priorities
  ) as ready,
  (
    select sum((
      select count(*)
      from (
        select 1
        from penstock_messages
        where queue = named.name
        and priority = priorities.column1
        and worker is null
        and due > :now
        limit :most
      ) as due_later
    ))
    from (values (0), (1), (2)) as priorities
  ) as delayed,
  (
    select min((
      select due
      from penstock_messages
      where queue = named.name
      and priority = priorities.column1
      and worker is null
      order by due
      limit 1
    ))
    from (values (0), (1), (2)) as priorities
  ) as first_due
from named
left join counted on counted.queue = named.name
left join held on held.queue = named.name
left join penstock_queues on penstock_queues.name = named.name
order by named.name
limit :queues_max
"""
WORKERS = """
select id, host, pid, started_at, exists (
    select 1
    from penstock_handlers
    where worker = penstock_workers.id
  ) as runs_handlers
from penstock_workers
order by id
limit :most
"""
SIZES = """
select at, bytes
from penstock_sizes
order by day desc
limit 14
"""


@dataclass(frozen=True, slots=True)
class QueueState:
    """sent = acked + ready + leased + delayed + dead + purged + expired.

    `exact` is false where so many messages are both ready and delayed that they were not told apart: `ready` is then the
    least it can be. `oldest_age_seconds` is how long the first message that may run has been due.
    """

    name: str
    sent: int
    acked: int
    ready: int
    leased: int
    delayed: int
    dead: int
    purged: int
    expired: int
    oldest_age_seconds: float | None
    paused: bool
    exact: bool = True


async def queues(reading: Reading, *, now: int) -> list[QueueState]:
    """All queues of a database, in one statement and so of one moment."""
    states: list[QueueState] = []
    for most in COUNTED:
        found = await reading.rows(QUEUES, now=now, most=most, leased_max=LEASED_MAX, queues_max=QUEUES_MAX)
        states = [_state(row, now, most) for row in found]
        if all(state.exact for state in states):
            break
    return states


async def processes(reading: Reading) -> list[WorkerRow]:
    """Return the processes that have enrolled and not left. Their locks tell whether they live."""
    rows = await reading.rows(WORKERS, most=WORKERS_MAX)
    return [WorkerRow(row.id, row.host, row.pid, row.started_at, bool(row.runs_handlers)) for row in rows]


async def size(reading: Reading, size_bytes: int, *, cap_bytes: int | None, now: int) -> Forecast:
    """The size now and where it is going, from the one sample a day that workers take."""
    samples = [Sample(*row) for row in await reading.rows(SIZES)]
    return forecast([*samples, Sample(now, size_bytes)], cap_bytes=cap_bytes)


def _state(row: Row, now: int, most: int) -> QueueState:
    waiting = row.sent - row.acked - row.dead - row.purged - row.expired - row.leased
    if row.delayed < most:
        ready, delayed, exact = waiting - row.delayed, row.delayed, True
    elif row.ready < most:
        ready, delayed, exact = row.ready, waiting - row.ready, True
    else:
        ready, delayed, exact = row.ready, waiting - row.ready, False
    due = row.first_due is not None and row.first_due <= now
    return QueueState(
        row.name,
        row.sent,
        row.acked,
        ready,
        row.leased,
        delayed,
        row.dead,
        row.purged,
        row.expired,
        (now - row.first_due) / 1_000_000 if due else None,
        bool(row.paused),
        exact,
    )
