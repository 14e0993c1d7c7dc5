"""A look at the whole database for the standard points: what waits, what cron tasks did, what the month has cost.

One process at a time looks, once in five minutes at most. It reads with a connection of its own, in the history's lane,
so that nobody waits for it and no row is metered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from penstock.contracts.history import HistoryFile, Run
from penstock.contracts.store import Reader, Store
from penstock.model.prices import cost, metered
from penstock.model.times import day_of, month_of

SECOND = 1_000_000
FIRST_SECONDS = 300  # what the first look looks back
COST_SECONDS = 600.0  # between two looks at what the month has used
TICK_SECONDS_MAX = 86_400.0  # a run that took longer is not in the points; its row says everything
ROWS_MAX = 10_000
SECONDS_MAX = 5.0

QUEUES = """
select
  counted.queue,
  counted.waiting,
  counted.dead,
  (
    select min((
      select due
      from penstock_messages
      where queue = counted.queue
      and priority = priorities.column1
      and worker is null
      order by due
      limit 1
    ))
    from (values (0), (1), (2)) as priorities
  ) as first_due
from (
  select queue, sum(sent - acked - dead - purged - expired) as waiting, sum(dead) as dead
  from penstock_counters
  group by queue
) as counted
order by counted.queue
limit :most
"""
TICKS = """
select schedule, status, count(*), max(coalesce(started_at, fired_at) - due), sum(coalesce(finished_at - started_at, 0)),
  sum(coalesce(rows_read, 0))
from penstock_ticks
where fired_at > :back
and coalesce(finished_at, fired_at) > :since
and coalesce(finished_at, fired_at) <= :now
and status <> 'due'
group by schedule, status
order by schedule, status
limit :most
"""
USED = """
select kind, sum(executions), sum(rows_read), sum(rows_written), sum(micros)
from (
  select case when statement like 'penstock:%' then statement else '' end as kind, executions, rows_read, rows_written,
    micros
  from penstock_usage
  where month = :month
) as used
group by kind
limit :most
"""


class Fact(NamedTuple):
    """What is told of one thing: `kind` and `name` are words of a point, `more` the words after them."""

    kind: str
    name: str
    numbers: tuple[float, ...]
    more: tuple[str, ...] = ()


def look(file: HistoryFile, store: Store, *, now: int, every_seconds: float) -> list[Fact] | None:
    """None if another process has looked so shortly before. Runs of cron tasks are told once, whoever looks."""

    def claim(run: Run) -> tuple[int | None, int | None]:
        since = _claimed(run, "state", now, every_seconds)
        return since, None if since is None else _claimed(run, "cost", now, min(COST_SECONDS, 2 * every_seconds))

    since, costed = file.transact(claim)
    if since is None:
        return None
    with closing(store.open_reader()) as reader:
        facts = [*_queues(reader, now), *_ticks(reader, since, now)]
        if costed is not None:
            facts.append(_cost(reader, now))
    return facts


def _claimed(run: Run, kind: str, now: int, every_seconds: float) -> int | None:
    """The time of the last look, if it is long enough ago for another."""
    for (at,) in run("sampled", {"kind": kind}):
        if at > now - every_seconds * SECOND:
            return None
        run("note_sample", {"kind": kind, "now": now})
        return int(at)
    run("note_sample", {"kind": kind, "now": now})
    return now - FIRST_SECONDS * SECOND


def _queues(reader: Reader, now: int) -> Iterator[Fact]:
    for queue, waiting, dead, first_due in _read(reader, QUEUES, now=now):
        age = 0.0 if first_due is None or first_due > now else (now - first_due) / SECOND
        yield Fact("queue", queue, (float(waiting), age, float(dead)))


def _ticks(reader: Reader, since: int, now: int) -> Iterator[Fact]:
    back = since - int(TICK_SECONDS_MAX * SECOND)
    for task, status, runs, late, micros, rows_read in _read(reader, TICKS, since=since, back=back, now=now):
        yield Fact("tick", task, (float(runs), late / SECOND, micros / SECOND, float(rows_read)), (status,))


def _cost(reader: Reader, now: int) -> Fact:
    usage = metered(_read(reader, USED, month=month_of(now)))
    usd = cost(usage, days=int(day_of(now)[8:])).usd
    used = (usage.rows_read, usage.rows_written, usage.queue_operations)
    return Fact("cost", month_of(now), (usd, *map(float, used)))


def _read(reader: Reader, sql: str, **bound: Any) -> list[tuple[Any, ...]]:
    wanted = {name: value for name, value in {**bound, "most": ROWS_MAX}.items() if f":{name}" in sql}
    return reader.read(sql, wanted, rows_max=ROWS_MAX, seconds_max=SECONDS_MAX).values
