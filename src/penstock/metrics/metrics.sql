-- What points are made of, and which datasets there are.

-- name: queues
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
limit :most;

-- name: ticks
select schedule, status, count(*), max(coalesce(started_at, fired_at) - due), sum(coalesce(finished_at - started_at, 0)),
  sum(coalesce(rows_read, 0))
from penstock_ticks
where fired_at > :back
and coalesce(finished_at, fired_at) > :since
and coalesce(finished_at, fired_at) <= :now
and status <> 'due'
group by schedule, status
order by schedule, status
limit :most;

-- name: datasets
select
  dataset,
  sum(written),
  sum(dropped),
  sum(refused),
  sum(asked),
  (select max(at) from penstock_points where penstock_points.dataset = penstock_tallies.dataset)
from penstock_tallies
where day >= :day
group by dataset
order by dataset
limit :most;
